package main

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stokehq/stoke/plan/state/store/storetest"
)

var rewrite = flag.Bool("update", false, "write expected output in testdata/script anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"stoke": main})
}

// TestScript runs the real command in scripts that show what it is like to
// use it: the files, what is typed, and what comes out.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: *rewrite, Setup: remoteStates})
}

// remoteStates starts servers for states for each script, which finds their
// addresses in the environment.
func remoteStates(env *testscript.Env) error {
	for name, h := range map[string]http.Handler{
		"WEB_STATE": &storetest.Web{ETags: true}, "OTHER_WEB_STATE": &storetest.Web{},
		"CLUSTER":   &storetest.Cluster{},
		"S3_STATE":  &storetest.S3{Bucket: "states", AccessKey: "AK", SecretKey: "SK"},
		"GCS_STATE": &storetest.GCS{Bucket: "states", Token: "tok"},
	} {
		srv := httptest.NewServer(h)
		env.Defer(srv.Close)
		env.Setenv(name, srv.URL)
	}
	return nil
}
