// Nodes and who uses them: the page is read again when it has changed, and the sections
// that differ are replaced.
import { at, Stream } from "./connection";
import { control, soon } from "./controls";

export function cluster(): void {
  const box = control("places")!;
  const load = soon(0, () => {
    fetch(at("/cluster"), { cache: "no-store" }).then((answer) => (answer.ok ? answer.text() : null)).then((text) => {
      const fresh = text === null ? null : new DOMParser().parseFromString(text, "text/html").getElementById("places");
      if (fresh) replace(box, fresh);
    }, () => undefined); // the stream tells of a lost connection
  });
  new Stream("/live/cluster", { cluster: () => load() });
}

// replace puts the children of fresh in place of those of box that differ. The focus stays
// on the link or the region that had it, and regions stay where they were scrolled to.
function replace(box: HTMLElement, fresh: HTMLElement): void {
  const had = document.activeElement, label = had?.getAttribute("aria-label"), href = had?.getAttribute("href");
  const scrolled = new Map([...box.querySelectorAll(".scroll")].map((s) => [s.getAttribute("aria-label"), [s.scrollLeft, s.scrollTop]]));
  const isFocused = had !== null && box.contains(had);
  const old = [...box.children], next = [...fresh.children];
  next.forEach((node, i) => {
    const at = old[i];
    if (!at) box.append(node);
    else if (at.outerHTML !== node.outerHTML) at.replaceWith(node);
  });
  for (const rest of old.slice(next.length)) rest.remove();
  for (const s of box.querySelectorAll(".scroll")) {
    const [left, top] = scrolled.get(s.getAttribute("aria-label")) ?? [0, 0];
    s.scrollLeft = left!;
    s.scrollTop = top!;
  }
  if (!isFocused || box.contains(had)) return;
  const again = [...box.querySelectorAll<HTMLElement>("a, .scroll")].find((n) => (href ? n.getAttribute("href") === href : n.getAttribute("aria-label") === label));
  again?.focus({ preventScroll: true });
}
