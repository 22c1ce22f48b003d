package metal

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/drain"
	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// nodeMachine is a machine that is a node, and reaches the API server.
type nodeMachine struct {
	hosttest.Machine
	cut bool
}

func newNodeMachine(c *draintest.Cluster, node string) *nodeMachine {
	m := &nodeMachine{}
	m.Files = map[string]ssh.File{}
	files := c.Files(node)
	for name, content := range files {
		m.Files[name] = ssh.File{Path: name, Content: content}
	}
	m.Answer = func(cmd host.Command) (hosttest.Answer, bool) {
		if len(cmd.Args) == 6 && strings.HasSuffix(cmd.Args[4], ".pem") {
			pem := string(files[cmd.Args[4]])
			return hosttest.Answer{Stdout: strings.Repeat(strconv.Itoa(len(pem))+"\n"+pem, 2)}, true
		}
		return hosttest.Answer{}, false
	}
	return m
}

func (m *nodeMachine) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if m.cut {
		return nil, errors.New("connection refused")
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

func reboots() []host.Change {
	return []host.Change{{Fact: "kernel", Path: []string{"packages", "linux-image"}, Disruption: host.Reboots}}
}

func TestForetell(t *testing.T) {
	c := draintest.New(t, nil)
	c.AddNode("a")
	c.AddPod("a", "ml/bert", draintest.GPUs(1))
	c.AddNode("cp", func(n *core.Node) { n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""} })
	list := hosttest.NewChecks(t, "foretell")
	tests := map[string]struct {
		machine host.Machine
		changes []host.Change
		policy  drain.Policy
		notes   string
		diags   string
	}{
		"nothing":            {newNodeMachine(c, "a"), nil, drain.Policy{}, "", ""},
		"no node":            {&hosttest.Machine{}, reboots(), drain.Policy{}, "kernel: reboots the machine", ""},
		"a control plane":    {newNodeMachine(c, "cp"), []host.Change{{Fact: "containerd's proxy", Disruption: host.RestartsContainer}}, drain.Policy{}, "containerd's proxy, which restarts containerd: makes the API unavailable\nmakes the API unavailable (containerd's proxy, which restarts containerd): pods go on, kubectl and controllers wait unless", ""},
		"refused":            {newNodeMachine(c, "a"), reboots(), drain.Policy{}, "kernel: reboots the machine", `E Running pods would be hurt: 192.0.2.1: reboots the machine (kernel); node a runs 1 pod in training (ml/bert). Wait until they have ended, or set disruption = "drain"`},
		"drained":            {newNodeMachine(c, "a"), reboots(), drain.Policy{Drain: true}, "which leave it first", ""},
		"not known":          {&nodeMachine{Machine: hosttest.Machine{Files: newNodeMachine(c, "a").Files, Answer: newNodeMachine(c, "a").Answer}, cut: true}, reboots(), drain.Policy{}, "kernel", "W The work on the node is not known"},
		"not known, no harm": {&nodeMachine{Machine: hosttest.Machine{Files: newNodeMachine(c, "a").Files, Answer: newNodeMachine(c, "a").Answer}, cut: true}, []host.Change{{Fact: "containerd", Disruption: host.RestartsContainer}}, drain.Policy{}, "containerd: restarts containerd", ""},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			var notes, said []string
			ctx := providers.WithCall(t.Context(), &providers.Call{Note: func(n providers.Note) { notes = append(notes, n.Text) }})
			var diags diag.Diagnostics
			s := &settings{shared: newShared()}
			s.reportPlan(ctx, &diags, test.machine, test.changes, test.policy)
			for _, d := range diags {
				said = append(said, d.Severity().String()[:1]+" "+d.Summary()+": "+d.Detail())
			}
			list.Case("%s", name)
			list.Say("%s\n%s", strings.Join(notes, "\n"), strings.ReplaceAll(strings.Join(said, "\n"), strings.TrimPrefix(c.URL, "https://"), "ADDRESS"))
			if got := strings.Join(notes, "\n"); !strings.Contains(got, test.notes) || test.notes == "" && got != "" {
				t.Errorf("notes %q, want %q", got, test.notes)
			}
			if got := strings.Join(said, "\n"); !strings.Contains(got, test.diags) || test.diags == "" && got != "" {
				t.Errorf("diagnostics %q, want %q", got, test.diags)
			}
		})
	}
}

func TestDisrupt(t *testing.T) {
	c := draintest.New(t, nil)
	c.AddNode("a")
	c.AddPod("a", "ml/bert", draintest.GPUs(1))
	s := &settings{shared: newShared()}
	run := func(m host.Machine, changes []host.Change, p drain.Policy) (asked, worked bool, err error) {
		err = s.disrupt(t.Context(), m, func(context.Context) ([]host.Change, error) { asked = true; return changes, nil }, p,
			func(context.Context) error { worked = true; return nil })
		return asked, worked, err
	}
	if asked, worked, err := run(&hosttest.Machine{}, reboots(), drain.Policy{}); asked || !worked || err != nil {
		t.Errorf("no node: asked %v, worked %v, %v", asked, worked, err)
	}
	var refused *drain.RefusedError
	if _, worked, err := run(newNodeMachine(c, "a"), reboots(), drain.Policy{}); worked || !errors.As(err, &refused) {
		t.Errorf("refused: worked %v, %v", worked, err)
	}
	cut := newNodeMachine(c, "a")
	cut.cut = true
	if _, worked, err := run(cut, reboots(), drain.Policy{Drain: true}); worked || err == nil || !strings.Contains(err.Error(), "what runs on the node is not known") {
		t.Errorf("not known: worked %v, %v", worked, err)
	}
	if _, worked, err := run(cut, nil, drain.Policy{}); !worked || err != nil {
		t.Errorf("not known, no harm: worked %v, %v", worked, err)
	}
	if _, worked, err := run(newNodeMachine(c, "a"), reboots(), drain.Policy{Drain: true}); !worked || err != nil || len(c.Pods("a")) != 0 {
		t.Errorf("drained: worked %v, %v", worked, err)
	}
	if by := s.cordonedBy(t.Context(), newNodeMachine(c, "a")); !by.IsNull() {
		t.Errorf("cordoned by %s", by)
	}
	if d := c.Node("a"); d.Spec.Unschedulable {
		t.Error("it stays cordoned")
	}
}

// TestClusterLimits: the cluster's max_unavailable wins over a machine's own.
func TestClusterLimits(t *testing.T) {
	for _, test := range []struct {
		name, kind, declared string
		want                 int
	}{
		{"no node of ours", "", "", 5},
		{"a node", nodeRecord, `{"max_unavailable": 4, "cluster": {"max_unavailable": 2}}`, 2},
		{"a node of a cluster that does not say", nodeRecord, `{"max_unavailable": 4, "cluster": {"version": "1.36.3"}}`, 5},
		{"the control plane's", clusterRecord, `{"max_unavailable": 3}`, 3},
	} {
		m := &hosttest.Machine{}
		if test.kind != "" {
			rec, err := host.NewRecord(t.Context(), m, test.kind, "id", "metal_node.a")
			if err == nil {
				err = rec.Declare(t.Context(), json.RawMessage(test.declared))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if p, err := inCluster(t.Context(), m, drain.Policy{Drain: true, MaxUnavailable: 5}); err != nil || p.MaxUnavailable != test.want || !p.Drain {
			t.Errorf("%s: %+v, %v", test.name, p, err)
		}
	}
	// A machine's own resource may have three away at once, and the cluster one.
	c := draintest.New(t, nil)
	for _, name := range []string{"a", "b"} {
		c.AddNode(name)
	}
	c.SetReady("b", false)
	s := &settings{shared: newShared()}
	if err := s.disrupt(t.Context(), newNodeMachine(c, "b"), func(context.Context) ([]host.Change, error) { return nil, nil }, drain.Policy{}, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	m := newNodeMachine(c, "a")
	rec, err := host.NewRecord(t.Context(), m, nodeRecord, "id", "metal_node.a")
	if err == nil {
		err = rec.Declare(t.Context(), json.RawMessage(`{"cluster": {"max_unavailable": 1}}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	worked := false
	err = s.disrupt(ctx, m, func(context.Context) ([]host.Change, error) { return reboots(), nil }, drain.Policy{Drain: true, MaxUnavailable: 3}, func(context.Context) error { worked = true; return nil })
	if worked || err == nil {
		t.Errorf("a second node became unavailable: %v", err)
	}
}

func TestCordonedBy(t *testing.T) {
	c := draintest.New(t, nil)
	c.AddNode("a")
	s := &settings{shared: newShared()}
	s.shared.roll.By = "alice"
	m := newNodeMachine(c, "a")
	err := s.disrupt(t.Context(), m, func(context.Context) ([]host.Change, error) { return reboots(), nil }, drain.Policy{}, func(context.Context) error { return errors.New("power cut") })
	if err == nil {
		t.Fatal("no error")
	}
	if by := s.cordonedBy(t.Context(), m).ValueString(); !strings.HasPrefix(by, "stoke (alice, ") {
		t.Errorf("%q", by)
	}
	c.SetReady("a", true)
	if err := s.disrupt(t.Context(), m, func(context.Context) ([]host.Change, error) { return nil, nil }, drain.Policy{}, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if c.Node("a").Spec.Unschedulable {
		t.Error("it stays cordoned")
	}
}

// TestPromise: apply interrupts a node no more than its plan has shown, and a
// machine that is no node is as the policy of its reboots says.
func TestPromise(t *testing.T) {
	c := draintest.New(t, nil)
	c.AddNode("a")
	s := &settings{shared: newShared()}
	planned := func(p promise) context.Context {
		inner, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string][]byte{promiseKey: inner})
		if err != nil {
			t.Fatal(err)
		}
		return providers.WithCall(t.Context(), &providers.Call{Planned: text})
	}
	one := func(d host.Disruption, reloads bool) []host.Change {
		return []host.Change{{Fact: "package x", Disruption: d, Reloads: reloads}}
	}
	for _, test := range []struct {
		planned promise
		now     []host.Change
		fails   string
		bound   string // of packages
	}{
		{promise{}, one(host.Reboots, false), "", "<nil>"},
		{promising(nil), nil, "", "none"},
		{promising(nil), one(host.RestartsKubelet, false), "192.0.2.1 has changed since it was planned: what differs now (package x) restarts the kubelet, and the plan shows none at most", ""},
		{promising(one(host.RestartsContainer, false)), one(host.RestartsContainer, false), "", "none"},
		{promising(one(host.RestartsContainer, false)), one(host.RestartsContainer, true), "(package x) reloads systemd, and the plan shows restarts containerd at most", ""},
		{promising(one(host.RestartsContainer, true)), one(host.ReloadsSystemd, false), "", "reloads systemd"},
		{promising(one(host.Reboots, false)), one(host.Drains, true), "", "<nil>"},
		{promising(one(host.Drains, false)), one(host.Reboots, true), "reboots the machine, and the plan shows drains the node at most", ""},
	} {
		worked, got := false, ""
		err := s.disrupt(planned(test.planned), newNodeMachine(c, "a"), func(context.Context) ([]host.Change, error) { return test.now, nil }, drain.Policy{Limits: drain.Limits{Pause: time.Millisecond}},
			func(ctx context.Context) error {
				worked, got = true, "<nil>"
				if b := bound(ctx); b != nil {
					got = b.String()
				}
				return nil
			})
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) || worked != (test.fails == "") || got != test.bound {
			t.Errorf("planned %+v, now %v: %v, worked %v, bound %s", test.planned, test.now, err, worked, got)
		}
	}
	for _, odd := range []string{"", "x", "null", `{"interrupts":"!"}`, `{"interrupts":"e30="}`} {
		if p := promised(providers.WithCall(t.Context(), &providers.Call{Planned: []byte(odd)})); p.Looked {
			t.Errorf("%q promises %+v", odd, p)
		}
	}
}

func TestCountBy(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	c := draintest.New(t, nil)
	for name, content := range map[string][]byte{"good": c.Kubeconfig(true), "bad": []byte("x")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		file types.String
		says string
	}{
		{types.StringNull(), ""}, {types.StringUnknown(), ""}, {types.StringValue("~/good"), ""},
		{types.StringValue("~/bad"), "Error Invalid kubeconfig: " + dir + "/bad: it is no kubeconfig."},
		{types.StringValue("~/none"), "Warning Nodes elsewhere are not counted: " + dir + "/none: "},
	} {
		said := ""
		for _, d := range newShared().countBy(test.file) {
			said += d.Severity().String() + " " + d.Summary() + ": " + d.Detail()
		}
		if !strings.HasPrefix(said, test.says) || test.says == "" && said != "" {
			t.Errorf("%s: %q, want %q", test.file, said, test.says)
		}
	}
}
