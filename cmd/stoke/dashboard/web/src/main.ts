import "uplot/dist/uPlot.min.css";
import "./app.css";
import { apply } from "./apply";
import { cluster } from "./cluster";
import { compare } from "./compare";
import { form } from "./form";
import { run } from "./run";
import { runs } from "./runs";
import { worker, workers } from "./workers";

const pages: Record<string, () => void> = { runs, run, workers, worker, compare, new: form, apply, cluster };
pages[document.body.dataset.page ?? ""]?.();
