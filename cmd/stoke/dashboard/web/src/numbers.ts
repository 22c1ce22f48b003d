// Numbers for people, as the server writes them.

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

function bytes(n: number): string {
  let at = 0;
  while (Math.abs(n) >= 1024 && at < units.length - 1) { n /= 1024; at++; }
  return `${at === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)} ${units[at]}`;
}

export function isBytes(name: string): boolean {
  return name.endsWith("_bytes") || name === "received_per_second" || name === "sent_per_second" || name === "read_per_second" || name === "written_per_second";
}

// format returns a value of the metric with this name.
export function format(name: string, v: number | null | undefined): string {
  if (v === null || v === undefined || !Number.isFinite(v)) return "–";
  if (isBytes(name)) return bytes(v) + (name.endsWith("_per_second") ? "/s" : "");
  if (name === "cpu") return v.toFixed(2);
  if (Number.isInteger(v) || Math.abs(v) >= 10000) return Math.round(v).toLocaleString("en").replaceAll(",", "\u202f");
  return String(Number(v.toPrecision(5)));
}

const titles: Record<string, string> = {
  cpu: "CPU, processors", memory_bytes: "Memory", received_per_second: "Network received", sent_per_second: "Network sent",
  read_per_second: "Disk read", written_per_second: "Disk written", processes: "Processes", loss: "Loss", accuracy: "Accuracy",
  "evaluation.loss": "Loss of evaluations", norm: "Norm of the gradient", records: "Records of an update", workers: "Workers",
  samples_per_second: "Samples per second", compute_share: "Time that computes", communication_share: "Time of parameters and gradients",
  data_share: "Time that waits for records", "gpu.utilization_percent": "GPUs, mean utilisation in %", "gpu.memory_used_bytes": "GPUs, memory",
  "gpu.power_watts": "GPUs, power in W", "gpu.temperature_celsius": "GPUs, hottest in °C",
};

// title returns the name of a metric for people; names that a program made up stay.
export function title(name: string): string { return titles[name] ?? name; }

export function seconds(s: number): string {
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${String(Math.floor(s % 60)).padStart(2, "0")}s`;
  return `${Math.floor(s / 3600)}h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}m`;
}
