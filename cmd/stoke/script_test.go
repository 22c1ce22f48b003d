package main

import (
	"flag"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/plan/state/store/storetest"
	"github.com/stokehq/stoke/providers/filetest"
)

var rewrite = flag.Bool("update", false, "write expected output in testdata/script anew")

// TestMain makes this binary the command stoke of scripts, and of tests that look
// for it on the PATH: the released one, and the provider for tests.
func TestMain(m *testing.M) {
	testscript.Main(atHome{m}, map[string]func(){"stoke": func() {
		built := catalogue()
		built[filetest.Source] = filetest.Entry()
		start(built)
	}})
}

// TestScript runs the real command in scripts that show what it is like to
// use it: the files, what is typed, and what comes out.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Files: scripts(t, "testdata/script"), UpdateScripts: *rewrite, Setup: remoteStates,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"trainer": copyTrainer}})
}

// scripts lists those in a folder. Under the race detector, which makes them take
// several times as long, a third of them is enough: they run the same code.
func scripts(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.txt*"))
	if err != nil || len(all) == 0 {
		t.Fatalf("%s has no scripts: %v", dir, err)
	}
	for i, name := range all {
		if !underRace || i%3 == 0 {
			names = append(names, name)
		}
	}
	return names
}

// copyTrainer is the scripts' command "trainer FILE": it puts the released
// stoke-trainer there.
func copyTrainer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: trainer FILE")
	}
	ts.Check(programtest.Copy("stoke-trainer", ts.MkAbs(args[0])))
}

// answering is a server that has one answer to everything.
func answering(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// remoteStates gives each script a home of its own, and starts servers for states
// and a registry of images, whose addresses are in the environment.
func remoteStates(env *testscript.Env) error {
	env.Setenv("HOME", filepath.Join(env.WorkDir, ".home")) // not there until something writes to it
	for name, h := range map[string]http.Handler{
		"WEB_STATE": &storetest.Web{ETags: true}, "OTHER_WEB_STATE": &storetest.Web{},
		"CLUSTER":   &storetest.Cluster{},
		"S3_STATE":  &storetest.S3{Bucket: "states", AccessKey: "AK", SecretKey: "SK"},
		"GCS_STATE": &storetest.GCS{Bucket: "states", Token: "tok"},
		"LOGIN":     answering("<!DOCTYPE html>\n<html><body>Please log in.</body></html>"), "OTHER_JSON": answering(`{"message": "welcome"}`),
	} {
		srv := httptest.NewServer(h)
		env.Defer(srv.Close)
		env.Setenv(name, srv.URL)
	}
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	env.Defer(images.Close)
	env.Setenv("REGISTRY", strings.TrimPrefix(images.URL, "http://"))
	return nil
}

// unwrap returns a message without its frame, on one line.
func unwrap(message string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(message, "│", " ")), " ")
}
