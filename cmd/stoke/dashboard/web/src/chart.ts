// Charts: uPlot with the colours of the page, a value in words, and keys.
import uPlot from "uplot";
import { format, isBytes, seconds } from "./numbers";

export type Axis = "step" | "time" | "elapsed";

export interface Line { label: string; colour: number; x: number[]; y: number[]; raw?: number[]; min?: number[]; max?: number[] }

const dark = matchMedia("(prefers-color-scheme: dark)");
const colours = 10;

function token(name: string): string { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

export function colour(i: number): string { return token("--line-" + (i % colours)); }

// powers are the distances of lines on an axis of bytes.
const powers = Array.from({ length: 50 }, (_, i) => 2 ** i);

// clock writes times of day; where a day is shorter than the chart, the date too.
function clock(_: uPlot, splits: number[], __: number, ___: number, step: number): string[] {
  return splits.map((s) => {
    const t = new Date(s * 1000), two = (n: number) => String(n).padStart(2, "0");
    const day = `${t.getDate()} ${t.toLocaleString("en", { month: "short" })}`;
    if (step >= 86400) return day;
    return `${two(t.getHours())}:${two(t.getMinutes())}${step < 60 ? ":" + two(t.getSeconds()) : ""}`;
  });
}

// Range is the part of an axis that a chart shows; null: all of it.
export type Range = [number, number] | null;

// Charts of one key have the same cursor and the same range.
export interface Options {
  title: string; name: string; height?: number; key?: string; x?: Axis; isLog?: boolean; isSteps?: boolean; fromZero?: boolean;
  zoomed?: () => void; // draws again: lines have more points where a chart shows less
}

const groups = new Map<string, Set<Chart>>();

// Chart is a figure with one or several lines.
export class Chart {
  readonly figure: HTMLElement;
  range: Range = null;
  private plot: uPlot | null = null;
  private box: HTMLElement;
  private value: HTMLElement;
  private lines: Line[] = [];
  private columns: { label: string; line: Line }[] = []; // of the plot's series, which show a value

  constructor(parent: Element, private options: Options) {
    this.figure = document.createElement("figure");
    this.figure.className = "chart";
    const head = document.createElement("figcaption");
    const name = document.createElement("span");
    name.className = "chart-title";
    name.textContent = options.title;
    this.value = document.createElement("span");
    this.value.className = "chart-value";
    head.append(name, this.value);
    this.box = document.createElement("div");
    this.box.className = "chart-box";
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "img");
    this.box.addEventListener("keydown", (e) => this.move(e));
    this.box.addEventListener("blur", () => this.plot?.setCursor({ left: -10, top: -10 }));
    this.box.addEventListener("dblclick", () => this.zoom(null));
    this.box.setAttribute("aria-description", "Arrow keys, Home and End move the cursor; plus and minus zoom; 0 shows all of the axis.");
    if (options.key) groups.set(options.key, (groups.get(options.key) ?? new Set()).add(this));
    this.figure.append(head, this.box);
    parent.append(this.figure);
    new ResizeObserver(() => this.resize()).observe(this.box);
    dark.addEventListener("change", () => this.rebuild());
  }

  setOptions(o: Partial<Options>): void {
    if (o.x && o.x !== this.options.x) this.range = null;
    Object.assign(this.options, o);
    this.rebuild();
  }

  // zoom shows a part of the axis, in all charts of the key.
  private zoom(range: Range): void {
    const all = [...((this.options.key && groups.get(this.options.key)) || [this])];
    for (const c of all) c.range = range;
    for (const draw of new Set(all.map((c) => c.options.zoomed ?? (() => c.rebuild())))) draw();
  }

  // draw shows lines; the plot is made again only where their number changes.
  draw(lines: Line[]): void {
    const sameShape = this.plot && lines.length === this.lines.length &&
      lines.every((l, i) => !!l.raw === !!this.lines[i]!.raw && !!l.min === !!this.lines[i]!.min && l.label === this.lines[i]!.label && l.colour === this.lines[i]!.colour);
    this.lines = lines;
    if (sameShape) this.plot!.setData(this.data());
    else this.rebuild();
    const cursor = this.plot?.cursor;
    this.say(cursor && (cursor.left ?? -1) >= 0 ? cursor.idx ?? null : null);
    this.box.setAttribute("aria-label", this.words());
    this.figure.dataset.lines = String(lines.length);
    this.figure.dataset.last = String(Math.max(0, ...lines.map((l) => l.x.at(-1) ?? 0)));
    this.figure.dataset.range = this.range?.join(" ") ?? "";
  }

  private words(): string {
    if (this.lines.length === 0) return `${this.options.title}: no values`;
    const parts = this.lines.slice(0, 5).map((l) => {
      const first = l.y[0], last = l.y.at(-1);
      const name = this.lines.length > 1 ? l.label + " " : "";
      return `${name}from ${format(this.options.name, first)} to ${format(this.options.name, last)}`;
    });
    return `${this.options.title}: ${parts.join("; ")}${this.lines.length > 5 ? "; and more" : ""}`;
  }

  private data(): uPlot.AlignedData {
    const tables = this.lines.map((l) => [l.x, ...(l.min ? [l.min, l.max!] : []), ...(l.raw ? [l.raw] : []), l.y] as uPlot.AlignedData);
    if (tables.length === 0) return [[]];
    return tables.length === 1 ? tables[0]! : uPlot.join(tables);
  }

  private rebuild(): void {
    this.plot?.destroy();
    this.plot = null;
    if (this.lines.length === 0) return;
    const series: uPlot.Series[] = [{}], bands: uPlot.Band[] = [];
    this.columns = [];
    const steps = this.options.isSteps ? uPlot.paths.stepped!({ align: 1 }) : undefined;
    this.lines.forEach((l, at) => {
      const c = colour(l.colour);
      if (l.min) {
        series.push({ stroke: "transparent", width: 0, points: { show: false }, spanGaps: true });
        series.push({ stroke: "transparent", width: 0, points: { show: false }, spanGaps: true });
        bands.push({ series: [series.length - 1, series.length - 2], fill: c + "22" });
      }
      if (l.raw) series.push({ stroke: c + "55", width: 1, points: { show: false }, spanGaps: true });
      series.push({ label: l.label, stroke: c, width: 1.75, points: { show: () => (this.lines[at]?.x.length ?? 3) < 3, size: 5, fill: c }, spanGaps: true, paths: steps });
      this.columns[series.length - 1] = { label: l.label, line: l };
    });
    const muted = token("--muted"), grid = { stroke: token("--grid"), width: 1 };
    const font = "12px " + token("--font");
    const isTime = this.options.x === "time";
    this.plot = new uPlot({
      width: Math.max(200, this.box.clientWidth), height: this.options.height ?? 200, series, bands,
      legend: { show: false }, cursor: { sync: this.options.key ? { key: this.options.key } : undefined, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      scales: { x: { time: isTime, range: (_, min, max) => this.range ?? [min, max] }, y: { distr: this.options.isLog ? 3 : 1, range: this.options.fromZero ? (_, __, max) => [0, max > 0 ? max * 1.1 : 1] : undefined } },
      axes: [
        { stroke: muted, grid: { show: false }, ticks: { stroke: token("--grid"), size: 4 }, font, size: 30,
          space: 70, values: isTime ? clock : (_, v) => v.map((x) => (x === null ? "" : this.options.x === "elapsed" ? seconds(x) : format("", x))) },
        { stroke: muted, grid, ticks: { show: false }, font, incrs: isBytes(this.options.name) ? powers : undefined, size: isBytes(this.options.name) ? 78 : 58,
          values: (_, v) => v.map((x) => (x === null ? "" : format(this.options.name, x))) },
      ],
      hooks: { setCursor: [(u) => this.say(u.cursor.idx ?? null)], setSelect: [(u) => this.select(u)] },
    }, this.data(), this.box);
  }

  // say writes the value at an index of the plot, or the newest one.
  private say(at: number | null): void {
    const u = this.plot;
    if (!u) { this.value.textContent = ""; return; }
    if (at === null && this.lines.length > 1) { this.value.textContent = ""; return; } // a legend and a table have the newest values
    const parts: string[] = [];
    for (let s = 1; s < u.series.length; s++) {
      const column = this.columns[s];
      if (!column) continue;
      let i = at ?? u.data[0].length - 1;
      const y = u.data[s]!;
      while (i > 0 && (y[i] === undefined || y[i] === null)) i--;
      parts.push((this.lines.length > 1 ? column.label + " " : "") + format(this.options.name, y[i]));
    }
    const x = at === null ? undefined : u.data[0][at];
    const where = x === undefined ? "" : this.options.x === "time" ? new Date(x * 1000).toLocaleTimeString("en-GB") : this.options.x === "elapsed" ? seconds(x) : "step " + format("", x);
    const shown = parts.length > 4 ? "" : parts.join(" · ");
    this.value.textContent = [where, shown].filter((t) => t !== "").join(" · ");
  }

  // select shows the part that was selected with the mouse.
  private select(u: uPlot): void {
    const { left, width } = u.select;
    if (width < 4) return;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoom([u.posToVal(left, "x"), u.posToVal(left + width, "x")]);
  }

  // move moves the cursor and the range by keys.
  private move(e: KeyboardEvent): void {
    const u = this.plot;
    if (!u || u.data[0].length === 0 || e.ctrlKey || e.metaKey || e.altKey) return;
    const xs = u.data[0], first = xs[0]!, last = xs.at(-1)!, n = xs.length;
    const [low, high] = this.range ?? [first, last];
    let i = (u.cursor.left ?? -1) >= 0 ? u.cursor.idx ?? n - 1 : n - 1;
    switch (e.key) {
      case "ArrowLeft": case "ArrowRight": i = Math.min(n - 1, Math.max(0, i + (e.key === "ArrowLeft" ? -1 : 1) * (e.shiftKey ? 10 : 1))); break;
      case "Home": i = 0; break;
      case "End": i = n - 1; break;
      case "+": case "=": case "-": {
        const scale = e.key === "-" ? 2 : 0.5, width = (high - low) * scale, x = Math.min(high, Math.max(low, xs[i]!));
        const from = Math.max(first, Math.min(last - width, x - (x - low) * scale));
        if (width >= last - first) this.zoom(null);
        else if (xs.filter((v) => v >= from && v <= from + width).length > 1) this.zoom([from, from + width]);
        break;
      }
      case "0": case "Escape": this.zoom(null); break;
      default: return;
    }
    e.preventDefault();
    if (!e.key.startsWith("Arrow") && e.key !== "Home" && e.key !== "End") return;
    const x = xs[i]!;
    if (this.range && (x < low || x > high)) this.zoom(x < low ? [x, x + high - low] : [x - high + low, x]);
    this.plot!.setCursor({ left: this.plot!.valToPos(x, "x"), top: 20 });
  }

  private resize(): void {
    const width = this.box.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.options.height ?? 200 });
  }

  remove(): void {
    groups.get(this.options.key ?? "")?.delete(this);
    this.plot?.destroy();
    this.figure.remove();
  }
}

const svg = "http://www.w3.org/2000/svg";

// spark draws a small chart without axes into a box; it starts at 0.
export function spark(box: Element, values: number[]): void {
  let root = box.querySelector("svg");
  if (!root) {
    root = document.createElementNS(svg, "svg");
    root.setAttribute("viewBox", "0 0 100 24");
    root.setAttribute("preserveAspectRatio", "none");
    root.setAttribute("aria-hidden", "true");
    root.append(document.createElementNS(svg, "path"), document.createElementNS(svg, "path"));
    root.children[0]!.setAttribute("class", "area");
    root.children[1]!.setAttribute("class", "stroke");
    box.append(root);
  }
  if (values.length === 0) return;
  const top = Math.max(...values, 1e-12) * 1.1;
  const xs = values.length === 1 ? [0, 100] : values.map((_, i) => (i * 100) / (values.length - 1));
  const ys = (values.length === 1 ? [values[0]!, values[0]!] : values).map((v) => 23.5 - (23 * v) / top);
  const line = xs.map((x, i) => `${i === 0 ? "M" : "L"}${x.toFixed(2)} ${ys[i]!.toFixed(2)}`).join("");
  root.children[0]!.setAttribute("d", `${line}L100 24L0 24Z`);
  root.children[1]!.setAttribute("d", line);
}
