package kube

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/client-go/rest"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// gate lies between the provider and the API server, and refuses one request.
type gate struct {
	next http.Handler

	mu    sync.Mutex
	left  int  // requests until the one that is refused; negative for none
	after bool // it takes effect all the same
	what  string
	old   map[string]*httptest.ResponseRecorder // answers of discovery, by the media type that is asked for
	late  int                                   // times that these are given again
}

// through sends all that the provider asks through a gate.
func (w *world) through() *gate {
	w.t.Helper()
	transport, err := rest.TransportFor(w.cluster.Admin)
	if err != nil {
		w.t.Fatal(err)
	}
	to, err := url.Parse(w.cluster.Endpoint)
	if err != nil {
		w.t.Fatal(err)
	}
	g := &gate{left: -1, next: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1,
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, _ error) { rw.WriteHeader(http.StatusBadGateway) },
	}}
	server := httptest.NewServer(g)
	w.t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	w.config = w.cluster.KubeconfigFor(w.t, kubetest.Login{With: kubetest.Token, Edit: func(c *clientapi.Config) {
		for _, of := range c.Clusters {
			of.Server, of.CertificateAuthorityData = server.URL, nil
		}
	}})
	return g
}

func (g *gate) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	after := g.after
	// What kinds there are is asked in many requests, and reading has no effect.
	counts := strings.Contains(r.URL.Path, "/v1/") && (!after || r.Method != http.MethodGet)
	refused := counts && g.left == 0
	if counts && g.left >= 0 {
		g.left--
	}
	if refused {
		g.what = r.Method + " " + r.URL.Path
	}
	g.mu.Unlock()
	r.Header.Del("Authorization") // the gate's own is the administrator's
	if r.URL.Path == "/apis" {
		g.discover(rw, r)
		return
	}
	if !refused {
		g.next.ServeHTTP(rw, r)
		return
	}
	code, reason := http.StatusForbidden, "Forbidden"
	if after {
		g.next.ServeHTTP(httptest.NewRecorder(), r)
		code, reason = http.StatusInternalServerError, "InternalError"
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	fmt.Fprintf(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"refused by the test"}`, reason, code)
}

// discover tells which kinds there are, or were.
func (g *gate) discover(rw http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	accept := r.Header.Get("Accept")
	answer := g.old[accept]
	if g.late--; g.late < 0 || answer == nil {
		answer = httptest.NewRecorder()
		r.Header.Del("Accept-Encoding")
		g.next.ServeHTTP(answer, r)
		if g.old == nil {
			g.old = map[string]*httptest.ResponseRecorder{}
		}
		g.old[accept] = answer
	}
	maps.Copy(rw.Header(), answer.Header())
	rw.WriteHeader(answer.Code)
	_, _ = rw.Write(answer.Body.Bytes())
}

// refuse lets n requests pass and refuses the next one.
func (g *gate) refuse(n int, after bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left, g.after, g.what = n, after, ""
}

// open refuses nothing, and returns the request that was refused; "" for none.
func (g *gate) open() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = -1
	return g.what
}

// refusal is the life of a resource: two configurations, and what the cluster has
// after each, by kubectl's object and path.
type refusal struct {
	kind   string
	config [2]map[string]cty.Value
	want   [2]map[string]string
	stride int // between the requests that are refused; 0 is 1. kube_manifest has each of several objects
}

func (w *world) refusals() []refusal {
	text := func(s string) cty.Value { return cty.StringVal(s) }
	texts := func(k, v string) cty.Value { return cty.MapVal(map[string]cty.Value{k: text(v)}) }
	yaml := func(s string) map[string]cty.Value {
		return map[string]cty.Value{"yaml": text(s), "namespace": text(w.ns)}
	}
	in := func(more map[string]cty.Value) map[string]cty.Value {
		all := map[string]cty.Value{"name": text("r"), "namespace": text(w.ns)}
		maps.Copy(all, more)
		return all
	}
	name := w.ns + "-r"
	volume := w.volume("host_path", map[string]string{"path": "/srv/data", "node": "gpu-1"})
	claim := func(v string) map[string]cty.Value {
		all := in(map[string]cty.Value{"size": text("1Gi"), "labels": texts("a", v)})
		maps.Copy(all, volume)
		return all
	}
	rbac := func(task string) map[string]cty.Value {
		return map[string]cty.Value{"name": text(name), "task": text(task), "namespaces": texted(w.ns), "service_account_namespace": text(w.ns)}
	}
	class := func(more map[string]cty.Value) map[string]cty.Value {
		all := map[string]cty.Value{"name": text(name), "value": cty.NumberIntVal(5)}
		maps.Copy(all, more)
		return all
	}
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n---\n"
	job := func(image string) string { // which is recreated
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: \"" + image + "\"}]}}}\n---\n"
	}
	const image = "job/j .spec.template.spec.containers[0].image"
	return []refusal{
		{kind: "kube_manifest", config: [2]map[string]cty.Value{yaml(service + job("x:1") + configMap1("la", "1") + configMap1("lb", "1")), yaml(job("x:2") + configMap1("la", "2") + configMap1("lb", "1") + configMap1("lc", "1"))},
			want: [2]map[string]string{
				{image: "x:1", "configmap/la .data.a": "1", "configmap/lb .data.a": "1", "service/s .spec.ports[0].port": "80"},
				{image: "x:2", "configmap/la .data.a": "2", "configmap/lb .data.a": "1", "configmap/lc .data.a": "1", "service/s .spec.ports[0].port": ""},
			}},
		{kind: "kube_config_map", config: [2]map[string]cty.Value{in(map[string]cty.Value{"data": texts("a", "1")}), in(map[string]cty.Value{"data": texts("b", "2")})},
			want: [2]map[string]string{{"configmap/r .data": `{"a":"1"}`}, {"configmap/r .data": `{"b":"2"}`}}},
		{kind: "kube_secret", config: [2]map[string]cty.Value{in(map[string]cty.Value{"data": texts("a", "1")}), in(map[string]cty.Value{"data": texts("a", "2")})},
			want: [2]map[string]string{{"secret/r .data.a": "MQ=="}, {"secret/r .data.a": "Mg=="}}},
		{kind: "kube_namespace", config: [2]map[string]cty.Value{{"name": text(name), "labels": texts("a", "1")}, {"name": text(name), "labels": texts("a", "2")}},
			want: [2]map[string]string{{"namespace/" + name + " .metadata.labels.a": "1"}, {"namespace/" + name + " .metadata.labels.a": "2"}}},
		{kind: "kube_priority_class", config: [2]map[string]cty.Value{class(nil), class(map[string]cty.Value{"description": text("for tests")})},
			want: [2]map[string]string{{"priorityclass/" + name + " .value": "5"}, {"priorityclass/" + name + " .description": "for tests"}}},
		{kind: "kube_rbac", stride: 3, config: [2]map[string]cty.Value{rbac("reader"), rbac("training")},
			want: [2]map[string]string{
				{"role/" + name + " .rules[1].verbs[*]": "get", "rolebinding/" + name + " .roleRef.name": name, "clusterrole/" + name + " .kind": "ClusterRole", "clusterrolebinding/" + name + " .roleRef.name": name, "serviceaccount/" + name + " .metadata.name": name},
				{"role/" + name + " .rules[2].verbs[*]": "get create", "rolebinding/" + name + " .roleRef.name": name, "clusterrole/" + name + " .kind": "ClusterRole", "clusterrolebinding/" + name + " .roleRef.name": name, "serviceaccount/" + name + " .metadata.name": name},
			}},
		{kind: "kube_volume_claim", config: [2]map[string]cty.Value{claim("1"), claim("2")},
			want: [2]map[string]string{
				{"pvc/r .metadata.labels.a": "1", "pvc/r .status.phase": "Bound", "pv/" + name + " .metadata.name": name},
				{"pvc/r .metadata.labels.a": "2", "pvc/r .status.phase": "Bound", "pv/" + name + " .metadata.name": name},
			}},
	}
}

// holds names the first of what the cluster should have and has not; "" for none.
func (w *world) holds(want map[string]string) string {
	w.t.Helper()
	for at, value := range want {
		object, path, _ := strings.Cut(at, " ")
		if got := w.field(object, path); got != value {
			return fmt.Sprintf("%s is %q, not %q", at, got, value)
		}
	}
	return ""
}

// TestPlanAfterARefusedApply: each request of each apply of each resource is
// refused once, with no effect and with its whole effect. The next plan has
// everything that is missing, also where the manifest of before is declared again,
// and the next apply makes it. A destroy that is refused can be repeated.
func TestPlanAfterARefusedApply(t *testing.T) {
	for i, of := range newWorld(t).refusals() {
		t.Run(of.kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.through()
			for _, after := range []bool{false, true} {
				for n, met := 0, true; met && !t.Failed(); n += max(1, of.stride) {
					met = w.suffers(g, w.refusals()[i], n, after)
				}
			}
		})
	}
}

// suffers is one life in which the request n of each apply is refused. It reports
// whether one of them was met. After a refused update the first configuration is
// declared again in every other life.
func (w *world) suffers(g *gate, of refusal, n int, after bool) (met bool) {
	w.t.Helper()
	it, back := thing{kind: of.kind}, (n%2 == 1) != after
	for step, given := range of.config {
		config := w.conf(of.kind, given)
		pl := w.plan(it, config)
		if pl.said().HasErrors() {
			w.t.Fatal(pl.said())
		}
		g.refuse(n, after)
		got, r := w.apply(pl)
		what, failed := g.open(), r.Diagnostics.HasErrors()
		met = met || what != ""
		title := fmt.Sprintf("step %d, %s refused (effect: %v)", step, what, after)
		if step == 0 && failed && !got.state.IsNull() && !r.Keep {
			w.t.Errorf("%s: what was made is to be made anew", title)
		}
		if step > 0 && failed && back {
			got = w.repaired(got, w.conf(of.kind, of.config[0]), title+", then taken back", of.want[0])
		}
		if it = w.repaired(got, config, title, of.want[step]); w.t.Failed() {
			return false
		}
	}
	g.refuse(n, after)
	r := w.destroys(it)
	what := g.open()
	met = met || what != ""
	if r.Diagnostics.HasErrors() {
		now := w.refresh(thing{kind: it.kind, state: r.State, private: r.Private})
		if pl := w.plan(now, w.conf(of.kind, of.config[1])); !now.state.IsNull() && pl.noop() && w.holds(of.want[1]) != "" {
			w.t.Errorf("%s of a destroy refused: a plan has nothing to do, and %s", what, w.holds(of.want[1]))
		}
		if !now.state.IsNull() {
			w.destroy(now)
		}
	}
	for at := range of.want[1] {
		object, _, _ := strings.Cut(at, " ")
		if got := w.field(object, ".metadata.name"); got != "" {
			w.t.Errorf("%s of a destroy refused: left is %s", what, object)
		}
	}
	return met
}

// repaired plans and applies after an apply that may have failed.
func (w *world) repaired(got thing, config cty.Value, title string, want map[string]string) thing {
	w.t.Helper()
	now := got
	if !got.state.IsNull() {
		now = w.refresh(got)
	}
	if now.state.IsNull() {
		now = thing{kind: got.kind}
	}
	pl := w.plan(now, config)
	if pl.said().HasErrors() {
		w.t.Fatalf("%s: the next plan says %v", title, pl.said())
	}
	if lacks := w.holds(want); lacks != "" && pl.noop() {
		w.t.Errorf("%s: the next plan has nothing to do, and %s", title, lacks)
		return now
	}
	it := w.make(now, config)
	if lacks := w.holds(want); lacks != "" {
		w.t.Errorf("%s: after the next apply %s", title, lacks)
	}
	return w.empty(it, config)
}
