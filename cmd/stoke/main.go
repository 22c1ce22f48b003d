package main

import (
	"os"

	"github.com/stokehq/stoke/plan/view"
)

// version is stoke's own; the files and formats it writes are those of
// view.TerraformVersion.
const version = "0.1.0-dev"

const terraformVersion = view.TerraformVersion

func main() {
	os.Exit(execute(os.Args[1:], stage{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ()}))
}
