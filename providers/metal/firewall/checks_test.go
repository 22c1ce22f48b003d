package firewall

import (
	"errors"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestChecks: what keeps a firewall from being managed, and what a plan says of
// its persistence.
func TestChecks(t *testing.T) {
	list := hosttest.NewChecks(t, "firewall")
	want := Spec{Role: Worker, Nodes: addrs("10.0.0.10"), SSH: ranges("0.0.0.0/0"), Rules: []Rule{{Ports: []Ports{{Protocol: 89}}, Comment: "ospf"}, {Ports: []Ports{{TCP, 81, 81}}}}}
	table := NftTable(want.Table())
	guard := want.guard()
	list.Case("usable")
	for _, h := range []Have{{}, {nft: true, Backend: Nftables}, {nft: true, Backend: UFW}, {nft: true, Backend: UFW4, against: []string{"a rule"}}} {
		list.Say("%s: %v", h.Backend, h.Usable(want))
		list.Say("%s: %v", h.Backend, h.Usable(Spec{Role: NoRole, SSH: ranges("2001:db8::/32")}))
	}
	list.Say("%v", Have{nft: true}.Usable(Spec{}))
	list.Case("persistence")
	for _, h := range []Have{
		{pending: "x"}, {Backend: UFW, ufwEnabled: "disabled"}, {Backend: UFW, ufwEnabled: "enabled", file: string(guard.File()), unit: unit, enabled: true, active: true}, {},
		{file: "x"}, {file: string(table.File())}, {file: string(table.File()), unit: unit}, {file: string(table.File()), unit: unit, enabled: true}, {file: string(table.File()), unit: unit, enabled: true, active: true},
	} {
		h.judgePersistence(want)
		list.Say("%v %s", h.Persistent, h.Why)
	}
	list.Case("unfit")
	ufw := func(conf, policy, enabled, status string) map[string][]byte {
		return map[string][]byte{"ufw.conf": []byte("ENABLED=" + conf), "ufw.default": []byte("DEFAULT_INPUT_POLICY=" + policy), "ufw.enabled": []byte(enabled), "ufw.status": []byte("Status: " + status)}
	}
	for _, said := range []map[string][]byte{ufw("yes", "DROP", "enabled", "inactive"), ufw("no", "DROP", "enabled", "active"), ufw("yes", "ACCEPT", "enabled", "active"), ufw("yes", "DROP", "enabled", "active")} {
		var h Have
		if err := h.readUFW(said); err != nil {
			t.Fatal(err)
		}
		list.Say("%v", h.unfit)
	}
	list.Case("errors")
	for _, err := range []error{
		&UnfitError{Host: "a", Err: errors.New("x")}, &RolledBackError{Host: "a", Cause: errors.New("x"), Added: []string{"b"}, Removed: []string{"c"}},
		&RolledBackError{Host: "a", Cause: errors.New("x"), From: "192.0.2.1", Allowed: true, Unseen: errors.New("y")}, &RolledBackError{Host: "a", Cause: errors.New("x"), From: "192.0.2.1"},
	} {
		list.Say("%v", err)
	}
}
