package pods

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// Where something before the API server knows no WebSocket, SPDY does as well.
func TestFallback(t *testing.T) {
	w := newWorld(t)
	port := echoes(t, "a")
	w.apply(pod("one", "{containers: [{name: main, image: x}]}"), "Pod/one")
	w.run(w.set("Pod/one"))

	var refused, old atomic.Int64
	w.client = w.through(func(rw http.ResponseWriter, r *http.Request) bool {
		switch r.Header.Get("Upgrade") {
		case "websocket":
			refused.Add(1)
			http.Error(rw, "no such protocol", http.StatusBadRequest)
			return true
		case "SPDY/3.1":
			old.Add(1)
		}
		return false
	})
	s := w.set("Pod/one")
	if out, errs, code, err := w.exec(s, "one", "typed", "cat; echo said >&2; exit 9"); err != nil || code != 9 || out != "typed" || errs != "said\n" {
		t.Errorf("%q, %q, exit code %d, %v", out, errs, code, err)
	}
	ready, ended := make(chan uint16, 1), make(chan error, 1)
	go func() {
		ended <- s.Forward(t.Context(), "one", []providers.RunPort{{Remote: strconv.Itoa(port)}}, providers.RunForward{
			Ready: func(_ string, ports []providers.RunPort) { ready <- ports[0].Local },
		})
	}()
	w.until("the port is ready", func() bool { return len(ready) > 0 || len(ended) > 0 })
	if len(ended) > 0 {
		t.Fatal(<-ended)
	}
	at := <-ready
	w.until("the port answers", func() bool { got, err := ask(at, "x"); return err == nil && got == "a got x" })
	if refused.Load() != 2 || old.Load() != 2 {
		t.Errorf("%d WebSockets were refused, and %d were SPDY instead", refused.Load(), old.Load())
	}
}

// through is a client whose requests go through a proxy, which answers those
// itself for which own is true.
func (w *world) through(own func(http.ResponseWriter, *http.Request) bool) *kubernetes.Client {
	w.Helper()
	to, err := url.Parse(w.Endpoint)
	if err != nil {
		w.Fatal(err)
	}
	admin := rest.CopyConfig(w.Admin)
	admin.NextProtos = []string{"http/1.1"} // the only one with upgrades
	transport, err := rest.TransportFor(admin)
	if err != nil {
		w.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !own(rw, r) {
			proxy.ServeHTTP(rw, r)
		}
	}))
	w.T.Cleanup(func() { // watches that are open would be waited for
		server.CloseClientConnections()
		server.Close()
	})
	return w.dial(w.KubeconfigFor(w, kubetest.Login{Edit: func(c *clientapi.Config) {
		c.Clusters["kubetest"] = &clientapi.Cluster{Server: server.URL}
		c.AuthInfos["kubetest"] = clientapi.NewAuthInfo()
	}}))
}
