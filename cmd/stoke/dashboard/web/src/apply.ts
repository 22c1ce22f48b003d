// The newest apply: its state and its output.
import { Stream } from "./connection";
import { control } from "./controls";
import { setText } from "./live";

interface Apply { phase: string; kind: string; message: string; stop: string; live: boolean }

const mostLines = 5000;

export function apply(): void {
  const output = control("output");
  if (!output) return;
  const kept: string[] = [];
  new Stream("/live/apply", {
    reset: () => { kept.length = 0; output.textContent = ""; },
    lines: (fresh: string[]) => {
      const isAtEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 30;
      kept.push(...fresh);
      const isLong = kept.length > mostLines;
      if (isLong) kept.splice(0, kept.length - mostLines);
      output.textContent = kept.join("\n") + "\n";
      if (isLong) control("output-note")!.hidden = false;
      if (isAtEnd) output.scrollTop = output.scrollHeight;
    },
    apply: (a: Apply) => {
      const phase = control("phase")!, message = control("message")!, stop = control<HTMLButtonElement>("stop")!;
      setText(phase, a.phase);
      phase.className = "phase " + a.kind;
      setText(message, a.message);
      message.hidden = a.message === "";
      setText(stop, a.stop);
      stop.hidden = a.stop === "";
    },
    other: () => location.reload(),
  });
}
