package metal

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

func setOf(texts ...string) types.Set {
	var v []attr.Value
	for _, t := range texts {
		v = append(v, types.StringValue(t))
	}
	return types.SetValueMust(types.StringType, v)
}

func ruleBlock(t *testing.T, rules ...firewallRuleModel) types.List {
	t.Helper()
	kind := types.ObjectType{AttrTypes: map[string]attr.Type{
		"ports": types.SetType{ElemType: types.StringType}, "from": types.SetType{ElemType: types.StringType}, "comment": types.StringType,
	}}
	l, diags := types.ListValueFrom(t.Context(), kind, rules)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return l
}

func firewallOf(t *testing.T) firewallModel {
	t.Helper()
	way := connect.SSH{Hop: connect.Hop{Address: "10.0.0.1", Port: 2222, HostKey: "ssh-ed25519 AAAA"}}
	o, diags := way.Object(t.Context())
	if diags.HasError() {
		t.Fatal(diags)
	}
	none := types.SetNull(types.StringType)
	return firewallModel{
		onMachine: onMachine{Host: o}, Role: types.StringValue("worker"), Peers: setOf("10.0.0.1", "10.0.0.2"), ControlPlanes: none, PodNetwork: none, CNI: types.StringValue("flannel"),
		CNIPorts: none, APIClients: none, SSHFrom: setOf("192.0.2.0/24"), SSHPort: types.Int64Null(), ConfirmWithin: types.StringNull(),
		NodePorts: ruleBlock(t), Rules: ruleBlock(t, firewallRuleModel{Ports: setOf("80/tcp"), From: setOf("nodes", "10.9.0.0/16"), Comment: types.StringValue("web")}),
	}
}

func TestFirewallSpec(t *testing.T) {
	m := firewallOf(t)
	var diags diag.Diagnostics
	s, known := m.spec(context.Background(), &diags)
	if !known || diags.HasError() {
		t.Fatal(diags)
	}
	lines := strings.Join(s.Lines(firewall.Nftables), "\n")
	for _, line := range []string{
		`input: ip saddr @ssh tcp dport 2222 accept comment "SSH"`, `@ssh: 192.0.2.0/24`, `@nodes: 10.0.0.2`,
		`input: ip saddr @nodes udp dport 8472 accept comment "pod network"`, `input: ip saddr 10.9.0.0/16 tcp dport 80 accept comment "web"`,
	} {
		if !strings.Contains(lines, line) {
			t.Errorf("%q is missing in:\n%s", line, lines)
		}
	}
	m.SSHFrom = types.SetNull(types.StringType)
	if s, _ := m.spec(context.Background(), &diags); !s.Allows(firewall.TCP, 2222, s.Nodes[0]) {
		t.Error("without ssh_from nobody logs in")
	}
}

func TestFirewallMistakes(t *testing.T) {
	list := hosttest.NewChecks(t, "firewall-mistakes")
	cases := map[string]struct {
		change  func(m *firewallModel)
		at      string
		says    string
		unknown bool
	}{
		"a host name": {func(m *firewallModel) { m.Peers = setOf("node-1") }, "peers", `"node-1" is not an IP address`, false},
		"IPv6":        {func(m *firewallModel) { m.Peers = setOf("2001:db8::1") }, "peers", "is not IPv4", false},
		"bits behind": {func(m *firewallModel) { m.PodNetwork = setOf("10.244.0.1/16") }, "pod_network", "is 10.244.0.0/16 meant?", false},
		"nobody":      {func(m *firewallModel) { m.SSHFrom = setOf() }, "ssh_from", "No login would be possible", false},
		"no port":     {func(m *firewallModel) { m.SSHPort = types.Int64Value(70000) }, "ssh_port", "70000 is no port", false},
		"no duration": {func(m *firewallModel) { m.ConfirmWithin = types.StringValue("soon") }, "confirm_within", "not a duration", false},
		"too short":   {func(m *firewallModel) { m.ConfirmWithin = types.StringValue("1s") }, "confirm_within", "not between", false},
		"no node port": {func(m *firewallModel) {
			m.NodePorts = ruleBlock(t, firewallRuleModel{Ports: setOf("80/tcp"), From: types.SetNull(types.StringType)})
		}, "node_port", "outside of 30000-32767", false},
		"a bare port": {func(m *firewallModel) {
			m.Rules = ruleBlock(t, firewallRuleModel{Ports: setOf("80"), From: types.SetNull(types.StringType)})
		}, "rule[0].ports", "write 80/tcp", false},
		"from nobody": {func(m *firewallModel) {
			m.Rules = ruleBlock(t, firewallRuleModel{Ports: setOf("80/tcp"), From: setOf()})
		}, "rule[0].from", "It is empty, so that no address could connect", false},
		"port 0":    {func(m *firewallModel) { m.SSHPort = types.Int64Value(0) }, "ssh_port", "0 is no port", false},
		"mapped":    {func(m *firewallModel) { m.SSHFrom = setOf("::ffff:192.0.2.0/120") }, "ssh_from", "write it as IPv4", false},
		"broadcast": {func(m *firewallModel) { m.ControlPlanes = setOf("255.255.255.255") }, "control_planes", "is not valid for a machine", false},
		"no group": {func(m *firewallModel) {
			m.Rules = ruleBlock(t, firewallRuleModel{Ports: setOf("80/tcp"), From: setOf("friends")})
		}, "rule[0].from", `"friends" is neither`, false},
		"IP in IP by name": {func(m *firewallModel) { m.CNIPorts = setOf("ipip") }, "cni_ports", "write ip:4 or ip:94", false},
		"unknown peers":    {func(m *firewallModel) { m.Peers = types.SetUnknown(types.StringType) }, "", "", true},
		"an unknown peer": {func(m *firewallModel) {
			m.Peers = types.SetValueMust(types.StringType, []attr.Value{types.StringUnknown()})
		}, "", "", true},
		"an unknown machine": {func(m *firewallModel) { m.Host = types.ObjectUnknown(connect.MachineTypes()) }, "", "", true},
		"unknown blocks":     {func(m *firewallModel) { m.Rules = types.ListUnknown(m.Rules.ElementType(context.Background())) }, "", "", true},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		test := cases[name]
		m := firewallOf(t)
		test.change(&m)
		var diags diag.Diagnostics
		_, known := m.spec(context.Background(), &diags)
		list.Case("%s", name)
		for _, d := range diags {
			list.Say("%s: %s", d.Summary(), d.Detail())
		}
		if known || diags.HasError() == test.unknown {
			t.Errorf("%s: known %v, %v", name, known, diags)
			continue
		}
		if test.unknown {
			continue
		}
		d, ok := diags[0].(diag.DiagnosticWithPath)
		if !ok || d.Path().String() != test.at || !strings.Contains(d.Detail(), test.says) {
			t.Errorf("%s: %s", name, cmp.Diff([]string{test.at, test.says}, []string{d.Path().String(), d.Detail()}))
		}
	}
}

func TestFirewallOtherMachine(t *testing.T) {
	object := func(address, key string) types.Object {
		o, _ := connect.SSH{Hop: connect.Hop{Address: address, HostKey: key}}.Object(t.Context())
		return o
	}
	if was := object("10.0.0.1", "a"); otherMachine(t.Context(), was, object("10.0.0.2", "a")) || !otherMachine(t.Context(), was, object("10.0.0.1", "b")) {
		t.Error("a machine is known by its key, not by its address")
	}
}
