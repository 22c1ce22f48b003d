// The form of a new run: only the button that copies needs a script.
import { control } from "./controls";

export function form(): void {
  const said = control("copied");
  control("copy")?.addEventListener("click", () => {
    navigator.clipboard.writeText(control("hcl")?.textContent ?? "").then(
      () => { said!.textContent = "Copied."; },
      () => { said!.textContent = "The browser does not allow copying: select the text."; },
    );
  });
}
