// Curves as the server sends them, and their growth.

export interface Curve {
  role: string; name: string; times: number[]; steps: number[]; mean: number[]; min?: number[]; max?: number[];
}

export interface History { number: number; curves: Curve[]; workers: Curve; started: number }

const most = 1200; // points of a curve in the page

// Curves keeps the curves of one run by role and name.
export class Curves {
  private all = new Map<string, Curve>();

  private key(role: string, name: string): string { return role + "\u0000" + name; }

  set(curves: Curve[]): void {
    this.all.clear();
    for (const c of curves) this.all.set(this.key(c.role, c.name), { ...c, mean: c.mean ?? [], times: c.times ?? [], steps: c.steps ?? [] });
  }

  get(role: string, name: string): Curve | undefined { return this.all.get(this.key(role, name)); }

  list(): Curve[] { return [...this.all.values()]; }

  // add appends newer points; points that are known are left out.
  add(curves: Curve[]): void {
    for (const c of curves) {
      const have = this.all.get(this.key(c.role, c.name));
      if (!have) { this.all.set(this.key(c.role, c.name), { ...c }); continue; }
      let last = have.times.at(-1) ?? 0;
      const lastStep = have.steps.at(-1) ?? -1;
      c.times.forEach((t, i) => {
        if (t < last || t === last && (c.steps[i] ?? 0) <= lastStep) return;
        last = t;
        if (c.min && !have.min) { have.min = [...have.mean]; have.max = [...have.mean]; }
        have.times.push(t);
        have.steps.push(c.steps[i] ?? 0);
        have.mean.push(c.mean[i]!);
        have.min?.push(c.min?.[i] ?? c.mean[i]!);
        have.max?.push(c.max?.[i] ?? c.mean[i]!);
      });
      if (have.times.length > most) halve(have);
    }
  }
}

// halve merges neighbours.
function halve(c: Curve): void {
  const n = c.times.length;
  const last = (a: number[]) => a.filter((_, i) => i % 2 === 1 || i === n - 1);
  const pair = (a: number[], f: (x: number, y: number) => number) =>
    a.flatMap((v, i) => (i % 2 === 1 ? [f(a[i - 1]!, v)] : i === n - 1 ? [v] : []));
  const min = pair(c.min ?? c.mean, Math.min), max = pair(c.max ?? c.mean, Math.max);
  c.times = last(c.times); c.steps = last(c.steps);
  c.mean = pair(c.mean, (x, y) => (x + y) / 2);
  c.min = min; c.max = max;
}

// even merges the points of a line that are in the same column of a chart which shows a part
// of the axis: the newest part of a history has more points than the others, and would look
// rougher. There are about as many columns as the older half has points for, 100 to 600, and
// a column's width is a power of two, so that columns stay as the line grows.
export function even(x: number[], y: number[], part: [number, number] | null): [number[], number[]] {
  const [low, high] = part ?? [x[0]!, x.at(-1)!];
  if (x.length < 3 || !(high > low)) return [x, y];
  const older = x.filter((v) => v >= low && v <= (low + high) / 2).length;
  const width = 2 ** Math.floor(Math.log2((high - low) / Math.min(300, Math.max(100, 2 * older))));
  const xs: number[] = [], ys: number[] = [];
  let column = NaN, n = 0;
  x.forEach((v, i) => {
    const at = Math.floor(v / width);
    if (at !== column) { column = at; n = 0; xs.push(v); ys.push(0); }
    n++;
    xs[xs.length - 1] = v;
    ys[ys.length - 1]! += (y[i]! - ys.at(-1)!) / n;
  });
  return [xs, ys];
}

// smooth is the exponential moving mean of package series: corrected for its beginning.
export function smooth(values: number[], weight: number): number[] {
  if (!(weight > 0)) return values;
  let last = 0, part = 0;
  return values.map((v) => {
    last = last * weight + v * (1 - weight);
    part = part * weight + (1 - weight);
    return last / part;
  });
}
