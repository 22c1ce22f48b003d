// Cards of workers, and the page of one worker.
import { Chart, spark } from "./chart";
import { read, Stream } from "./connection";
import { control, fill, later, onSmooth, soon } from "./controls";
import { type Curve, Curves, type History } from "./curves";
import { find, type LiveRole, type LiveRun, showRole } from "./live";
import { title } from "./numbers";
import { lineOf } from "./run";

const shown = 60; // points of a small chart

export function workers(): void {
  const list = control("cards");
  if (!list) { new Stream("/live/workers", { roles: (r: unknown[]) => { if (r.length > 0) location.reload(); } }); return; }
  const query = list.dataset.query ? "?run=" + encodeURIComponent(list.dataset.query) : "";
  const cards = [...list.children] as HTMLElement[];
  const runs = new Map<string, Curves>();

  const draw = (): void => {
    for (const card of cards) {
      const curves = runs.get(card.dataset.run!);
      for (const box of card.querySelectorAll<HTMLElement>("[data-chart]")) {
        const c = curves?.get(card.dataset.role!, box.dataset.chart!);
        if (c) spark(box, c.mean.slice(-shown));
      }
    }
  };
  const filter = control<HTMLInputElement>("filter")!;
  filter.addEventListener("input", later(60, () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const card of cards) card.hidden = !words.every((w) => (card.textContent ?? "").toLowerCase().includes(w));
  }));
  const load = async (): Promise<void> => {
    for (const [address, curves] of Object.entries(await read<Record<string, Curve[]>>("/data/workers" + query))) {
      const c = new Curves();
      c.set(curves);
      runs.set(address, c);
    }
    draw();
  };
  new Stream("/live/workers" + query, {
    open: () => void load().catch(() => undefined),
    roles: (roles: LiveRole[]) => {
      let isOther = false;
      for (const role of roles) {
        const card = find(cards, { run: role.run!, role: role.name });
        if (!card) { isOther = true; continue; }
        showRole(card, role);
        card.className = "card " + role.kind;
      }
      if (isOther) location.reload();
    },
    points: (fresh: Record<string, Curve[]>) => {
      for (const [address, curves] of Object.entries(fresh)) {
        if (!runs.has(address)) runs.set(address, new Curves());
        runs.get(address)!.add(curves);
      }
      draw();
    },
  });
}

export function worker(): void {
  const root = control<HTMLElement>("worker")!, box = control("metrics")!, metric = control<HTMLSelectElement>("metric")!;
  const query = "run=" + encodeURIComponent(root.dataset.address!), role = root.dataset.role!;
  const curves = new Curves(), charts = new Map<string, Chart>();
  const draw = (): void => {
    const list = curves.list().filter((c) => c.role === role && c.mean.length > 0);
    fill(metric, list.map((c) => [c.name, title(c.name)]));
    box.querySelector<HTMLElement>("[data-empty]")!.hidden = list.length > 0;
    const wanted = list.filter((c) => metric.value === "" || c.name === metric.value);
    box.classList.toggle("one", metric.value !== "");
    for (const [name, chart] of charts) if (!wanted.some((c) => c.name === name)) { chart.remove(); charts.delete(name); }
    for (const c of wanted) {
      let chart = charts.get(c.name);
      if (!chart) {
        chart = new Chart(box, { title: title(c.name), name: c.name, key: "worker", x: "time", height: metric.value ? 380 : 200, fromZero: true, zoomed: () => draw() });
        charts.set(c.name, chart);
      }
      chart.draw([lineOf(c, "time", weight(), 0, title(c.name), 0, chart.range)]);
    }
  };
  const weight = onSmooth(draw);
  metric.addEventListener("change", () => { for (const c of charts.values()) c.remove(); charts.clear(); draw(); });
  const redraw = soon(250, draw);
  new Stream(`/live/run?${query}&role=${encodeURIComponent(role)}`, {
    open: () => void read<History>(`/data/series?${query}&role=${encodeURIComponent(role)}`).then((h) => { curves.set(h.curves); draw(); }).catch(() => undefined),
    status: (s: LiveRun) => { for (const r of s.roles ?? []) if (r.name === role) showRole(root, r); },
    points: (fresh: Curve[]) => { curves.add(fresh.filter((c) => c.role === role)); redraw(); },
    other: () => location.reload(),
  });
}
