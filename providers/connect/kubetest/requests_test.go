package kubetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/google/go-cmp/cmp"
)

func TestParseRequests(t *testing.T) {
	got, err := parseRequests([]byte(`# HELP apiserver_request_total [STABLE] Counter
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="scale",verb="PUT",version="v1"} 2
apiserver_request_total{code="409",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="scale",verb="PUT",version="v1"} 1
apiserver_request_total{code="201",component="apiserver",dry_run="All",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1.2e+03
apiserver_request_total{code="200",component="",dry_run="",group="",resource="",scope="",subresource="/readyz",verb="GET",version=""} 7
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="apis",verb="GET",version=""} 4
apiserver_request_duration_seconds_count{verb="GET"} 5
`))
	want := Requests{{Verb: "PUT", Resource: "deployments.apps/scale"}: 3, {Verb: "POST", Resource: "pods", DryRun: true}: 1200,
		{Verb: "GET", Resource: "/readyz"}: 7, {Verb: "GET", Resource: "/apis"}: 4}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if _, err := parseRequests([]byte("nothing 1\n")); err == nil {
		t.Error("metrics without requests are no error")
	}
}

// TestRequestsAreCounted shows that where nobody else is, the count is exactly
// of what a test asked for, and so are the audit log's lines.
func TestRequestsAreCounted(t *testing.T) {
	c := Start(t, Options{APIOnly: true})
	ns := c.Namespace(t)
	client, err := kubernetes.NewForConfig(c.ConfigFor(t, Login{User: "frank", Grants: []Grant{{Namespace: ns, Rules: everything[:1]}}}))
	if err != nil {
		t.Fatal(err)
	}
	before := c.Requests(t)
	for i := range 3 {
		made := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("map-", i)}}
		if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "try"}}, metav1.CreateOptions{DryRun: []string{"All"}}); err != nil {
		t.Fatal(err)
	}
	for token := ""; ; {
		list, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{Limit: 2, Continue: token})
		if err != nil {
			t.Fatal(err)
		}
		if token = list.Continue; token == "" {
			break
		}
	}
	if _, _, err := client.Discovery().ServerGroupsAndResources(); err != nil {
		t.Fatal(err)
	}
	got := c.Requests(t).Since(before)
	if n := got.Of("GET", "/api") + got.Of("GET", "/apis"); n != 2 {
		t.Errorf("%d requests for discovery, want 2: %v", n, got)
	}
	want := Requests{{Verb: "POST", Resource: "configmaps"}: 3, {Verb: "POST", Resource: "configmaps", DryRun: true}: 1, {Verb: "LIST", Resource: "configmaps"}: 2}
	maps.DeleteFunc(got, func(r Request, _ int) bool { return r.Resource != "configmaps" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := got.Of("POST", "configmaps"); n != 4 {
		t.Errorf("%d of POST, want 4", n)
	}
	asked := c.Audit(t, "frank")
	var verbs []string
	asked = slices.DeleteFunc(asked, func(a Asked) bool { return strings.HasPrefix(a.URI, "/api?") || a.URI == "/api" || a.URI == "/apis" })
	for _, a := range asked {
		verbs = append(verbs, a.Verb)
		if a.At.IsZero() || time.Since(a.At) > time.Hour || a.Agent == "" || a.Code/100 != 2 || !strings.HasPrefix(a.URI, "/api/v1/namespaces/"+ns+"/configmaps") {
			t.Errorf("the audit log has %+v", a)
		}
	}
	if diff := cmp.Diff([]string{"create", "create", "create", "create", "list", "list"}, verbs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
