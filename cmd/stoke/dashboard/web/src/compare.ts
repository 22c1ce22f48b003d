// Several runs on one chart.
import { Chart, type Axis } from "./chart";
import { read, Stream } from "./connection";
import { control, fill, later, onSmooth } from "./controls";
import { Curves, type History } from "./curves";
import { type LiveRun, showRun } from "./live";
import { seconds, title } from "./numbers";
import { lineOf } from "./run";

interface Compared { address: string; label: string; colour: number; curves: Curves; started: number; box: HTMLInputElement }

export function compare(): void {
  const legend = control("legend");
  if (!legend) return;
  const items = [...legend.children] as HTMLElement[];
  const all: Compared[] = items.map((li, i) => ({
    address: li.dataset.run!, label: li.textContent!.trim(), colour: i, curves: new Curves(), started: 0, box: li.querySelector("input")!,
  }));
  for (const node of document.querySelectorAll<HTMLElement>("[data-run]")) {
    const at = all.findIndex((c) => c.address === node.dataset.run);
    node.querySelector(".swatch")?.classList.add("c" + (at % 10));
  }
  const box = control("compared")!, empty = box.querySelector<HTMLElement>("[data-empty]")!;
  const axis = control<HTMLSelectElement>("axis")!, metric = control<HTMLSelectElement>("metric")!, logScale = control<HTMLInputElement>("log-scale")!;
  const goal = control<HTMLInputElement>("goal")!;
  let chart: Chart | null = null;

  const draw = (): void => {
    const names = new Set(all.flatMap((c) => c.curves.list().filter((x) => x.role === "" && x.mean.length > 0).map((x) => x.name)));
    fill(metric, [...names].sort((a, b) => order(a) - order(b) || a.localeCompare(b)).map((n) => [n, title(n)]));
    const name = metric.value, x = axis.value as Axis;
    const lines = all.filter((c) => c.box.checked).flatMap((c) => {
      const curve = c.curves.get("", name);
      return curve && curve.mean.length > 0 ? [lineOf(curve, x, weight(), c.started, c.label, c.colour, chart?.range ?? null)] : [];
    });
    empty.hidden = lines.length > 0;
    empty.textContent = all.every((c) => !c.box.checked) ? "Every run is switched off above." : "These runs have no numbers yet.";
    if (!chart) chart = new Chart(box, { title: title(name), name, height: 380, x, zoomed: () => draw() });
    chart.figure.hidden = lines.length === 0;
    chart.draw(lines);
    reach();
  };
  // reach shows when each run first had the goal: from above for losses and errors.
  const reach = (): void => {
    const wanted = Number(goal.value.replace("%", "")) / (goal.value.includes("%") ? 100 : 1);
    const isLow = /loss|error|perplexity|norm|seconds/.test(metric.value);
    for (const c of all) {
      const cell = document.querySelectorAll<HTMLElement>("tr[data-run]");
      const row = [...cell].find((r) => r.dataset.run === c.address)?.querySelector("[data-goal]");
      if (!row) continue;
      const curve = c.curves.get("", metric.value);
      const at = goal.value.trim() === "" || Number.isNaN(wanted) ? -1 : (curve?.mean.findIndex((v) => (isLow ? v <= wanted : v >= wanted)) ?? -1);
      row.textContent = goal.value.trim() === "" ? "–" : at < 0 ? "not reached" : seconds((curve!.times[at]! - c.started) / 1000);
    }
  };
  const weight = onSmooth(draw);
  const rename = (): void => { chart?.remove(); chart = null; draw(); };
  metric.addEventListener("change", rename);
  axis.addEventListener("change", rename);
  logScale.addEventListener("change", () => chart?.setOptions({ isLog: logScale.checked }));
  goal.addEventListener("input", later(150, reach));
  legend.addEventListener("change", draw);

  const load = async (only?: Set<string>): Promise<void> => {
    await Promise.all(all.filter((c) => !only || only.has(c.address)).map(async (c) => {
      try {
        const h = await read<History>("/data/series?run=" + encodeURIComponent(c.address));
        c.curves.set(h.curves);
        c.started = h.started;
      } catch { /* a run that is gone has no curve */ }
    }));
    draw();
  };
  let last = 0;
  new Stream("/live/runs", {
    open: () => void load(),
    runs: (d: { runs: LiveRun[] | null }) => {
      const live = new Set<string>();
      for (const run of d.runs ?? []) {
        if (!all.some((c) => c.address === run.address)) continue;
        for (const row of document.querySelectorAll<HTMLElement>("tr[data-run]")) if (row.dataset.run === run.address) showRun(row, run);
        if (run.live) live.add(run.address);
      }
      if (live.size > 0 && Date.now() - last > 4000) { last = Date.now(); void load(live); }
    },
  });
}

function order(name: string): number {
  const at = ["loss", "accuracy", "evaluation.loss"].indexOf(name);
  return at < 0 ? 3 : at;
}
