package main

import (
	"flag"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var rewrite = flag.Bool("update", false, "write expected output in testdata/script anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"stoke": main})
}

// TestScript runs the real command in scripts that show what it is like to
// use it: the files, what is typed, and what comes out.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: *rewrite})
}
