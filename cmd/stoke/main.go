package main

import (
	"os"
	"runtime/debug"

	"github.com/stokehq/stoke/plan/view"
)

// version is stoke's own; the files and formats it writes are those of
// view.TerraformVersion. Builds set it with -ldflags "-X main.version=…".
var version = "0.1.0-dev"

const terraformVersion = view.TerraformVersion

// gcPercent trades memory for time: a run is short, and what it allocates is
// small beside what it keeps. GOGC in the environment overrides it.
const gcPercent = 40

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	forgetProgram()
	environ := os.Environ()
	_ = os.Unsetenv(planKeyVariable) // processes that providers start must not inherit it
	os.Exit(execute(os.Args[1:], stage{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: environ}))
}
