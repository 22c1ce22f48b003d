// The ledger of a run: committed records by epoch, leases by worker.
import { read } from "./connection";
import { control } from "./controls";

interface Ledger { message: string; exact: boolean; epochs: string[][]; leases: string[][]; about: string }

const every = 10_000;

export function ledger(query: string, isLive: boolean): void {
  const load = async (): Promise<void> => {
    try {
      const l = await read<Ledger>("/data/ledger?" + query);
      const text = control("ledger-text")!;
      text.textContent = l.message;
      text.classList.toggle("good", l.exact);
      fill("ledger-epochs", l.epochs ?? []);
      fill("ledger-leases", l.leases ?? []);
      control("ledger-about")!.textContent = l.about;
    } catch (e) {
      control("ledger-text")!.textContent = e instanceof Error ? e.message : String(e);
    }
  };
  void load();
  if (isLive) setInterval(() => { if (!document.hidden) void load(); }, every);
}

function fill(id: string, rows: string[][]): void {
  const body = control(id)!;
  body.replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    cells.forEach((text, i) => {
      const cell = row.insertCell();
      cell.textContent = text;
      if (i > 0) cell.className = "num";
    });
    return row;
  }));
  body.closest("table")!.hidden = rows.length === 0;
}
