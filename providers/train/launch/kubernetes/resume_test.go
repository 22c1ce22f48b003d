package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestResumeOfEachField stops a run and lets it go on with another value of each
// field that a resume brings. Whoever does so is killed on the way; another then
// brings it about, and has the same run, once.
func TestResumeOfEachField(t *testing.T) {
	w := newWorld(t, "restricted")
	for n, tt := range []struct {
		name   string
		change func(*launch.Placement, *spec.Spec)
	}{
		{"image", func(p *launch.Placement, _ *spec.Spec) { p.Image = "registry.test/trainer:2" }},
		{"resources", func(p *launch.Placement, _ *spec.Spec) {
			p.Worker.CPU, p.Server.Memory, p.Coordinator.EphemeralStorage = "750m", "1Gi", "1Gi"
		}},
		{"priority", func(p *launch.Placement, _ *spec.Spec) {
			p.Worker.Priority, p.Coordinator.Priority, p.HighPriority = launch.PriorityLow, launch.PriorityHigh, 1
		}},
		{"servers", func(_ *launch.Placement, s *spec.Spec) { s.ParameterServer.Replicas = 2 }},
		{"strategy", func(_ *launch.Placement, s *spec.Spec) { s.Asynchronous = true }},
		{"claim", func(p *launch.Placement, _ *spec.Spec) { p.Storage = "1Gi" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &world{w.Cluster, t, w.ns}
			was, is := small(), small()
			was.Checkpoints, is.Checkpoints = "gs://lab/run", "gs://lab/run"
			before, after := someRun(2, 1), someRun(2, 1)
			tt.change(&is, &after)
			id, err := w.launcher(was).Start(t.Context(), "op-"+tt.name, before, launch.Code{})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.launcher(was).Stop(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
			// A resume takes the run, writes it down, and makes a Job for each role.
			for _, writes := range []int{n % 5, (n + 2) % 5} {
				client := *w.client(w.Kubeconfig())
				client.Dynamic = &mortal{Interface: client.Dynamic, lives: writes, writes: true}
				if err := w.by(&client, is).Resume(t.Context(), id, after, launch.Code{}); !errors.Is(err, errKilled) {
					t.Fatalf("killed after %d writes: %v", writes, err)
				}
				if s, err := w.launcher(is).Status(t.Context(), id); err != nil || s.Phase.Final() && !launch.Idle(s.Phase) {
					t.Fatalf("killed after %d writes, it is %s, %v", writes, s.Phase, err)
				}
			}
			if err := w.launcher(is).Resume(t.Context(), id, after, launch.Code{}); err != nil {
				t.Fatal(err)
			}
			w.made(id, is, after)
			if err := w.launcher(is).Remove(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			w.empty()
		})
	}
}

// made compares a run's Jobs with those of its placement and specification.
func (w *world) made(id string, p launch.Placement, s spec.Spec) {
	w.t.Helper()
	p.Namespace = w.ns
	of := &layout{id, s, p, 0}
	there, err := w.Client.BatchV1().Jobs(w.ns).List(w.t.Context(), metav1.ListOptions{LabelSelector: runLabel + "=" + id})
	if err != nil {
		w.t.Fatal(err)
	}
	got, want := make(map[string]string), make(map[string]string)
	for _, j := range there.Items {
		got[j.Name] = essence(&j)
	}
	for _, j := range of.jobs() {
		want[j.Name] = essence(j)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("Jobs differ:\n%s", diff)
	}
	var config core.ConfigMap
	c := &cluster{Client: w.client(w.Kubeconfig()), namespace: w.ns}
	if _, err := c.get(w.t.Context(), configMaps, id, &config); err != nil || config.Data[keyHash] != s.Hash() {
		w.t.Errorf("the run is of %s, want %s; %v", config.Data[keyHash], s.Hash(), err)
	}
	claims := w.Kubectl(w.t, "", "-n", w.ns, "get", "pvc", "-l", runLabel+"="+id, "-o", "name")
	if strings.Contains(claims, id) != (p.Storage != "") {
		w.t.Errorf("claims: %q", claims)
	}
}

// essence is what the change of a field shows in, of one Job.
func essence(j *batch.Job) string {
	c, completions := j.Spec.Template.Spec.Containers[0], int32(1) // as the API server has it
	if j.Spec.Completions != nil {
		completions = *j.Spec.Completions
	}
	text, err := json.Marshal(map[string]any{
		"image": c.Image, "arguments": c.Args, "limits": c.Resources.Limits, "priority": j.Spec.Template.Spec.PriorityClassName,
		"completions": completions, "volumes": len(j.Spec.Template.Spec.Volumes),
	})
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(text)
}
