// Controls that several pages have.

export function control<T extends HTMLElement>(id: string): T | null { return document.getElementById(id) as T | null; }

// onSmooth calls back with the slider's weight.
export function onSmooth(change: () => void): () => number {
  const slider = control<HTMLInputElement>("smooth");
  slider?.addEventListener("input", () => {
    const out = slider.parentElement!.querySelector("output");
    if (out) out.textContent = Number(slider.value).toFixed(2);
    change();
  });
  return () => Number(slider?.value ?? 0);
}

// later returns a function that calls back once after a burst of calls.
export function later(ms: number, call: () => void): () => void {
  let timer = 0;
  return () => { clearTimeout(timer); timer = window.setTimeout(call, ms); };
}

// soon returns a function that calls back at most once in so many milliseconds.
export function soon(ms: number, call: () => void): () => void {
  let timer = 0;
  return () => { if (!timer) timer = window.setTimeout(() => { timer = 0; call(); }, ms); };
}

// fill adds options that a select does not have yet.
export function fill(select: HTMLSelectElement | null, options: [string, string][]): void {
  if (!select) return;
  const have = new Set([...select.options].map((o) => o.value));
  for (const [value, text] of options) {
    if (!have.has(value)) select.add(new Option(text, value));
  }
}
