package metal

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/member"
)

// TestNodeTaints: GPUs bring a taint on workers, and on a control plane where it is
// asked for; a declared one of the same key and effect is the declared one.
func TestNodeTaints(t *testing.T) {
	gpus := declaredNode{gpus: map[string]int64{member.GPU: 2, "nvidia.com/mig-1g.10gb": 0}}
	for _, tt := range []struct {
		ask  types.Bool
		own  bool
		want string
	}{
		{types.BoolNull(), false, "nvidia.com/gpu=present:NoSchedule"}, {types.BoolNull(), true, ""},
		{types.BoolValue(true), true, "nvidia.com/gpu=present:NoSchedule"}, {types.BoolValue(false), false, ""},
	} {
		m := nodeModel{GPUTaint: tt.ask}
		var got []string
		for _, taint := range m.gpuTaints(gpus, tt.own) {
			got = append(got, taint.ToString())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("asked %s, own %v: %v", tt.ask, tt.own, got)
		}
	}
	declared := gpus
	declared.taints = (&nodeModel{}).gpuTaints(gpus, false)
	declared.taints[0].Value = "mine"
	if got := (&nodeModel{}).gpuTaints(declared, false); len(got) > 0 {
		t.Errorf("beside a declared taint: %v", got)
	}
	n := (&nodeModel{}).node(declaredNode{labels: map[string]string{"node-role.kubernetes.io/gpu": "", "pool": "a"}, gpus: gpus.gpus}, "gpu-1", "10.0.0.5")
	if len(n.Labels) != 2 || n.Labels["pool"] != "a" || n.Labels["nvidia.com/gpu.present"] != "true" || len(n.Taints) != 1 || len(n.Check()) > 0 {
		t.Errorf("kubeadm is told %+v", n)
	}
	for _, tt := range []struct {
		d    declaredNode
		want map[string]string
	}{
		{declaredNode{labels: map[string]string{"pool": "a"}}, map[string]string{"pool": "a"}},
		{declaredNode{gpus: map[string]int64{member.GPU: 0}}, nil},
		{gpus, map[string]string{"nvidia.com/gpu.present": "true"}},
		{declaredNode{labels: map[string]string{"nvidia.com/gpu.present": "false"}, gpus: gpus.gpus}, map[string]string{"nvidia.com/gpu.present": "false"}},
	} {
		if got := (&nodeModel{}).member(tt.d, "gpu-1", true).Labels; !maps.Equal(got, tt.want) {
			t.Errorf("labels %v, want %v", got, tt.want)
		}
	}
}

// TestNodeAddress: SSH may go by a name, the kubelet may not.
func TestNodeAddress(t *testing.T) {
	way := connect.SSH{Hop: connect.Hop{Address: "gpu1.example.org"}}
	if _, err := (&nodeModel{}).address(way); err == nil || !strings.Contains(err.Error(), "private_address") {
		t.Errorf("a name as the node's address: %v", err)
	}
	way.Address = "10.0.0.5"
	if ip, err := (&nodeModel{PrivateAddress: types.StringValue("192.168.0.5")}).address(way); err != nil || ip.String() != "192.168.0.5" {
		t.Errorf("%s, %v", ip, err)
	}
	if ip, err := (&nodeModel{}).address(way); err != nil || ip.String() != "10.0.0.5" {
		t.Errorf("%s, %v", ip, err)
	}
}

// TestNodePlannedName: a plan promises no name that nobody knows yet.
func TestNodePlannedName(t *testing.T) {
	null, unknown, is := types.StringNull(), types.StringUnknown(), types.StringValue("gpu-1")
	for _, tt := range []struct {
		what           string
		declared, name types.String
		replaces       bool
		want           types.String
	}{
		{"as it has joined", null, is, false, is},
		{"killed before its name was known", null, null, false, unknown},
		{"to be made", null, unknown, false, unknown},
		{"on another machine", null, is, true, unknown},
		{"declared", types.StringValue("gpu-2"), is, false, types.StringValue("gpu-2")},
		{"declared by what is not known yet", unknown, is, false, unknown},
	} {
		if got := (&nodeModel{NodeName: tt.declared, Name: tt.name}).plannedName(tt.replaces); !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}

// TestNodeProblems: what stands in the way is told before anything is changed.
func TestNodeProblems(t *testing.T) {
	const ca = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	good := func() *nodeLook {
		return &nodeLook{
			on: &hosttest.Machine{}, join: joinModel{CAHash: types.StringValue(ca)}, ip: netip.MustParseAddr("10.0.0.5"),
			node: kubeadm.Node{Name: "gpu-1", IP: "10.0.0.5"}, local: nodeLocal{addresses: []string{"127.0.0.1", "10.0.0.5", "fe80::1"}, containerd: true},
		}
	}
	for _, tt := range []struct {
		what string
		edit func(*nodeLook)
		want []string
	}{
		{"a machine that is ready", func(*nodeLook) {}, nil},
		{"a worker of this cluster", func(l *nodeLook) {
			l.facts = kubeadm.Facts{Role: kubeadm.Worker, Whole: true, CAHash: ca, NodeName: "gpu-1"}
		}, nil},
		{"a join that was cut off", func(l *nodeLook) { l.facts = kubeadm.Facts{Role: kubeadm.Worker} }, nil},
		{"another cluster's", func(l *nodeLook) { l.facts = kubeadm.Facts{Role: kubeadm.Worker, Whole: true, CAHash: "sha256:1"} }, []string{"Machine belongs to another cluster"}},
		{"a control plane", func(l *nodeLook) { l.facts = kubeadm.Facts{Role: kubeadm.ControlPlane} }, []string{"Machine is a control plane"}},
		{"leftovers", func(l *nodeLook) { l.facts.Left = []string{"/etc/kubernetes/pki/ca.crt"} }, []string{"Something is left of a cluster"}},
		{"a version that does not fit", func(l *nodeLook) { l.skew = "The kubelet would be newer" }, []string{"Version does not fit the cluster"}},
		{"nothing of what it needs", func(l *nodeLook) { l.local = nodeLocal{} }, []string{"Machine has no such address", "containerd does not run"}},
		{"the control plane's own, before kubeadm init", func(l *nodeLook) { l.own = true }, []string{"Control plane is not whole"}},
	} {
		l := good()
		tt.edit(l)
		var got []string
		for _, p := range l.problems(t.Context(), &nodeModel{}) {
			got = append(got, p.summary)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v", tt.what, got)
		}
	}
}

// TestNodeDials: why the API server cannot be reached is what bash says.
func TestNodeDials(t *testing.T) {
	answer := hosttest.Answer{}
	m := &hosttest.Machine{Answer: func(host.Command) (hosttest.Answer, bool) { return answer, true }}
	if err := dials(t.Context(), m, "10.0.0.1:6443"); err != nil {
		t.Error(err)
	}
	answer = hosttest.Answer{Status: 1, Stderr: "bash: connect: Connection refused\nbash: line 1: /dev/tcp/10.0.0.1/6443: Connection refused\n"}
	if err := dials(t.Context(), m, "10.0.0.1:6443"); err == nil || !strings.Contains(err.Error(), "Connection refused") {
		t.Error(err)
	}
	answer = hosttest.Answer{Status: 124}
	if err := dials(t.Context(), m, "10.0.0.1:6443"); err == nil || !strings.Contains(err.Error(), "no answer within 8s") {
		t.Error(err)
	}
	if ip := netip.MustParseAddr("10.0.0.5"); !letsIn([]string{"10.0.0.4", "10.0.0.5"}, ip) || !letsIn([]string{"10.0.0.0/24"}, ip) || letsIn([]string{"10.0.0.4", "10.0.1.0/24"}, ip) {
		t.Error("peers are not told")
	}
}
