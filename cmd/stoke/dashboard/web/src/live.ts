// Texts of a page that change: always set as text, never as HTML.

export interface LiveRole {
  run?: string; name: string; phase: string; kind: string; node: string; reason: string; texts: Record<string, string>;
}

export interface LiveRun {
  address: string; phase: string; kind: string; message: string; percent: number; live: boolean;
  texts: Record<string, string>; sorts: Record<string, number>; roles?: LiveRole[];
}

export function setText(node: Element | null, text: string): void {
  if (node && node.textContent !== text) node.textContent = text;
}

function setPhase(root: Element, phase: string, kind: string): void {
  const badge = root.querySelector(".phase");
  if (!badge) return;
  setText(badge, phase);
  badge.className = "phase " + kind;
}

export function showRun(root: HTMLElement, run: LiveRun): void {
  setPhase(root, run.phase, run.kind);
  root.dataset.kind = run.kind;
  for (const node of root.querySelectorAll<HTMLElement>("[data-live]")) {
    const key = node.dataset.live!;
    if (key === "phase" || node.closest("[data-role]")) continue;
    if (key === "message") {
      setText(node, run.message);
      node.hidden = run.message === "";
      continue;
    }
    setText(node, run.texts[key] ?? "–");
    if (node.dataset.sort !== undefined) node.dataset.sort = String(run.sorts[key] ?? -Infinity);
  }
  for (const node of root.querySelectorAll<HTMLElement>("[data-live-sort]")) {
    node.dataset.sort = String(run.sorts[node.dataset.liveSort!] ?? -Infinity);
  }
  const bar = root.querySelector("progress");
  if (bar) bar.value = Math.max(0, run.percent);
}

export function showRole(root: HTMLElement, role: LiveRole): void {
  setPhase(root, role.phase, role.kind);
  for (const node of root.querySelectorAll<HTMLElement>("[data-live]")) {
    const key = node.dataset.live!;
    if (key === "phase") continue;
    if (key === "node") setText(node, role.node);
    else if (key === "reason") {
      setText(node, role.reason);
      if (node.classList.contains("message")) node.hidden = role.reason === "";
    } else setText(node, role.texts[key] ?? "–");
    if (node.classList.contains("optional")) node.hidden = ["", "–"].includes(node.textContent!);
  }
}

// find returns the element with these data attributes. Their values are compared, not
// put into a selector.
export function find(all: Iterable<HTMLElement>, data: Record<string, string>): HTMLElement | undefined {
  for (const node of all) {
    if (Object.entries(data).every(([key, value]) => node.dataset[key] === value)) return node;
  }
  return undefined;
}
