// The list of runs: filter, sort, select, live values.
import { Stream } from "./connection";
import { control, later } from "./controls";
import { type LiveRun, showRun } from "./live";

export function runs(): void {
  const table = control<HTMLTableElement>("runs");
  const body = table?.tBodies[0];
  if (!table || !body) {
    new Stream("/live/runs", { runs: (d: { all: string[] }) => { if (d.all.length > 0) location.reload(); } });
    return;
  }
  const rows = () => [...body.rows] as HTMLTableRowElement[];
  const order = rows();
  const filter = control<HTMLInputElement>("filter")!, phase = control<HTMLSelectElement>("phase")!, sort = control<HTMLSelectElement>("sort")!;
  const all = control<HTMLInputElement>("all")!, compare = control<HTMLButtonElement>("compare")!, chosen = control("chosen")!;
  let key = "", down = false;

  const apply = (): void => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows()) {
      const text = (row.dataset.run! + " " + (row.querySelector(".phase")?.textContent ?? "")).toLowerCase();
      row.hidden = !(words.every((w) => text.includes(w)) && (phase.value === "" || row.dataset.kind === phase.value));
      if (!row.hidden) shown++;
    }
    control("nothing")!.hidden = shown > 0;
    choose();
  };

  const place = (): void => {
    const sorted = key === "" ? [...order] : rows().sort((a, b) => {
      const x = valueOf(a, key), y = valueOf(b, key);
      const c = typeof x === "string" ? x.localeCompare(y as string, "en", { numeric: true }) : x === y ? 0 : x === -Infinity ? 1 : y === -Infinity ? -1 : x - (y as number);
      const missing = x === -Infinity || y === -Infinity;
      return down && !missing ? -c : c;
    });
    if (sorted.some((row, i) => body.rows[i] !== row)) {
      const focused = document.activeElement;
      body.append(...sorted);
      if (focused instanceof HTMLElement && body.contains(focused)) focused.focus({ preventScroll: true });
    }
    for (const th of table.tHead!.querySelectorAll<HTMLElement>("th[data-key]")) {
      th.setAttribute("aria-sort", th.dataset.key === key ? (down ? "descending" : "ascending") : "none");
    }
    sort.value = key;
  };

  function choose(): void {
    const boxes = [...body!.querySelectorAll<HTMLInputElement>("input[name=run]")];
    const n = boxes.filter((b) => b.checked).length;
    compare.disabled = n < 2;
    chosen.textContent = n === 0 ? "Select two or more runs to compare." : `${n} selected`;
    const shown = boxes.filter((b) => !b.closest("tr")!.hidden);
    all.checked = shown.length > 0 && shown.every((b) => b.checked);
    all.indeterminate = !all.checked && shown.some((b) => b.checked);
  }

  filter.addEventListener("input", later(60, apply));
  filter.addEventListener("keydown", (e) => { if (e.key === "Enter") e.preventDefault(); });
  phase.addEventListener("change", apply);
  sort.addEventListener("change", () => { key = sort.value; down = key === "accuracy" || key === "started"; place(); });
  all.addEventListener("change", () => {
    for (const row of rows()) if (!row.hidden) row.querySelector<HTMLInputElement>("input[name=run]")!.checked = all.checked;
    choose();
  });
  body.addEventListener("change", choose);
  for (const th of table.tHead!.querySelectorAll<HTMLElement>("th[data-key]")) {
    th.querySelector("button")!.addEventListener("click", () => {
      if (key === th.dataset.key) down = !down;
      else { key = th.dataset.key!; down = key === "accuracy" || key === "started" || key === "progress"; }
      place();
    });
  }
  apply();

  new Stream("/live/runs", {
    runs: (d: { runs: LiveRun[] | null; all: string[] }) => {
      const byAddress = new Map(rows().map((row) => [row.dataset.run!, row]));
      const isOther = d.all.length !== byAddress.size || d.all.some((a) => !byAddress.has(a));
      for (const run of d.runs ?? []) {
        const row = byAddress.get(run.address);
        if (row) showRun(row, run);
      }
      if (isOther) { location.reload(); return; }
      apply();
      if (!body.contains(document.activeElement)) place(); // a row does not move away from the keyboard
    },
  });
}

function valueOf(row: HTMLTableRowElement, key: string): string | number {
  if (key === "name") return row.querySelector("th")!.dataset.sort!;
  if (key === "phase") return row.querySelector(".phase")!.textContent!;
  const cell = row.querySelector<HTMLElement>(`[data-live-sort="${key}"], td[data-live="${key}"]`);
  const v = Number(cell?.dataset.sort);
  return Number.isNaN(v) ? -Infinity : v; // no value
}
