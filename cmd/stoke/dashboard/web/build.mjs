// Builds the scripts and styles into ../assets, and notes the hash of their sources.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const out = "../assets";
await build({
  entryPoints: { app: "src/main.ts" }, outdir: out, bundle: true, minify: true, format: "esm", target: ["chrome111", "firefox113", "safari16.4"],
  charset: "utf8", legalComments: "none", logLevel: "warning",
});
cpSync("src/icon.svg", out + "/icon.svg");
cpSync("node_modules/uplot/LICENSE", out + "/uplot-LICENSE.txt");

// TestAssets computes the same hash: of names and texts, in the order of the names.
const names = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json", ...readdirSync("src").map((n) => "src/" + n)].sort();
const hash = createHash("sha256");
for (const name of names) hash.update(name + "\0").update(readFileSync(name)).update("\0");
writeFileSync(out + "/sources.sha256", hash.digest("hex") + "\n");
