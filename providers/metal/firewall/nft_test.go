package firewall

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func addrs(s ...string) []netip.Addr {
	var out []netip.Addr
	for _, a := range s {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func ranges(s ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, a := range s {
		r, err := ParseRange(a)
		if err != nil {
			panic(err)
		}
		out = append(out, r)
	}
	return out
}

// cluster is a Spec with everything in it.
func cluster(role Role, cni string) Spec {
	ports, err := CNIPorts(cni)
	if err != nil {
		panic(err)
	}
	return Spec{
		Role: role, CNI: ports,
		Nodes: addrs("10.77.0.12", "10.77.0.11", "10.77.0.110"), ControlPlanes: addrs("10.77.0.11", "10.77.0.10"),
		Pods: ranges("10.244.0.0/16"), APIClients: ranges("192.0.2.0/24", "2001:db8::/32"),
		NodePorts: []Rule{
			{Ports: []Ports{{TCP, 30080, 30080}, {UDP, 30080, 30090}}},
			{Ports: []Ports{{TCP, 30443, 30443}}, From: []Source{{Range: ranges("198.51.100.0/24")[0]}, {Group: Nodes}}, Comment: "ingress"},
		},
		SSH: ranges("203.0.113.7", "203.0.113.0/24", "10.77.0.1", "2001:db8:1::/48"),
		Rules: []Rule{
			{Ports: []Ports{{TCP, 9400, 9400}, {TCP, 9100, 9110}}, From: []Source{{Group: Nodes}, {Group: Pods}}, Comment: "metrics"},
			{Ports: []Ports{{112, 0, 0}}, From: []Source{{Group: ControlPlanes}}, Comment: "keepalived"},
			{Ports: []Ports{{AnyProtocol, 0, 0}}, From: []Source{{Range: ranges("10.99.0.0/24")[0]}, {Range: ranges("2001:db8:2::1")[0]}}},
			{Ports: []Ports{{SCTP, 32000, 33000}}},
		},
	}
}

// specs are what golden files and nft are asked about.
func specs() map[string]Spec {
	all := map[string]Spec{}
	for _, role := range []Role{NoRole, Worker, ControlPlane} {
		for _, cni := range CNIs() {
			all[fmt.Sprintf("%s-%s", role, cni)] = cluster(role, cni)
		}
	}
	all["everybody"] = Spec{Role: NoRole, SSH: ranges("0.0.0.0/0", "::/0"), SSHPort: 2222}
	return all
}

func TestTable(t *testing.T) {
	for name, s := range specs() {
		t.Run(name, func(t *testing.T) {
			if p := s.Problems(); len(p) > 0 {
				t.Errorf("problems: %v", p)
			}
			golden(t, filepath.Join("tables", name+".nft"), s.Table().File())
		})
	}
}

// nft runs nft in a network namespace of its own, or skips the test.
func nft(t *testing.T, script string, stdin []byte) []byte {
	t.Helper()
	for _, program := range []string{"nft", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-n", "sh", "-ec", script)
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return out
}

// Every table is taken by nft, twice over, and read back the same. -c is what
// somebody would check with.
func TestTableLoads(t *testing.T) {
	for name, s := range specs() {
		t.Run(name, func(t *testing.T) {
			table := s.Table()
			out := nft(t, `f=$(cat); echo "$f" | nft -c -f -; echo "$f" | nft -f -; echo "$f" | nft -f -; nft -j list table inet stoke`, table.File())
			live, err := ReadTable(out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(table.Lines(), live.Lines()); diff != "" {
				t.Errorf("nft has something else (-want +live):\n%s", diff)
			}
		})
	}
}

// What somebody does by hand shows as exactly that.
func TestDriftByHand(t *testing.T) {
	tests := []struct {
		name, commands string
		missing, extra []string
	}{
		{"a rule more", `nft add rule inet stoke input tcp dport 8080 accept`, nil, []string{"input: tcp dport 8080 accept"}},
		{"a rule first", `nft insert rule inet stoke input ip saddr 10.9.9.9 counter log prefix '"x"' drop`, nil,
			[]string{`input: ip saddr 10.9.9.9 counter {"log":{"prefix":"x"}} drop`}},
		{"a rule less", `nft delete rule inet stoke nodeports handle $(nft -a list table inet stoke | sed -n 's/.*tcp dport 30080 accept.*handle //p' | tail -1)`,
			[]string{`nodeports: tcp dport 30080 accept comment "node port"`}, nil},
		{"a node less", `nft delete element inet stoke nodes { 10.77.0.12 }`, []string{"@nodes: 10.77.0.12"}, nil},
		{"a range more", `nft add element inet stoke pods { 10.200.0.0/16 }`, nil, []string{"@pods: 10.200.0.0/16"}},
		{"policy", `nft chain inet stoke input '{ policy accept; }'`,
			[]string{"input: type filter hook input priority 0; policy drop"}, []string{"input: type filter hook input priority 0; policy accept"}},
		{"a chain", `nft 'add chain inet stoke mine { type filter hook forward priority 5; }; add rule inet stoke mine tcp flags syn tcp option maxseg size set rt mtu'`, nil,
			[]string{"mine: type filter hook forward priority 5; policy accept", `mine: `}},
		{"switched off", `nft add table inet stoke '{ flags dormant; }'`, nil, []string{"table: flags dormant"}},
		{"a map", `nft add map inet stoke m '{ type inet_service : verdict; elements = { 80 : accept }; }'`, nil, []string{`map m: `}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			table := cluster(Worker, "flannel").Table()
			live, err := ReadTable(nft(t, "nft -f -\n"+test.commands+"\nnft -j list table inet stoke", table.File()))
			if err != nil {
				t.Fatal(err)
			}
			missing, extra := difference(table.Lines(), live.Lines())
			begins := func(want, got []string) bool {
				return slices.EqualFunc(want, got, func(w, g string) bool { return strings.HasPrefix(g, w) })
			}
			if !begins(test.missing, missing) || !begins(test.extra, extra) {
				t.Errorf("missing %q, extra %q; want %q and %q", missing, extra, test.missing, test.extra)
			}
		})
	}
}
