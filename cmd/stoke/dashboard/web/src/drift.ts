// What has changed outside of stoke: compared when a person asks for it.
import { read } from "./connection";
import { control } from "./controls";

interface Drift { message: string; kind: string; text: string }

export function drift(query: string): void {
  const button = control<HTMLButtonElement>("drift-look")!, said = control("drift-text")!, plan = control("drift-plan")!;
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true"); // a disabled button would lose the focus
    said.className = "muted";
    said.textContent = "Reading…";
    try {
      const d = await read<Drift>("/data/drift?" + query);
      said.textContent = d.message;
      said.className = "phase " + d.kind;
      plan.textContent = d.text;
      plan.hidden = d.text === "";
    } catch (e) {
      said.textContent = e instanceof Error ? e.message : String(e);
    }
    button.removeAttribute("aria-disabled");
  });
}
