package live

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, written string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON([]byte(written))
	if err == nil {
		err = u.UnmarshalJSON(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestPodWaits(t *testing.T) {
	for _, c := range []struct{ name, status, want string }{
		{"not scheduled", `{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient cpu."}]}`, "0/1 nodes are available: 1 Insufficient cpu."},
		{"image", `{containerStatuses: [{name: main, state: {waiting: {reason: ImagePullBackOff, message: Back-off pulling image "x"}}}], conditions: [{type: Ready, status: "False", message: "containers with unready status: [main]"}]}`, `ImagePullBackOff of container main: Back-off pulling image "x"`},
		{"ended", `{containerStatuses: [{name: main, state: {terminated: {reason: OOMKilled, exitCode: 137}}}]}`, "OOMKilled of container main"},
		{"init container", `{initContainerStatuses: [{name: first, state: {waiting: {reason: CrashLoopBackOff}}}], containerStatuses: [{name: main, state: {waiting: {reason: PodInitializing}}}]}`, "CrashLoopBackOff of container first"},
		{"starting", `{containerStatuses: [{name: main, state: {waiting: {reason: ContainerCreating}}}]}`, ""},
		{"probe", `{containerStatuses: [{name: main, state: {running: {}}}], conditions: [{type: Ready, status: "False", message: "containers with unready status: [main]"}]}`, "containers with unready status: [main]"},
		{"running", `{containerStatuses: [{name: main, state: {running: {}}}], conditions: [{type: Ready, status: "True"}]}`, ""},
		{"ended well", `{containerStatuses: [{name: main, state: {terminated: {reason: Completed}}}]}`, ""},
	} {
		if got := podWaits(parse(t, "{apiVersion: v1, kind: Pod, status: "+c.status+"}")); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A Job is ready when it has started, or, where that is asked for, when it has
// ended well; a claim of a class that waits for a pod when it is there.
func TestReadiness(t *testing.T) {
	job := func(status string) *unstructured.Unstructured {
		return parse(t, "{apiVersion: batch/v1, kind: Job, metadata: {generation: 1}, spec: {completions: 2, parallelism: 1}, status: "+status+"}")
	}
	claim := parse(t, "{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}")
	for _, c := range []struct {
		name          string
		u             *unstructured.Unstructured
		rules         Rules
		ready, failed bool
	}{
		{"a job that runs", job(`{startTime: "2026-01-01T00:00:00Z", active: 1}`), Rules{}, true, false},
		{"a job that is to end", job(`{startTime: "2026-01-01T00:00:00Z", active: 1}`), Rules{Complete: true}, false, false},
		{"a job that has ended", job(`{succeeded: 2, conditions: [{type: Complete, status: "True"}]}`), Rules{Complete: true}, true, false},
		{"a job that has failed", job(`{failed: 1, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: too often}]}`), Rules{Complete: true}, false, true},
		{"a claim", claim, Rules{}, false, false},
		{"a claim that waits for a pod", claim, Rules{Unbound: true}, true, false},
	} {
		if ready, failed, reason := Ready(c.u, c.rules); ready != c.ready || failed != c.failed {
			t.Errorf("%s: ready %v, failed %v: %s", c.name, ready, failed, reason)
		}
	}
}
