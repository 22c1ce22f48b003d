package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestJobsThatAreGone: a time to live takes the Jobs of a run before anybody has
// looked. One that had succeeded still has; one that had not is lost.
func TestJobsThatAreGone(t *testing.T) {
	w := newWorld(t, "restricted")
	kubelet := w.AddKubelet(t, "node-"+w.ns)
	for n, ended := range []bool{true, false} {
		l := w.launcher(small())
		id, err := l.Start(t.Context(), fmt.Sprintf("op-%d", n), someRun(1, 1), launch.Code{})
		if err != nil {
			t.Fatal(err)
		}
		master, pods := w.onKubelet(id, coordinator, 1)[0], w.onKubelet(id, worker, 1)
		if ended {
			kubelet.End(t, w.ns, pods[0], container, 0, "Completed")
			kubelet.End(t, w.ns, master, container, 0, "Completed")
			w.Eventually(t, "the Jobs are complete", func(ctx context.Context) (bool, error) {
				found, err := w.Client.CoreV1().Events(w.ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=Completed,involvedObject.name=" + job(id, worker)})
				return err == nil && len(found.Items) > 0, err
			})
		}
		w.Kubectl(t, "", "-n", w.ns, "delete", "jobs", "-l", runLabel+"="+id, "--cascade=foreground")
		want := spec.Lost
		if ended {
			want = spec.Succeeded
		}
		state := w.eventually(l, id, "the run has "+string(want), func(s launch.State) bool { return s.Phase == want })
		if strings.Contains(state.Message, "gone") != true || state.CheckpointsLost == ended {
			t.Errorf("ended: %t, it says %+v", ended, state)
		}
		if err := l.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	w.empty()
}
