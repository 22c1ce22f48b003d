package metal

import (
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

// TestClusterCourse: whatever a machine shows, init never begins where there is
// something, and one that was cut off is finished.
func TestClusterCourse(t *testing.T) {
	head := kubeadm.Facts{Role: kubeadm.ControlPlane, Whole: true, Etcd: true, CAHash: "sha256:a"}
	half := kubeadm.Facts{Role: kubeadm.ControlPlane, Etcd: true, CAHash: "sha256:a"}
	keys := kubeadm.Facts{Left: []string{"/etc/kubernetes/pki/ca.crt"}, CAHash: "sha256:a"}
	static := kubeadm.Facts{Role: kubeadm.ControlPlane, CAHash: "sha256:a"}
	data := kubeadm.Facts{Left: []string{"/var/lib/etcd/member"}, Etcd: true}
	other := head
	other.CAHash = "sha256:b"
	begun, healthy := notes{begun: true}, notes{begun: true, healthy: true}
	whole := notes{begun: true, healthy: true, whole: "sha256:a"}
	for _, test := range []struct {
		name  string
		is    kubeadm.Facts
		notes notes
		known bool
		want  course
		why   string
	}{
		{"nothing there", kubeadm.Facts{}, notes{}, false, courseBegin, ""},
		{"killed before init did anything", kubeadm.Facts{}, begun, false, courseBegin, ""},
		{"killed while it made certificates", keys, begun, false, courseFinish, ""},
		{"killed before etcd had data", static, begun, false, courseFinish, ""},
		{"killed with data of etcd", half, begun, false, courseFinish, ""},
		{"went on alone to its end", head, begun, false, courseFinish, ""},
		{"killed after its API server answered", head, healthy, false, courseFinish, ""},
		{"answered once, and its data are not there", static, healthy, false, "", "mount their disk"},
		{"answered once, and nothing is there", kubeadm.Facts{}, healthy, false, "", "mount their disk"},
		{"data without an authority", data, begun, false, "", "restore that file"},
		{"a cluster", head, whole, true, courseKeep, ""},
		{"a cluster whose note the state lacks", head, whole, false, courseKeep, ""},
		{"a cluster that the state knows, without its record", head, notes{}, true, courseKeep, ""},
		{"a cluster that is gone", kubeadm.Facts{}, whole, true, "", "stoke does not make another one"},
		{"a machine that was reinstalled", kubeadm.Facts{}, notes{}, true, "", "stoke does not make another one"},
		{"a cluster without data", static, whole, true, "", "no data of etcd"},
		{"another cluster in its place", other, whole, true, "", "another cluster"},
		{"somebody's cluster", head, notes{}, false, "", "has parts of a foreign cluster"},
		{"somebody's remains", keys, notes{}, false, "", "/etc/kubernetes/pki/ca.crt"},
		{"a worker", kubeadm.Facts{Role: kubeadm.Worker, NodeName: "w", Server: "https://h:6443"}, notes{}, false, "", "a node of a cluster already, as w"},
		{"destroying was cut off", kubeadm.Facts{}, notes{begun: true, whole: "sha256:a", ending: true}, true, "", "destroy it to the end"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := decide(test.is, test.notes, test.known, "10.0.0.1")
			if got != test.want || (err == nil) != (test.why == "") || err != nil && !strings.Contains(err.Error(), test.why) {
				t.Errorf("%q, %v", got, err)
			}
			if got == courseBegin && (test.is.Role != kubeadm.NoRole || len(test.is.Left) > 0 || test.is.Etcd || test.notes.healthy || test.notes.whole != "" || test.known) {
				t.Error("it would begin where there may be a cluster")
			}
		})
	}
}
