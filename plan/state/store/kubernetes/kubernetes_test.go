package kubernetes

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/object"
	"github.com/stokehq/stoke/plan/state/store/storetest"
)

// impatient tries once more, at once.
var impatient = patience{attempts: 2, first: time.Millisecond, most: 2 * time.Millisecond}

// unhurried leases do not end however busy the machine is.
var unhurried = object.Timing{Lease: time.Hour, Renew: 50 * time.Millisecond}

func text(s string) cty.Value { return cty.StringVal(s) }

// serve starts a server and returns the arguments that lead to it.
func serve(t testing.TB, h http.Handler) map[string]cty.Value {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(srv.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	return map[string]cty.Value{
		"host": text(srv.URL), "token": text("tok"), "cluster_ca_certificate": text(string(ca)), "secret_suffix": text("team.a"),
		"labels": cty.MapVal(map[string]cty.Value{"team": text("x")}),
	}
}

// serveAt starts a server without TLS.
func serveAt(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// openWith opens a backend as a backend block does.
func openWith(t testing.TB, arguments map[string]cty.Value, environ map[string]string) (*Backend, error) {
	t.Helper()
	c, problems := Kind().Resolve(arguments, func(name string) string { return environ[name] })
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	c.Caller = "stoke-test"
	b, err := open(c, impatient, unhurried)
	if err == nil {
		t.Cleanup(func() { b.Close() })
	}
	return b, err
}

// process opens the default state as a process does.
func process(t testing.TB, arguments map[string]cty.Value) state.Store {
	t.Helper()
	b, err := openWith(t, arguments, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Store(backend.DefaultWorkspace)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newCluster() *storetest.Cluster { return &storetest.Cluster{Token: "tok"} }

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Place: func(t testing.TB) func() state.Store {
			arguments := serve(t, newCluster())
			return func() state.Store { return process(t, arguments) }
		},
		Info: true,
	})
}

func TestSabotage(t *testing.T) {
	storetest.Sabotage(t, storetest.Sabotaged{
		Place: func(t testing.TB) (func() state.Store, *storetest.Saboteur) {
			s := &storetest.Saboteur{Server: &storetest.Cluster{}}
			// Without TLS, which takes most of the time; tokens are then not sent.
			arguments := map[string]cty.Value{"host": text(serveAt(t, s)), "secret_suffix": text("x")}
			return func() state.Store { return process(t, arguments) }, s
		},
		Patience: time.Minute,
	})
}

// work is a run under the lock that changes nothing.
func work(t *testing.T, s state.Store) error {
	t.Helper()
	l, err := s.Lock(t.Context(), state.LockInfo{})
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = l.Release() })
	f, err := state.Open(t.Context(), s)
	if err != nil {
		return err
	}
	j, err := f.Begin(t.Context())
	if err != nil {
		return err
	}
	return j.Close(t.Context())
}
