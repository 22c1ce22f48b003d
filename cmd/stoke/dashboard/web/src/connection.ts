// One stream of server-sent events per page, and what the header says of it.

type Handlers = Record<string, (data: any) => void>;

// All paths of the server begin with a secret folder: pages belong to one server.
const folder = location.pathname.slice(0, location.pathname.indexOf("/", 1));
const key = "folder";
try { localStorage.setItem(key, folder); } catch { /* then an old page does not go on after a restart */ }

// at returns the URL of a path of the server.
export function at(path: string): string {
  return folder + path;
}

// goOn opens this page on the server that was started since on the same port, once the
// browser has opened its link.
function goOn(): void {
  let now: string | null = null;
  try { now = localStorage.getItem(key); } catch { return; }
  if (now !== null && now !== folder && /^\/[0-9a-f]+$/.test(now)) {
    location.replace(now + location.pathname.slice(folder.length) + location.search + location.hash);
  }
}

const banner = document.getElementById("connection")!;

function say(state: "live" | "lost" | "void" | "off", text: string): void {
  if (banner.dataset.state === state && banner.textContent === text) return;
  banner.dataset.state = state;
  banner.textContent = text;
}

// Stream is an EventSource that rests while the page is hidden: a browser has six
// connections to a host, for all its tabs.
export class Stream {
  private source: EventSource | null = null;
  private closed = false;
  private retry = 0;

  // isMain: the header shows the state of this stream.
  constructor(private url: string, private handlers: Handlers, private isMain = true) {
    document.addEventListener("visibilitychange", this.watch);
    this.open();
  }

  private watch = (): void => {
    if (document.hidden) this.drop();
    else if (!this.source && !this.closed) this.open();
  };

  private drop(): void {
    this.source?.close();
    this.source = null;
    clearTimeout(this.retry);
  }

  private open(): void {
    const source = new EventSource(at(this.url));
    this.source = source;
    source.onopen = () => {
      if (this.isMain) say("live", "Live");
      this.handlers["open"]?.(null);
    };
    for (const [name, handle] of Object.entries(this.handlers)) {
      if (name === "open") continue;
      source.addEventListener(name, (e) => handle(JSON.parse((e as MessageEvent<string>).data)));
    }
    source.onerror = () => {
      if (this.isMain && banner.dataset.state !== "void") say("lost", "Disconnected. Connecting again…");
      if (source.readyState !== EventSource.CLOSED) return;
      this.drop(); // the server refused: a browser does not try again then
      void this.ask();
    };
  }

  // ask finds out why a stream was refused, and tries again.
  private async ask(): Promise<void> {
    try {
      const answer = await fetch(at("/ping"), { cache: "no-store" });
      if (answer.status === 401) {
        say("void", "The dashboard was started again. Open the new link that it printed.");
        goOn();
      }
    } catch {
      say("lost", "Disconnected. Connecting again…");
    }
    if (!this.closed) this.retry = window.setTimeout(() => this.open(), 2000);
  }

  close(): void {
    this.closed = true;
    document.removeEventListener("visibilitychange", this.watch);
    this.drop();
  }
}

// read fetches data of the server.
export async function read<T>(path: string): Promise<T> {
  const answer = await fetch(at(path), { cache: "no-store" });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as T;
}
