package firewall

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What nft says of a table is the table, whether or not there is an nft here:
// Debian 11's, 12's and 13's, between which Ubuntu's are.
func TestReadTable(t *testing.T) {
	files, err := filepath.Glob("testdata/live/*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadTable(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(cluster(ControlPlane, "calico").Table().Lines(), got.Lines()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestReadTableErrors(t *testing.T) {
	for _, said := range []string{
		``, `{}`, `[]`, `{"nftables": []}`, `{"nftables": [{"table": {}}]}`,
		`{"nftables": [{"metainfo": {}}, {"table": {"family": "ip", "name": "stoke"}}]}`,
		`{"nftables": [{"metainfo": {}}, {"rule": {"family": "inet", "table": "stoke", "chain": "x", "expr": []}}]}`,
		`{"nftables": [{"metainfo": {}}, {"chain": {"family": "inet", "table": "stoke", "name": "x"}}, {"rule": {"family": "inet", "table": "stoke", "chain": "x"}}]}`,
		`{"nftables": [{"metainfo": {}}, {"set": {"family": "inet", "table": "stoke", "name": "x", "type": "ipv4_addr", "elem": "y"}}]}`,
		`{"nftables": [{"metainfo": {}}, {"set": {"family": "inet", "table": "stoke", "name": "x"}}]}`,
		`{"nftables": [{"metainfo": {}, "table": {}}]}`, `{"nftables": [{"metainfo": {}}, {"table": 1}]}`,
	} {
		if table, err := ReadTable([]byte(said)); err == nil {
			t.Errorf("%s is read as %v", said, table.Lines())
		}
	}
}

func FuzzReadTable(f *testing.F) {
	if data, err := os.ReadFile("testdata/live/nft-1.0.6.json"); err == nil {
		f.Add(data)
	}
	f.Add([]byte(`{"nftables": [{"metainfo": {}}, {"map": {"family": "inet", "table": "stoke", "name": "m", "elem": [[1, {"accept": null}]]}}]}`))
	f.Add([]byte(`{"nftables": [{"metainfo": {}}, {"chain": {"family": "inet", "table": "stoke", "name": "x", "hook": "input", "prio": -1.5}}, ` +
		`{"rule": {"family": "inet", "table": "stoke", "chain": "x", "expr": [{"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": {"set": [{}]}}}, {"jump": {}}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := ReadTable(data)
		if err != nil {
			return
		}
		again, err := ReadTable(data)
		if err != nil || !slices.Equal(table.Lines(), again.Lines()) {
			t.Errorf("read twice, it differs: %v", err)
		}
	})
}

const ufwRules = `*filter
:ufw-user-input - [0:0]
### RULES ###

### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in
-A ufw-user-input -p tcp --dport 22 -j ACCEPT

### tuple ### allow tcp 10250 0.0.0.0/0 any 10.0.0.2 in comment=73746f6b653a206b7562656c6574
-A ufw-user-input -p tcp --dport 10250 -s 10.0.0.2 -j ACCEPT

### tuple ### allow udp 9100:9110 0.0.0.0/0 any 0.0.0.0/0 in comment=73746f6b653a20
### tuple ### allow any any 0.0.0.0/0 any 192.0.2.0/24 in comment=73746f6b653a20616e79
### tuple ### deny tcp 81 0.0.0.0/0 any 0.0.0.0/0 in comment=73746f6b653a206e6f74206f757273
### tuple ### allow tcp 82 0.0.0.0/0 any 0.0.0.0/0 Nginx - in comment=6d696e65
### END RULES ###
COMMIT
`

func TestReadUFW(t *testing.T) {
	said := func(changes ...string) map[string][]byte {
		m := map[string][]byte{
			"ufw.conf": []byte("# comment\nENABLED=yes\n"), "ufw.default": []byte("DEFAULT_INPUT_POLICY=\"DROP\"\n"),
			"ufw.enabled": []byte("enabled\n"), "ufw.status": []byte("Status: active\n"), "user.rules": []byte(ufwRules),
			"user6.rules": []byte("### tuple ### allow udp 9100:9110 ::/0 any ::/0 in comment=73746f6b653a20\n### tuple ### allow tcp 22 ::/0 any 2001:db8::/32 in comment=73746f6b653a20535348\n"),
		}
		for i := 0; i < len(changes); i += 2 {
			m[changes[i]] = []byte(changes[i+1])
		}
		return m
	}
	var h Have
	if err := h.readUFW(said()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`ufw: allow from 192.0.2.0/24 to any comment "any"`,
		`ufw: allow proto tcp from 10.0.0.2 to any port 10250 comment "kubelet"`,
		`ufw: allow proto tcp from 2001:db8::/32 to any port 22 comment "SSH"`,
		`ufw: allow proto udp from 0.0.0.0/0 to any port 9100:9110 comment ""`,
		`ufw: allow proto udp from ::/0 to any port 9100:9110 comment ""`,
	}
	theirs := map[string]string{"allow proto tcp from 0.0.0.0/0 to any port 22": "allow", "allow proto tcp from 0.0.0.0/0 to any port 81": "deny"}
	if diff := cmp.Diff(theirs, h.theirs); diff != "" {
		t.Errorf("somebody else's (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"allow 22/tcp from anywhere", "deny 81/tcp from anywhere", "allow 82/tcp from anywhere"}, h.Theirs); diff != "" {
		t.Errorf("somebody else's, for people (-want +got):\n%s", diff)
	}
	rule := func(port uint16) Rule { return Rule{Ports: []Ports{{TCP, port, port}}} }
	h.standIn(Spec{Role: NoRole, SSH: ranges("0.0.0.0/0"), Rules: []Rule{rule(81), rule(82)}})
	if diff := cmp.Diff([]ufwRule{{"tcp", "0.0.0.0/0", "22", "SSH"}}, h.standIns); diff != "" || len(h.against) != 1 || !strings.Contains(h.against[0], "port 81") {
		t.Errorf("against: %q, stand-ins (-want +got):\n%s", h.against, diff)
	}
	if diff := cmp.Diff(want, ufwLines(h.ufw)); diff != "" || h.Backend != UFW {
		t.Errorf("backend %q (-want +got):\n%s", h.Backend, diff)
	}
	for _, test := range []struct {
		name    string
		changes []string
		backend Backend
		err     string
	}{
		{"off", []string{"ufw.conf", "ENABLED=no", "ufw.status", "Status: inactive"}, "", ""},
		{"off after the next boot", []string{"ufw.enabled", "disabled", "ufw.status", "Status: inactive"}, "", ""},
		{"active, off after the next boot", []string{"ufw.enabled", "disabled"}, UFW, ""},
		{"without IPv6", []string{"ufw.default", "DEFAULT_INPUT_POLICY=\"DROP\"\nIPV6=no\n"}, UFW4, ""},
		{"on after the next boot", []string{"ufw.status", "Status: inactive"}, "", "enabled but not active"},
		{"active by hand", []string{"ufw.conf", "ENABLED=no"}, "", "active but not enabled"},
		{"lets everybody in", []string{"ufw.default", "DEFAULT_INPUT_POLICY=ACCEPT"}, "", "allowing means nothing"},
		{"damaged", []string{"user.rules", "### tuple ### allow tcp 1 0.0.0.0/0 any 0.0.0.0/0 in comment=7x"}, "", "user.rules"},
	} {
		var h Have
		err := errors.Join(h.readUFW(said(test.changes...)), h.unfit)
		if err != nil {
			h.Backend = ""
		}
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) || h.Backend != test.backend {
			t.Errorf("%s: backend %q, %v", test.name, h.Backend, err)
		}
	}
}

func FuzzReadUFWRule(f *testing.F) {
	for line := range strings.Lines(ufwRules) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if r, action, err := readUFWRule(line); err == nil && action != "" && r.From == "" {
			t.Errorf("%q is from nobody", line)
		}
	})
}

func readText(out []byte, want Spec) (Have, error) {
	said := map[string][]byte{}
	if err := sections(said).Read(out); err != nil {
		return Have{}, err
	}
	return readObserved(said, want)
}

func TestSections(t *testing.T) {
	encoded := func(lines ...string) []byte {
		var out string
		for i := 0; i < len(lines); i += 2 {
			out += lines[i] + "\t" + base64.StdEncoding.EncodeToString([]byte(lines[i+1])) + "\n"
		}
		return []byte(out)
	}
	for _, state := range []string{"active\ndisabled\n", "inactive\nenabled\n"} {
		if have, err := readText(append(encoded("firewalld", state), "end\n"...), Spec{}); err != nil || have.unfit == nil || !strings.Contains(have.unfit.Error(), "firewalld") {
			t.Errorf("with firewalld %q: %v, %v", state, have.unfit, err)
		}
	}
	empty := `{"nftables": [{"metainfo": {}}]}`
	have, err := readText(append(encoded("tables", empty, "firewalld", "inactive\nmasked\n",
		"legacy", "ip filter of iptables-legacy, chain INPUT\n", "filters", "ip filter, chain INPUT\ninet stoke, chain input\n"), "end\n"...), Spec{Role: NoRole})
	if err != nil || have.Backend != Nftables || have.Persistent || len(have.Lines) > 0 || have.unfit != nil || !slices.Equal(have.Others, []string{"ip filter of iptables-legacy, chain INPUT", "ip filter, chain INPUT"}) {
		t.Errorf("a machine without rules: %+v, %v", have, err)
	}
	for _, said := range []string{"", "tables\n", "end\n", "tables\t!\nend\n", string(encoded("tables", "x")) + "end\n", string(encoded(
		"tables", `{"nftables": [{"metainfo": {}}, {"table": {"family": "inet", "name": "stoke"}}]}`)) + "end\n"} {
		if have, err := readText([]byte(said), Spec{}); err == nil && said != "end\n" {
			t.Errorf("%q is read: %+v", said, have)
		}
	}
}

func FuzzReadObserved(f *testing.F) {
	f.Add([]byte("tables\t" + base64.StdEncoding.EncodeToString([]byte(`{"nftables": [{"metainfo": {}}]}`)) + "\nend\n"))
	f.Add([]byte("firewalld YWN0aXZlCg==\nend\n"))
	f.Fuzz(func(_ *testing.T, out []byte) {
		readText(out, Spec{Role: Worker}) //nolint:errcheck // it must not panic
	})
}

func FuzzReadConnections(f *testing.F) {
	f.Add(ssOutput)
	f.Fuzz(func(t *testing.T, out string) {
		c, err := readConnections(out)
		if err == nil && len(c.Listeners) > len(out) {
			t.Error("more listeners than bytes")
		}
	})
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"80/tcp": "tcp 80", "9000-9100/udp": "udp 9000-9100", "132/sctp": "sctp 132", "vrrp": "vrrp", "any": "any", "gre": "gre", "ip:112": "vrrp", "ip:200": "200", "ip:4": "ipencap",
		"80": "", "tcp": "", "0/tcp": "", "65536/tcp": "", "2-1/tcp": "", "a/tcp": "", "1/none": "", "/tcp": "", "": "", "ipip": "", "-1/tcp": "", "ip:": "", "ip:6": "", "ip:256": "",
	} {
		got, err := ParseOpening(text)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("ParseOpening(%q) = %q, %v", text, got, err)
		}
	}
	for text, ok := range map[string]bool{
		"nodes": true, "pods": true, "control_planes": true, "api_clients": true, "10.0.0.0/8": true, "10.0.0.1": true, "::/0": true, "2001:db8::1": true,
		"ssh": false, "10.0.0.1/8": false, "10.0.0": false, "": false, "fe80::1%eth0": false, "example.org": false, "10.0.0.0/33": false,
	} {
		if got, err := ParseSource(text); (err == nil) != ok {
			t.Errorf("ParseSource(%q) = %v, %v", text, got, err)
		}
	}
}

func TestProblems(t *testing.T) {
	bad := Spec{
		Role: "master", Nodes: addrs("2001:db8::1", "0.0.0.0"), Pods: ranges("fd00::/48"), Confirm: 1,
		NodePorts: []Rule{{Ports: []Ports{{TCP, 443, 443}}}, {}},
		Rules: []Rule{{Ports: []Ports{{TCP, 2, 1}, {1, 5, 5}}}, {Ports: []Ports{{TCP, 1, 1}}, Comment: `say "no"`, From: []Source{{Group: "friends"}}},
			{Ports: []Ports{{TCP, 1, 1}}, Comment: "two\nlines"}},
	}
	var got []string
	for _, p := range bad.Problems() {
		got = append(got, p.Argument)
	}
	want := []string{"role", "peers", "peers", "pod_network", "ssh_from", "node_ports[0]", "node_ports[1]", "rule[0]", "rule[0]", "rule[1]", "rule[1]", "rule[2]", "confirm_within"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if p := (Spec{Role: Worker, SSH: ranges("10.0.0.0/8")}).Problems(); len(p) != 1 || p[0].Argument != "peers" {
		t.Errorf("a node without nodes: %v", p)
	}
}

func TestAllows(t *testing.T) {
	s := cluster(ControlPlane, "flannel")
	for text, want := range map[string]bool{
		"tcp 22 203.0.113.9": true, "tcp 22 198.51.100.1": false, "tcp 22 2001:db8:1::5": true, "tcp 22 2001:db8:2::5": false, "udp 22 203.0.113.9": false,
		"tcp 2379 10.77.0.10": true, "tcp 2379 10.77.0.12": false, "tcp 10250 10.77.0.110": true, "tcp 10250 10.77.0.109": false, "tcp 10250 10.244.9.9": true,
		"tcp 6443 192.0.2.77": true, "tcp 6443 8.8.8.8": false, "tcp 30080 8.8.8.8": true, "tcp 30443 8.8.8.8": false, "tcp 30443 198.51.100.8": true, "tcp 1 10.99.0.9": true,
	} {
		var protocol, address string
		var port uint16
		fmt.Sscan(text, &protocol, &port, &address)
		p, _ := ParseProtocol(protocol)
		if got := s.Allows(p, port, netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// What computing and comparing rules costs grows with the number of peers.
func BenchmarkPeers(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			spec := cluster(ControlPlane, "calico")
			for i := range n {
				spec.Nodes = append(spec.Nodes, netip.AddrFrom4([4]byte{10, 100, byte(i >> 8), byte(i)}))
			}
			have := Have{Backend: Nftables, Persistent: true, Lines: spec.Lines(Nftables)}
			spec.Nodes = append(spec.Nodes, netip.AddrFrom4([4]byte{10, 200, 0, 1}))
			for b.Loop() {
				if changes := Table.Diff(spec, have); len(changes) != 1 {
					b.Fatal(len(changes))
				}
				spec.Table().File()
			}
		})
	}
}
