package kubernetes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// aggregatedAnswers are those of an API server of 1.37 that has one aggregated API
// whose server does not answer.
var aggregatedAnswers = map[string]string{
	"/api": `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{},"versions":[{"version":"v1","freshness":"Current","resources":[
		{"resource":"pods","responseKind":{"group":"","version":"","kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["get"],
		 "subresources":[{"subresource":"log","responseKind":{"kind":"Pod"},"verbs":["get"]}]},
		{"resource":"nodes","responseKind":{"group":"","version":"","kind":"Node"},"scope":"Cluster","singularResource":"node","verbs":["get"]}]}]}]}`,
	"/apis": `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
		{"metadata":{"name":"autoscaling"},"versions":[
			{"version":"v2","freshness":"Current","resources":[{"resource":"horizontalpodautoscalers","responseKind":{"group":"autoscaling","version":"v2","kind":"HorizontalPodAutoscaler"},"scope":"Namespaced","singularResource":"horizontalpodautoscaler"}]},
			{"version":"v1","freshness":"Current","resources":[{"resource":"horizontalpodautoscalers","responseKind":{"group":"autoscaling","version":"v1","kind":"HorizontalPodAutoscaler"},"scope":"Namespaced","singularResource":"horizontalpodautoscaler"},
				{"resource":"old","responseKind":{"kind":"Old"},"scope":"Cluster","singularResource":"old"},
				{"resource":"older","responseKind":{"kind":"Old"},"scope":"Cluster","singularResource":"older"},
				{"resource":"parents","scope":"Cluster","singularResource":"parent","subresources":[{"subresource":"child","responseKind":{"kind":"Child"}}]}]}]},
		{"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1","freshness":"Stale","resources":[{"resource":"pods","responseKind":{"kind":"PodMetrics"},"scope":"Namespaced","singularResource":"pod"}]},
			{"version":"v1beta1","freshness":"Current","resources":[{"resource":"nodes","responseKind":{"kind":"NodeMetrics"},"scope":"Cluster","singularResource":"node"}]}]}]}`,
}

// legacyAnswers are those of an API server that does not aggregate: one version
// cannot be read, and the preferred one is not the first.
var legacyAnswers = map[string]string{
	"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
	"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod"},{"name":"pods/log","namespaced":true,"kind":"Pod"},{"name":"nodes","singularName":"node","namespaced":false,"kind":"Node"}]}`,
	"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"autoscaling","versions":[{"groupVersion":"autoscaling/v2beta1","version":"v2beta1"},{"groupVersion":"autoscaling/v1","version":"v1"},{"groupVersion":"autoscaling/v2","version":"v2"}],"preferredVersion":{"groupVersion":"autoscaling/v2","version":"v2"}},
		{"name":"metrics.k8s.io","versions":[{"groupVersion":"metrics.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"metrics.k8s.io/v1","version":"v1"}}]}`,
	"/apis/autoscaling/v1":      `{"kind":"APIResourceList","groupVersion":"autoscaling/v1","resources":[{"name":"horizontalpodautoscalers","singularName":"horizontalpodautoscaler","namespaced":true,"kind":"HorizontalPodAutoscaler"},{"name":"old","singularName":"old","namespaced":false,"kind":"Old"}]}`,
	"/apis/autoscaling/v2":      `{"kind":"APIResourceList","groupVersion":"autoscaling/v2","resources":[{"name":"horizontalpodautoscalers","singularName":"horizontalpodautoscaler","namespaced":true,"kind":"HorizontalPodAutoscaler"}]}`,
	"/apis/autoscaling/v2beta1": `{"kind":"APIResourceList","groupVersion":"autoscaling/v2beta1","resources":[{"name":"horizontalpodautoscalers","singularName":"horizontalpodautoscaler","namespaced":true,"kind":"HorizontalPodAutoscaler"},{"name":"old","singularName":"old","namespaced":true,"kind":"Old"}]}`,
}

// TestDiscovery finds for each kind what client-go finds, in the newer and in the
// older form of answers.
func TestDiscovery(t *testing.T) {
	withoutCore := map[string]string{"/apis": aggregatedAnswers["/apis"]}
	for name, answers := range map[string]map[string]string{"aggregated": aggregatedAnswers, "legacy": legacyAnswers, "without a core": withoutCore} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				text, ok := answers[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(text, "APIGroupDiscoveryList") && strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") {
					w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
				}
				fmt.Fprint(w, text)
			}))
			defer s.Close()
			config := &rest.Config{Host: s.URL, QPS: -1}
			theirs := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(config)))
			api, err := unversioned(config, s.Client())
			if err != nil {
				t.Fatal(err)
			}
			ours := &Client{rest: api}
			found := 0
			for _, group := range []string{"", "autoscaling", "metrics.k8s.io", "none"} {
				for _, kind := range []string{"Pod", "Node", "HorizontalPodAutoscaler", "horizontalpodautoscaler", "Old", "Child", "PodMetrics", "NodeMetrics", "Parent"} {
					for _, version := range []string{"", "v1", "v2", "v1beta1", "v2beta1", "v3"} {
						of := schema.GroupKind{Group: group, Kind: kind}
						var versions []string
						if version != "" {
							versions = []string{version}
						}
						want := "none"
						switch m, err := theirs.RESTMapping(of, versions...); {
						case err == nil:
							want = fmt.Sprint(m.Resource, m.Scope.Name() == meta.RESTScopeNameNamespace)
							found++
						case !meta.IsNoMatchError(err):
							t.Fatal(err)
						}
						got := "none"
						switch k, err := ours.Serves(of, version); {
						case err == nil:
							got = fmt.Sprint(k.GroupVersion().WithResource(k.Resource), k.Namespaced)
						case !meta.IsNoMatchError(err):
							t.Fatal(err)
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("%s in %q (-client-go +ours):\n%s", of, version, diff)
						}
					}
				}
			}
			if found < 5 {
				t.Errorf("only %d kinds found", found)
			}
			before := asked.Load()
			if _, err := ours.Kinds(); err != nil || asked.Load() != before {
				t.Errorf("the API server was asked again for its kinds: %v", err)
			}
			ours.Rediscover()
			if _, err := ours.Kinds(); err != nil || asked.Load() == before {
				t.Errorf("the API server was not asked again: %v", err)
			}
		})
	}
}

// TestDiscoveryRefused: a refused question is an error each time, and is asked again.
func TestDiscoveryRefused(t *testing.T) {
	allowed := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !allowed {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no discovery for you","code":403}`)
			return
		}
		fmt.Fprint(w, legacyAnswers[r.URL.Path])
	}))
	defer s.Close()
	api, err := unversioned(&rest.Config{Host: s.URL, QPS: -1}, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{rest: api}
	if _, err := c.Serves(schema.GroupKind{Kind: "Pod"}, "v1"); err == nil || !strings.Contains(err.Error(), "no discovery for you") {
		t.Errorf("refused: %v", err)
	}
	allowed = true
	if k, err := c.Serves(schema.GroupKind{Kind: "Pod"}, ""); err != nil || k.Resource != "pods" {
		t.Errorf("allowed: %+v %v", k, err)
	}
}
