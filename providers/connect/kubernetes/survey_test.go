package kubernetes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// surveyedAnswers are those of an API server with two nodes and pages of two pods.
var surveyedAnswers = map[string]string{
	"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","items":[
		{"metadata":{"name":"b","labels":{"nvidia.com/gpu.product":"H100"}},"status":{"allocatable":{"cpu":"7500m","memory":"1Gi","nvidia.com/gpu":"8","pods":"110"},"conditions":[{"type":"Ready","status":"True"}]}},
		{"metadata":{"name":"a"},"spec":{"unschedulable":true},"status":{"allocatable":{"cpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}},
		{"metadata":{"name":"c"},"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}]}`,
	"/api/v1/pods": `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"more"},"items":[
		{"metadata":{"name":"w0","namespace":"ml","labels":{"run":"r1"}},"spec":{"nodeName":"b","containers":[{"name":"c","resources":{"requests":{"cpu":"500m","memory":"64Mi","nvidia.com/gpu":"2"}}},{"name":"d","resources":{"requests":{"cpu":"1"}}}]}},
		{"metadata":{"name":"new","namespace":"ml","creationTimestamp":"2026-01-02T00:00:00Z"},"spec":{"containers":[{"name":"c"}]}}]}`,
	"more": `{"kind":"PodList","apiVersion":"v1","items":[
		{"metadata":{"name":"w1","namespace":"ml","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"run":"r1"}},"spec":{"containers":[{"name":"c","resources":{"requests":{"nvidia.com/gpu":"8"}}}]},
		 "status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}]}}]}`,
	"/api/v1/namespaces/ml/pods": `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"own","namespace":"ml"},"spec":{"nodeName":"b","containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}]}`,
}

func TestSurvey(t *testing.T) {
	forbidden := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/pods") && r.FormValue("fieldSelector") != "status.phase!=Succeeded,status.phase!=Failed" || r.FormValue("limit") == "" {
			t.Errorf("%s asks for all of them", r.URL)
		}
		key := r.URL.Path
		if r.FormValue("continue") != "" {
			key = r.FormValue("continue")
		}
		if forbidden[key] {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			return
		}
		fmt.Fprint(w, surveyedAnswers[key])
	}))
	defer server.Close()
	c := &Client{Name: "training", ID: "uid", config: &rest.Config{Host: server.URL}, http: server.Client()}
	runOf := func(p *core.Pod) string { return p.Labels["run"] }
	is, err := c.Survey(t.Context(), "ml", runOf)
	if err != nil || is.Partly != "" || is.Place != "training" || len(is.Nodes) != 3 || len(is.Pending) != 2 {
		t.Fatalf("%v: %+v", err, is)
	}
	a, b := is.Nodes[0], is.Nodes[1]
	if a.Phase != "cordoned" || a.CPU != 4 || is.Nodes[2].Phase != "not ready" {
		t.Errorf("nodes are %+v", is.Nodes)
	}
	if b.Phase != "ready" || b.CPU != 7.5 || b.Memory != 1<<30 || b.GPUs != 8 || b.GPUModel != "H100" || len(b.Tenants) != 1 {
		t.Fatalf("node b is %+v", b)
	}
	if w := b.Tenants[0]; w.Name != "ml/w0" || w.Run != "r1" || w.CPU != 1.5 || w.Memory != 64<<20 || w.GPUs != 2 {
		t.Errorf("the pod is %+v", w)
	}
	if w := is.Pending[0]; w.Name != "ml/w1" || w.GPUs != 8 || !strings.Contains(w.Reason, "Insufficient nvidia.com/gpu") || is.Pending[1].Name != "ml/new" {
		t.Errorf("%+v waits", is.Pending)
	}
	forbidden["/api/v1/nodes"], forbidden["/api/v1/pods"] = true, true
	is, err = c.Survey(t.Context(), "ml", nil)
	if err != nil || !strings.Contains(is.Partly, "list nodes") || !strings.Contains(is.Partly, "namespace ml") || len(is.Nodes) != 1 || is.Nodes[0].Tenants[0].Name != "ml/own" {
		t.Errorf("without rights: %v: %+v", err, is)
	}
	forbidden["/api/v1/namespaces/ml/pods"] = true
	if _, err = c.Survey(t.Context(), "ml", nil); err == nil || !strings.Contains(err.Error(), "list the pods of training") {
		t.Errorf("without any right: %v", err)
	}
}
