package cloud

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// TestAgent: calls of every API have stoke's version in their User-Agent.
func TestAgent(t *testing.T) {
	var mu sync.Mutex
	agents := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		agents[r.URL.Path] = r.UserAgent()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(s.Close)
	at := s.URL + "/"
	c, err := Open(t.Context(), Settings{Project: "p", Transport: REST, Container: at, Compute: at, File: at, Usage: at, Agent: "stoke/1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Clusters.ListClusters(t.Context(), &containerpb.ListClustersRequest{Parent: "projects/p/locations/-"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compute.Disks.List("p", "z").Do(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.File.Projects.Locations.List("projects/p").Do(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Usage.Services.List("projects/p").Do(); err != nil {
		t.Fatal(err)
	}
	if len(agents) != 4 {
		t.Errorf("asked was %v", agents)
	}
	for path, agent := range agents {
		if !strings.HasPrefix(agent, "stoke/1.2.3") {
			t.Errorf("%s: the User-Agent is %q", path, agent)
		}
	}
}
