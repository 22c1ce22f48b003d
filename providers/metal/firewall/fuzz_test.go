package firewall

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// FuzzTable makes Specs of all that a configuration can say. Those without
// problems are taken by nft, and read back as they were meant; what they let in
// is what their openings say.
func FuzzTable(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		s := randomSpec(rand.New(rand.NewPCG(seed, 1)))
		if problems := s.Problems(); len(problems) > 0 {
			t.Fatalf("problems: %v", problems)
		}
		table := s.Table()
		live, err := ReadTable(nft(t, `f=$(cat; echo .); f=${f%.}; printf %s "$f" | nft -c -f -; printf %s "$f" | nft -f -; nft -j list table inet stoke`, table.File()))
		if err != nil {
			t.Fatalf("%v:\n%s", err, table.File())
		}
		if diff := cmp.Diff(table.Lines(), live.Lines()); diff != "" {
			t.Errorf("nft has something else (-want +live):\n%s", diff)
		}
		rules, _ := s.ufwRules(UFW)
		for _, r := range rules {
			var hexed strings.Builder
			fmt.Fprintf(&hexed, "%x", ufwMark+r.Comment)
			any, ports := "0.0.0.0/0", r.Ports
			if strings.Contains(r.From, ":") {
				any = "::/0"
			}
			if ports == "" {
				ports = "any"
			}
			line := fmt.Sprintf("### tuple ### allow %s %s %s any %s in comment=%s", r.Proto, ports, any, r.From, hexed.String())
			if back, action, err := readUFWRule(line); back != r || action != ufwMark || err != nil {
				t.Errorf("%q is read as %+v, %s, %v; it was %+v", line, back, action, err, r)
			}
		}
	})
}

func randomSpec(r *rand.Rand) Spec {
	some := func(most int, each func()) {
		for range r.IntN(most + 1) {
			each()
		}
	}
	s := Spec{Role: []Role{NoRole, Worker, ControlPlane}[r.IntN(3)], SSHPort: uint16(r.IntN(65536)), Confirm: time.Duration(10+r.IntN(590)) * time.Second}
	node := func() netip.Addr {
		return netip.AddrFrom4([4]byte{10, byte(r.IntN(2)), byte(r.IntN(3)), byte(1 + r.IntN(250))})
	}
	s.Nodes = append(s.Nodes, node())
	some(40, func() { s.Nodes = append(s.Nodes, node()) })
	some(3, func() { s.ControlPlanes = append(s.ControlPlanes, node()) })
	some(2, func() { s.Pods = append(s.Pods, randomRange(r, true)) })
	some(4, func() { s.APIClients = append(s.APIClients, randomRange(r, false)) })
	s.SSH = append(s.SSH, randomRange(r, false))
	some(6, func() { s.SSH = append(s.SSH, randomRange(r, false)) })
	some(3, func() { s.CNI = append(s.CNI, randomPorts(r, 1, 65535)) })
	some(3, func() { s.NodePorts = append(s.NodePorts, randomRule(r, NodePortRange.First, NodePortRange.Last)) })
	some(6, func() { s.Rules = append(s.Rules, randomRule(r, 1, 65535)) })
	if len(s.Rules) > 0 {
		s.Rules = append(s.Rules, s.Rules[0]) // said twice
	}
	return s
}

// randomRange is a range of any length, often one with its neighbour's or
// everybody in it.
func randomRange(r *rand.Rand, four bool) netip.Prefix {
	if four || r.IntN(2) == 0 {
		a := netip.AddrFrom4([4]byte{byte(r.IntN(256)), byte(r.IntN(4)), byte(r.IntN(4)), byte(r.IntN(256))})
		p, _ := a.Prefix(r.IntN(33))
		return p
	}
	b := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	for range r.IntN(4) {
		b[r.IntN(16)] = byte(r.IntN(256))
	}
	p, _ := netip.AddrFrom16(b).Prefix(r.IntN(129))
	return p
}

func randomPorts(r *rand.Rand, first, last uint16) Ports {
	p := Ports{Protocol: []Protocol{TCP, UDP, SCTP}[r.IntN(3)], First: first + uint16(r.IntN(int(last-first)+1))}
	if p.Last = p.First; r.IntN(2) == 0 {
		p.Last += uint16(r.IntN(int(last-p.First) + 1))
	}
	if first == 1 && r.IntN(3) == 0 {
		p = Ports{Protocol: Protocol(r.IntN(256))}
		if p.Protocol == TCP || p.Protocol == UDP || p.Protocol == SCTP {
			p.Protocol = AnyProtocol
		}
	}
	return p
}

func randomRule(r *rand.Rand, first, last uint16) Rule {
	rule := Rule{Ports: []Ports{randomPorts(r, first, last)}}
	for range r.IntN(3) {
		rule.From = append(rule.From, Source{Range: randomRange(r, false)}, Source{Group: Groups[r.IntN(len(Groups))]})
	}
	const letters = "ab |$`*#;{}@%<>&=ü✓\u0301!~"
	runes := []rune(letters)
	for range r.IntN(12) {
		rule.Comment += string(runes[r.IntN(len(runes))])
	}
	return rule
}
