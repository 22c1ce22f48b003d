package metal

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/member"
)

// TestNodeCutOff: a node that is as declared is not finished as long as something
// is left of how it came to be, or nobody has seen it ready.
func TestNodeCutOff(t *testing.T) {
	const ca = "sha256:1"
	for _, tt := range []struct {
		what  string
		notes map[string]any
		mark  member.Mark
		edit  func(*nodeLook)
		want  []string
	}{
		{"a finished one", map[string]any{nodeReady: nil}, member.Mark{ID: "id"}, nil, nil},
		{"killed while kubeadm joined, which went on", map[string]any{nodeJoining: "gpu-1"}, member.Mark{}, nil, []string{"mark of the node", "node"}},
		{"killed before its token ended", map[string]any{nodeReady: nil, nodeJoining: "gpu-1"}, member.Mark{ID: "id"}, nil, []string{"node"}},
		{"killed before it was ready", nil, member.Mark{ID: "id"}, nil, []string{"node"}},
		{"killed while it was renamed", map[string]any{nodeReady: nil, nodeLeaving: "gpu-0"}, member.Mark{ID: "id"}, nil, []string{"node"}},
		{"its mark was removed", map[string]any{nodeReady: nil}, member.Mark{}, nil, []string{"mark of the node"}},
		{"a label and a taint that are declared no more", map[string]any{nodeReady: nil},
			member.Mark{ID: "id", Labels: map[string]*string{"pool": nil}, Taints: []string{"old:NoSchedule"}}, nil, []string{"label pool", "taint old:NoSchedule"}},
		{"GPUs that nobody tried", map[string]any{nodeReady: nil}, member.Mark{ID: "id"}, func(l *nodeLook) { l.untried = true }, []string{"verification"}},
		{"killed before its kubelet was restarted", map[string]any{nodeReady: nil}, member.Mark{ID: "id"}, func(l *nodeLook) { l.facts.RestartDue = true }, []string{"kubelet"}},
		{"GPUs that pods have", map[string]any{nodeReady: nil}, member.Mark{ID: "id"}, func(l *nodeLook) { l.untried, l.users = true, []string{"ml/bert"} }, nil},
	} {
		m := &hosttest.Machine{}
		rec, err := host.NewRecord(t.Context(), m, nodeRecord, "id", "metal_node.a")
		if err != nil {
			t.Fatal(err)
		}
		if err := rec.Replace(t.Context(), tt.notes); err != nil {
			t.Fatal(err)
		}
		l := &nodeLook{
			on: m, rec: rec, join: joinModel{CAHash: types.StringValue(ca)}, node: kubeadm.Node{Name: "gpu-1", IP: "10.0.0.5"},
			facts: kubeadm.Facts{
				Role: kubeadm.Worker, Whole: true, CAHash: ca, NodeName: "gpu-1", KubeletActive: true, KubeletEnabled: true,
				KubeletArgs: "--hostname-override=gpu-1 --node-ip=10.0.0.5",
			},
			want: member.Spec{Name: "gpu-1", ID: "id"}, have: &member.State{Node: &core.Node{}, Mark: tt.mark},
		}
		if l.cutOff, err = cutOff(rec); err != nil {
			t.Fatal(err)
		}
		if tt.edit != nil {
			tt.edit(l)
		}
		if got := slices.Sorted(maps.Keys(l.drift())); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", tt.what, got)
		}
	}
	if cut, err := cutOff(nil); cut || err != nil {
		t.Errorf("a machine without a record: %v, %v", cut, err)
	}
}

// TestNodeOwns: a node without a mark is ours where it has our machine's address.
func TestNodeOwns(t *testing.T) {
	m := &nodeModel{PrivateAddress: types.StringValue("10.0.0.5")}
	m.ID = types.StringValue("id")
	for _, tt := range []struct {
		mark, ip string
		want     bool
	}{{"id", "10.0.0.9", true}, {"another", "10.0.0.5", false}, {"", "10.0.0.5", true}, {"", "10.0.0.9", false}, {"", "", false}} {
		n := &core.Node{}
		n.Status.Addresses = []core.NodeAddress{{Type: core.NodeHostName, Address: "10.0.0.5"}, {Type: core.NodeInternalIP, Address: tt.ip}}
		if got := m.owns(t.Context(), &member.State{Node: n, Mark: member.Mark{ID: tt.mark}}); got != tt.want {
			t.Errorf("mark %q at %q: %v", tt.mark, tt.ip, got)
		}
	}
}

// TestNodeStandsBetween: what keeps a machine from the API server is told with the
// rule that is missing.
func TestNodeStandsBetween(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.5")
	said := errors.New("no answer within 8s")
	for _, tt := range []struct {
		what, endpoint, firewall string
		err                      error
		want                     []string
	}{
		{"none of ours", "10.0.0.1:6443", "", said, []string{"has no metal_firewall", "let TCP port 6443 in from 10.0.0.5"}},
		{"one without the peer", "10.0.0.1:6443", `{"role": "control-plane", "peers": ["10.0.0.4"]}`, said, []string{"TCP port 6443 only from its peers, and 10.0.0.5 is not a peer: add it to peers"}},
		{"one of a worker", "10.0.0.1:6443", `{"role": "worker", "peers": ["10.0.0.5"]}`, said, []string{`with role = "worker", opens no port 6443`, `role = "control-plane"`}},
		{"another port", "10.0.0.1:8443", `{"role": "control-plane", "peers": ["10.0.0.5"]}`, said, []string{"opens no port 8443 unless a rule of it does"}},
		{"one that lets it in", "10.0.0.1:6443", `{"role": "control-plane", "peers": ["10.0.0.5"]}`, said, []string{"so that a network or cloud firewall is in the way"}},
		{"one that lets its network in", "10.0.0.1:6443", `{"role": "control-plane", "api_clients": ["10.0.0.0/24"]}`, said, []string{"so that a network or cloud firewall is in the way"}},
		{"a name that nobody knows", "api.lab:6443", "", errors.New("api.lab: Name or service not known"), []string{"it cannot resolve that name"}},
	} {
		head := &hosttest.Machine{}
		if tt.firewall != "" {
			rec, err := host.NewRecord(context.Background(), head, firewallRecord, "id", "metal_firewall.a")
			if err == nil {
				err = rec.Declare(t.Context(), []byte(tt.firewall))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		err := standsBetween(t.Context(), head, "gpu-1", tt.endpoint, ip, tt.err)
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v", tt.what, err)
			}
		}
	}
}
