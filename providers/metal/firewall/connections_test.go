package firewall

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// As Debian 12's and Ubuntu's iproute2 say it.
const ssOutput = `udp   UNCONN 0      0          127.0.0.53%lo:53        0.0.0.0:*     users:(("systemd-resolve",pid=301,fd=13))
udp   UNCONN 0      0      10.0.0.11%eth0:68        0.0.0.0:*     users:(("systemd-network",pid=299,fd=18))
udp   UNCONN 0      0             0.0.0.0:8472      0.0.0.0:*
tcp   LISTEN 0      128           0.0.0.0:22        0.0.0.0:*     users:(("sshd",pid=411,fd=3))
tcp   LISTEN 0      4096        127.0.0.1:10248     0.0.0.0:*     users:(("kubelet",pid=700,fd=20))
tcp   LISTEN 0      4096                *:10250           *:*     users:(("kubelet",pid=700,fd=21))
tcp   LISTEN 0      128              [::]:22           [::]:*     users:(("sshd",pid=411,fd=4))
tcp   LISTEN 0      244         10.0.0.11:5432      0.0.0.0:*     users:(("postgres",pid=9,fd=5))
udp   UNCONN 0      0      [fe80::189e:54ff:fe19:a99]%eth0:546     [::]:*     users:(("systemd-network",pid=299,fd=19))
tcp   LISTEN 0      128    *%eth0:9998       *:*     users:(("a` + "\x1b" + ` b",pid=77,fd=3),("second",pid=78,fd=3))
tcp   LISTEN 0      244             [::1]:5433         [::]:*     users:(("postgres",pid=9,fd=5))
established
0      0               10.0.0.11:22            203.0.113.7:50122
0      0               10.0.0.11:22            203.0.113.8:50123
0      0      [::ffff:10.0.0.11]:10250  [::ffff:10.0.0.12]:40000
0      0               10.0.0.11:5432            10.0.0.40:40001
0      0               10.0.0.11:5432            10.0.0.40:40002
0      0               10.0.0.11:41234           10.0.0.10:6443
0      0               10.0.0.11:5432            10.0.0.11:40003
0      0      [fe80::189e:54ff:fe19:a99]%eth0:22 [fe80::189e:54ff:fe19:b00]:40004
0      0               127.0.0.1:22              127.0.0.1:5000
tracked
10.0.0.40 30080
10.0.0.41 30081
10.0.0.11 30081
end
`

// readConnections has the script's lines of what ss and awk say.
func readConnections(out string) (Connections, error) {
	r, kind, said := newSockets(), "listener", ""
	for line := range strings.Lines(out) {
		switch word := strings.TrimSpace(line); {
		case word == "established":
			kind = "peer"
		case word == "tracked":
			kind = "tracked"
		case word == "end":
			said += line
		case kind == "tracked":
			said += kind + "\t" + strings.Replace(line, " ", "\t", 1)
		default:
			said += kind + "\t" + line
		}
	}
	err := r.lines().Read([]byte(said))
	return r.finish(), err
}

func TestConnections(t *testing.T) {
	got, err := readConnections(ssOutput)
	if err != nil {
		t.Fatal(err)
	}
	want := Connections{
		Listeners: []Listener{{TCP, 22, "sshd"}, {TCP, 5432, "postgres"}, {TCP, 9998, "a? b"}, {TCP, 10250, "kubelet"}, {UDP, 68, "systemd-network"}, {UDP, 546, "systemd-network"}, {UDP, 8472, ""}},
		Peers: []Peer{
			{netip.MustParseAddr("203.0.113.7"), 22, false}, {netip.MustParseAddr("203.0.113.8"), 22, false}, {netip.MustParseAddr("fe80::189e:54ff:fe19:b00"), 22, false},
			{netip.MustParseAddr("10.0.0.40"), 5432, false}, {netip.MustParseAddr("10.0.0.12"), 10250, false},
			{netip.MustParseAddr("10.0.0.40"), 30080, true}, {netip.MustParseAddr("10.0.0.41"), 30081, true},
		},
	}
	equal := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Error(diff)
	}
	for _, broken := range []string{"", "tcp LISTEN\nestablished\nend\n", "established\n0 0 x y\nend\n", "established\ntracked\n10.0.0.1\nend\n", "established\ntracked\nx 1\nend\n", "raw a b c d:1 e\nestablished\nend\n"} {
		if _, err := readConnections(broken); err == nil {
			t.Errorf("%q is read", broken)
		}
	}
}

func TestCuts(t *testing.T) {
	c, err := readConnections(ssOutput)
	if err != nil {
		t.Fatal(err)
	}
	c.Own, c.OwnPort = netip.MustParseAddr("203.0.113.7"), 22
	spec := Spec{Role: Worker, Nodes: addrs("10.0.0.10", "10.0.0.11"), SSH: ranges("203.0.113.7"), NodePorts: []Rule{{Ports: []Ports{{TCP, 30080, 30080}}}}}
	list := hosttest.NewChecks(t, "firewall-cuts")
	texts := func(cuts []CutConnection) (out []string) {
		for _, c := range cuts {
			list.Say("%s", c.Text)
			out = append(out, c.Text)
		}
		return out
	}
	want := []string{
		"tcp 5432 (postgres) can no longer be reached",
		"tcp 9998 (a? b) can no longer be reached",
		"udp 8472 can no longer be reached",
		"203.0.113.8, which is connected to tcp 22 (sshd), cannot come back",
		"fe80::189e:54ff:fe19:b00, which is connected to tcp 22 (sshd), cannot come back",
		"10.0.0.40, which is connected to tcp 5432 (postgres), cannot come back",
		"10.0.0.12, which is connected to tcp 10250 (kubelet), cannot come back",
		"10.0.0.41, which is connected to tcp 30081, cannot come back",
	}
	if diff := cmp.Diff(want, texts(c.Cuts(spec, nil))); diff != "" {
		t.Errorf("nothing before:\n%s", diff)
	}
	if got := c.Cuts(spec, &spec); len(got) > 0 {
		t.Errorf("the same rules cut %v", got)
	}
	alone := spec
	alone.Role = NoRole
	if got := c.Cuts(alone, nil); len(got) != 8 {
		t.Errorf("without a role: %v", got)
	}
	fewer := spec
	fewer.SSH = ranges("192.0.2.0/24")
	got := c.Cuts(fewer, &spec)
	if texts(got); len(got) != 1 || !got[0].Own {
		t.Errorf("our own way: %v", got)
	}
	ufw := func(rules string) Have {
		t.Helper()
		h := Have{}
		if err := h.readUFW(map[string][]byte{"user.rules": []byte("### tuple ### " + rules + "\n"), "ufw.conf": []byte("ENABLED=yes"), "ufw.enabled": []byte("enabled"), "ufw.status": []byte("Status: active")}); err != nil {
			t.Fatal(err)
		}
		return h
	}
	// Somebody reaches a port still where somebody else's rule lets a few in.
	for rules, cut := range map[string]bool{
		"allow tcp 5432 0.0.0.0/0 any 10.0.0.0/24 in": false, "allow any any 0.0.0.0/0 any 0.0.0.0/0 in": false,
		"deny tcp 5432 0.0.0.0/0 any 10.0.0.40 in\n### tuple ### allow tcp 5432 0.0.0.0/0 any 0.0.0.0/0 in": false,
		"deny tcp 5432 0.0.0.0/0 any 0.0.0.0/0 in\n### tuple ### allow tcp 5432 0.0.0.0/0 any 10.0.0.40 in": true,
		"allow tcp 5433 0.0.0.0/0 any 0.0.0.0/0 in":                                                         true, "allow udp 5432 0.0.0.0/0 any 0.0.0.0/0 in": true,
	} {
		c.LetIn = ufw(rules).LetsIn
		if got := slices.ContainsFunc(c.Cuts(spec, nil), func(c CutConnection) bool { return c.Text == want[0] }); got != cut {
			t.Errorf("%s: nobody reaches it: %v", rules, got)
		}
	}
	// Somebody else's rules of ufw let it in, which stay.
	for rules, in := range map[string]bool{
		"allow tcp 22 0.0.0.0/0 any 203.0.113.7 in": true, "limit any 22 0.0.0.0/0 any 203.0.113.0/24 in": true, "allow any any 0.0.0.0/0 any 0.0.0.0/0 in comment=6d696e65": true,
		"allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 OpenSSH - in": true, "allow tcp 20:30,80 0.0.0.0/0 any 0.0.0.0/0 in": true,
		"deny tcp 22 0.0.0.0/0 any 203.0.113.7 in\n### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in": false, "allow tcp 23 0.0.0.0/0 any 0.0.0.0/0 in": false,
		"allow udp 22 0.0.0.0/0 any 0.0.0.0/0 in": false, "allow tcp 22 0.0.0.0/0 any 203.0.113.8 in": false, "allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in_eth7": false,
		"allow tcp 22 ::/0 any ::/0 in": false, "allow tcp 22 10.0.0.9 any 0.0.0.0/0 in": false, "route:allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in": false,
	} {
		c.LetIn = ufw(rules).LetsIn
		if got := c.Cuts(fewer, &spec); (len(got) == 0) != in {
			t.Errorf("%s: %v", rules, got)
		}
		everybody := strings.Contains(rules, "0.0.0.0/0 in") && in || strings.Contains(rules, "OpenSSH")
		if cut := slices.ContainsFunc(c.Cuts(spec, nil), func(c CutConnection) bool {
			return strings.HasPrefix(c.Text, "203.0.113.8, which is connected to tcp 22")
		}); in && cut == (everybody || strings.Contains(rules, "203.0.113.0/24")) {
			t.Errorf("%s: another that is connected is cut: %v", rules, cut)
		}
	}
}
