// The log of a run: a bounded tail with search, as text only.
import { at, Stream } from "./connection";
import { control, later } from "./controls";

interface Line { role: string; stream: string; text: string }

const step = 4, mostLines = 20000, mostMarks = 50;

export function log(query: string): void {
  const box = control("log")!, note = control("log-note")!, more = control<HTMLButtonElement>("log-more")!;
  const role = control<HTMLSelectElement>("log-role")!, stream = control<HTMLSelectElement>("log-stream")!;
  const search = control<HTMLInputElement>("log-search")!, follow = control<HTMLInputElement>("log-follow")!, text = control<HTMLAnchorElement>("log-text")!;
  let lines = 500, left = 0, current: Stream | null = null, isOver = false, word = "";

  const tell = (): void => {
    const n = box.childElementCount;
    const found = word === "" ? "lines" : `lines with “${word}”`;
    note.textContent = n === 0 ? `No ${found}${isOver ? "." : " yet."}` :
      `${n.toLocaleString("en")} ${found}${left > 0 ? `; ${left.toLocaleString("en")} older ones are left out` : ""}${isOver ? ". The run says nothing more." : "."}`;
    more.disabled = left === 0 || lines >= mostLines;
  };

  const open = (): void => {
    current?.close();
    word = search.value.trim();
    const wanted = `${query}&role=${encodeURIComponent(role.value)}&stream=${stream.value}&q=${encodeURIComponent(word)}`;
    text.href = at("/logs.txt?" + wanted);
    note.textContent = "Reading…";
    current = new Stream(`/live/logs?${wanted}&lines=${lines}`, {
      reset: () => { box.replaceChildren(); left = 0; isOver = false; },
      lines: (d: { lines: Line[] | null; left: number }) => {
        const isAtEnd = follow.checked;
        box.append(...(d.lines ?? []).map((l) => lineOf(l, word)));
        left += d.left;
        while (box.childElementCount > lines) { box.firstElementChild!.remove(); left++; }
        if (isAtEnd) box.scrollTop = box.scrollHeight;
        tell();
      },
      end: () => { isOver = true; tell(); },
      trouble: (t: string) => { note.textContent = t; },
    }, false);
  };
  role.addEventListener("change", open);
  stream.addEventListener("change", open);
  search.addEventListener("input", later(250, open));
  more.addEventListener("click", () => { lines = Math.min(mostLines, lines * step); follow.checked = false; open(); });
  box.addEventListener("wheel", (e) => { if (e.deltaY < 0) follow.checked = false; }, { passive: true });
  box.addEventListener("keydown", (e) => { if (["ArrowUp", "PageUp", "Home"].includes(e.key)) follow.checked = false; });
  follow.addEventListener("change", () => { if (follow.checked) box.scrollTop = box.scrollHeight; });
  open();
}

function lineOf(l: Line, word: string): HTMLElement {
  const row = document.createElement("div");
  row.className = l.stream === "stderr" ? "line stderr" : "line";
  const who = document.createElement("span");
  who.className = "who";
  who.textContent = l.role;
  const what = document.createElement("span");
  what.className = "what";
  mark(what, l.text, word);
  row.append(who, what);
  return row;
}

// mark appends a text with the hits of a search marked.
function mark(into: HTMLElement, text: string, word: string): void {
  const low = text.toLowerCase(), wanted = word.toLowerCase();
  let at = 0;
  for (let n = 0; wanted !== "" && n < mostMarks && low.length === text.length; n++) {
    const hit = low.indexOf(wanted, at);
    if (hit < 0) break;
    const m = document.createElement("mark");
    m.textContent = text.slice(hit, hit + wanted.length);
    into.append(text.slice(at, hit), m);
    at = hit + wanted.length;
  }
  into.append(text.slice(at));
}
