// One run: curves, usage of its roles, events, log.
import { Chart, type Axis, type Line, type Range } from "./chart";
import { read, Stream } from "./connection";
import { control, fill, onSmooth, soon } from "./controls";
import { type Curve, Curves, even, type History, smooth } from "./curves";
import { find, type LiveRun, showRole, showRun } from "./live";
import { drift } from "./drift";
import { ledger } from "./ledger";
import { log } from "./logs";
import { title } from "./numbers";

interface Event { time: string; type: string; step: number; message: string }

const first = ["accuracy", "loss", "evaluation.loss", "samples_per_second", "norm"];
const usage = ["cpu", "memory_bytes", "received_per_second", "sent_per_second", "compute_share", "communication_share", "data_share",
  "gpu.utilization_percent", "gpu.memory_used_bytes", "gpu.power_watts", "gpu.temperature_celsius"];
const mostCharts = 40;

function rank(name: string): number { const at = first.indexOf(name); return at < 0 ? first.length : at; }

// lineOf returns a line for a chart that shows a part of the axis, raw and smoothed.
export function lineOf(c: Curve, axis: Axis, weight: number, started: number, label: string, colour: number, part: Range): Line {
  const all = axis === "step" ? c.steps : axis === "time" ? c.times.map((t) => t / 1000) : c.times.map((t) => (t - started) / 1000);
  const isSmooth = weight > 0 && c.mean.length > 2;
  const keep = ascending(all);
  const pick = (a: number[]) => (keep ? keep.map((i) => a[i]!) : a);
  const [x, y] = c.name === "workers" ? [pick(all), pick(c.mean)] : even(pick(all), pick(c.mean), part);
  return { label, colour, x, y: isSmooth ? smooth(y, weight) : y, raw: isSmooth ? y : undefined };
}

// ascending returns the indices that make x grow strictly, as uPlot needs it; null
// where all do. Of equal ones the newest stays.
function ascending(x: number[]): number[] | null {
  if (x.every((v, i) => i === 0 || v > x[i - 1]!)) return null;
  const kept: number[] = [];
  x.forEach((v, i) => {
    while (kept.length > 0 && x[kept.at(-1)!]! >= v) kept.pop();
    kept.push(i);
  });
  return kept;
}

export function run(): void {
  const root = control<HTMLElement>("run")!;
  const address = root.dataset.address!, query = "run=" + encodeURIComponent(address);
  const curves = new Curves(), roles = new Curves();
  const charts = new Map<string, Chart>(), box = control("metrics")!, usageBox = control("usage-charts")!;
  const axis = control<HTMLSelectElement>("axis")!, metric = control<HTMLSelectElement>("metric")!, logScale = control<HTMLInputElement>("log-scale")!;
  let history: History | null = null;

  const draw = (): void => {
    const x = axis.value as Axis;
    const list = curves.list().filter((c) => c.role === "" && c.mean.length > 0);
    list.sort((a, b) => rank(a.name) - rank(b.name) || a.name.localeCompare(b.name));
    const members = membersOf(history, list);
    if (members) list.push(members);
    fill(metric, list.map((c) => [c.name, title(c.name)]));
    const shown = list.filter((c) => metric.value === "" || c.name === metric.value).slice(0, mostCharts);
    for (const [name, chart] of charts) if (!shown.some((c) => c.name === name)) { chart.remove(); charts.delete(name); }
    box.querySelector<HTMLElement>("[data-empty]")!.hidden = shown.length > 0;
    box.classList.toggle("one", metric.value !== "");
    for (const c of shown) {
      let chart = charts.get(c.name);
      if (!chart) {
        chart = new Chart(box, { title: title(c.name), name: c.name, key: "run", x, height: metric.value ? 380 : 200, isLog: logScale.checked && c !== members,
          isSteps: c === members, fromZero: c === members, zoomed: () => draw() });
        charts.set(c.name, chart);
      }
      chart.draw([lineOf(c, x, c.name === "workers" ? 0 : weight(), history?.started ?? 0, title(c.name), 0, chart.range)]);
    }
  };
  const weight = onSmooth(draw);

  const usageCharts = new Map<string, Chart>();
  const rows = [...control("roles")!.querySelectorAll<HTMLElement>("tr[data-role]")];
  const index = new Map(rows.map((row, i) => [row.dataset.role!, i]));
  rows.forEach((row, i) => row.querySelector(".swatch")?.classList.add("c" + (i % 10)));
  const drawUsage = (): void => {
    for (const name of usage) {
      const shown = roles.list().filter((c) => c.name === name && c.mean.length > 0 && c.mean.some((v) => v > 0));
      if (shown.length === 0) continue;
      let chart = usageCharts.get(name);
      if (!chart) {
        chart = new Chart(usageBox, { title: title(name), name, key: "usage", x: "time", height: 160, fromZero: true, zoomed: () => drawUsage() });
        usageCharts.set(name, chart);
      }
      const range = chart.range;
      const lines = shown.map((c) => lineOf({ ...c, times: c.times.map((t) => Math.round(t / 1000) * 1000) }, "time", 0, 0, c.role, index.get(c.role) ?? 0, range))
        .sort((a, b) => a.colour - b.colour);
      chart.draw(lines);
    }
  };

  const load = async (): Promise<void> => {
    try {
      history = await read<History>("/data/series?" + query);
      curves.set(history.curves);
      draw();
      roles.set((await read<History>("/data/series?of=roles&" + query)).curves);
      drawUsage();
    } catch (e) {
      const empty = box.querySelector<HTMLElement>("[data-empty]")!;
      empty.hidden = false;
      empty.textContent = e instanceof Error ? e.message : String(e);
    }
  };
  const redraw = soon(250, () => { draw(); drawUsage(); });

  axis.addEventListener("change", () => { for (const c of charts.values()) c.setOptions({ x: axis.value as Axis }); draw(); });
  logScale.addEventListener("change", () => { for (const c of charts.values()) c.setOptions({ isLog: logScale.checked }); });
  metric.addEventListener("change", () => { for (const c of charts.values()) c.remove(); charts.clear(); draw(); });

  new Stream("/live/run?" + query, {
    open: () => void load(),
    status: (s: LiveRun) => {
      showRun(root, s);
      for (const role of s.roles ?? []) {
        const row = find(rows, { role: role.name });
        if (row) showRole(row, role);
        else if (rows.length > 0 || s.roles!.length > 0) { location.reload(); return; }
      }
    },
    points: (fresh: Curve[]) => {
      curves.add(fresh.filter((c) => c.role === ""));
      roles.add(fresh.filter((c) => c.role !== "" && usage.includes(c.name)));
      redraw();
    },
    events: (fresh: Event[]) => showEvents(fresh),
    back: () => void load(),
    other: () => location.reload(),
  });
  log(query);
  drift(query);
  ledger(query, root.dataset.isLive === "true");
}

// membersOf returns the number of workers over the run, up to its newest step; nothing
// for runs without that.
function membersOf(history: History | null, list: Curve[]): Curve | undefined {
  const w = history?.workers, newest = list.find((c) => c.name === "loss") ?? list[0];
  if (!w?.mean?.length || !newest || list.some((c) => c.name === "workers")) return undefined;
  const end = (own: number[], other: number[]) => [...own, Math.max(own.at(-1)!, other.at(-1) ?? 0)];
  return { role: "", name: "workers", times: end(w.times, newest.times), steps: end(w.steps, newest.steps), mean: [...w.mean, w.mean.at(-1)!] };
}

function showEvents(fresh: Event[]): void {
  const rows = control("event-rows")!, saved = control("checkpoint-rows")!;
  for (const e of fresh) {
    rows.prepend(rowOf([e.time, e.type, String(e.step), e.message]));
    while (rows.childElementCount > 300) rows.lastElementChild!.remove();
    if (e.type !== "checkpoint") continue;
    saved.querySelector("td[colspan]")?.parentElement?.remove();
    saved.prepend(rowOf([e.time, String(e.step)]));
    while (saved.childElementCount > 50) saved.lastElementChild!.remove();
  }
}

function rowOf(cells: string[]): HTMLTableRowElement {
  const row = document.createElement("tr");
  cells.forEach((text, i) => {
    const cell = row.insertCell();
    cell.textContent = text;
    if (i === 0) cell.className = "nowrap";
    if (i === 2 || cells.length === 2 && i === 1) cell.className = "num";
  });
  return row;
}
