package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestMixedImages: pods whose image has moved since others began are named. They
// are renewed where that brings all of them to one image and loses nothing.
func TestMixedImages(t *testing.T) {
	const one, two = "sha256:1111111111111111", "sha256:2222222222222222"
	pod := func(index int, image string) core.Pod {
		return core.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w-%d", index), Labels: map[string]string{roleLabel: worker}, Annotations: map[string]string{batch.JobCompletionIndexAnnotation: fmt.Sprint(index)}},
			Status:     core.PodStatus{ContainerStatuses: []core.ContainerStatus{{Name: "trainer", ImageID: image, State: core.ContainerState{Running: new(core.ContainerStateRunning)}}}},
		}
	}
	ended, leaving := pod(9, two), pod(9, two)
	ended.Status.ContainerStatuses[0].State = core.ContainerState{Terminated: new(core.ContainerStateTerminated)}
	leaving.DeletionTimestamp = new(metav1.Now())
	meshed := []core.Pod{pod(0, one), pod(1, one)}
	for i, p := range meshed {
		proxy := p.Status.ContainerStatuses[0]
		proxy.Name, proxy.ImageID = "proxy", two
		meshed[i].Status.ContainerStatuses = append(p.Status.ContainerStatuses, proxy)
	}
	mixed := []core.Pod{pod(0, "a/b@"+one), pod(1, "c/d@"+two), pod(2, one)}
	for _, tt := range []struct {
		name          string
		image, policy string
		volatile      bool
		fleeting      bool
		again         string // images that it was stopped with before
		phase         spec.Phase
		pods          []core.Pod
		renew, warns  bool
	}{
		{name: "one", image: "a/b:latest", pods: []core.Pod{pod(0, "a/b@"+one), pod(1, one), ended, leaving, pod(3, "")}},
		{name: "one, beside somebody else's", image: "a/b:latest", pods: meshed},
		{name: "pulled for each pod", image: "a/b:latest", pods: mixed, renew: true},
		{name: "without a tag", image: "host:5000/a/b", pods: mixed, renew: true},
		{name: "pulled by its policy", image: "a/b:v1", policy: "Always", pods: mixed, renew: true},
		{name: "not pulled by its policy", image: "a/b:latest", policy: "IfNotPresent", pods: mixed, warns: true},
		{name: "kept by nodes", image: "a/b:v1", pods: mixed, warns: true},
		{name: "nothing is saved", image: "a/b:latest", volatile: true, pods: mixed, warns: true},
		{name: "its claim is lost", image: "a/b:latest", fleeting: true, pods: mixed, warns: true},
		{name: "renewed before, with these", image: "a/b:latest", again: one + " " + two, pods: mixed, warns: true},
		{name: "renewed before, with others", image: "a/b:latest", again: one + " sha256:3333333333333333", pods: mixed, renew: true},
		{name: "by digest", image: "a/b@" + one, pods: mixed},
		{name: "over", image: "a/b:latest", phase: spec.Succeeded, pods: mixed},
		{name: "stopped", image: "a/b:latest", phase: spec.Stopped, pods: mixed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := launch.Placement{Image: tt.image, PullPolicy: tt.policy, Checkpoints: "gs://lab/run"}
			if tt.volatile {
				p.Checkpoints = ""
			}
			state := launch.State{Status: spec.Status{Phase: spec.Running}, DiesWithCoordinator: tt.fleeting}
			if tt.phase != "" {
				state.Phase = tt.phase
			}
			is := &sight{pods: tt.pods}
			if tt.again != "" {
				is.config.Annotations = map[string]string{mixAnnotation: tt.again}
			}
			is.unmix(&state, p)
			said := state.RestartReason + strings.Join(state.Warnings, "")
			if (state.RestartReason != "") != tt.renew || len(state.Warnings) > 0 != tt.warns {
				t.Errorf("renew: %q, warnings: %q", state.RestartReason, state.Warnings)
			}
			if want := "its pods run sha256:111111111111 on worker-0, worker-2; sha256:222222222222 on worker-1"; said != "" && !strings.Contains(said, want) {
				t.Errorf("it says %q, want %q", said, want)
			}
		})
	}
}
