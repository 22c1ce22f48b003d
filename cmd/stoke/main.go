package main

import (
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/stokehq/stoke/plan/view"
	"github.com/stokehq/stoke/providers"
)

// version is stoke's own; the files and formats it writes are those of
// view.TerraformVersion. Builds set it with -ldflags "-X main.version=…".
var version = "0.1.0-dev"

const terraformVersion = view.TerraformVersion

func main() { start(catalogue()) }

// start carries out this process's command line with these providers, and exits.
func start(built providers.Catalogue) {
	collectLate()
	klog.SetLogger(logr.Discard()) // client-go logs there what it returns as an error as well
	environ := os.Environ()
	_ = os.Unsetenv(planKeyVariable) // processes that providers start must not inherit it
	os.Exit(execute(os.Args[1:], stage{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: environ, built: built}))
}
