package connect

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// bastions is the value of bastion blocks at these addresses.
func bastions(t *testing.T, key any, addresses ...string) tftypes.Value {
	ty := SSHBlock().Type().TerraformType(t.Context()).(tftypes.Object).AttributeTypes["bastion"].(tftypes.List)
	var list []tftypes.Value
	for _, a := range addresses {
		list = append(list, objectOf(ty.ElementType.(tftypes.Object), map[string]any{"address": a, "host_key": key}))
	}
	return tftypes.NewValue(ty, list)
}

// The block's bastions are on the way to every machine that names none, but not
// to themselves.
func TestBastions(t *testing.T) {
	noEnv(t)
	key := hostKey(t)
	s := read(t, map[string]any{"user": "ops", "password": "p", "bastion": bastions(t, key, "outer.example.com", "fd00::2")})
	for _, c := range []struct {
		to   SSH
		want string
	}{
		{SSH{Hop: Hop{Address: "10.0.0.1"}}, "outer.example.com fd00::2"},
		{SSH{Hop: Hop{Address: "10.0.0.1"}, Hops: []Hop{{Address: "own", HostKey: key}}}, "own"},
		{SSH{Hop: Hop{Address: "Outer.example.com", Port: 22}}, ""},
		{SSH{Hop: Hop{Address: "[fd00::2]"}}, "outer.example.com"},
		{SSH{Hop: Hop{Address: "fd00::2", Port: 2222}}, "outer.example.com fd00::2"},
	} {
		got, err := s.Target(c.to, nil)
		var names []string
		for _, h := range got.Hops {
			names = append(names, h.Address)
			if h.HostKey != key || h.Credential.User != "ops" {
				t.Errorf("%s: %+v", c.to.Address, h)
			}
		}
		if err != nil || strings.Join(names, " ") != c.want {
			t.Errorf("%s: %v, %v, want %s", c.to.Address, names, err, c.want)
		}
	}
	later := read(t, map[string]any{"user": "ops", "password": "p", "bastion": bastions(t, unknownText, "outer")})
	if _, err := later.Target(SSH{Hop: Hop{Address: "a"}}, nil); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if _, err := later.Target(SSH{Hop: Hop{Address: "a"}, Hops: []Hop{{Address: "own", HostKey: key}}}, nil); err != nil {
		t.Error(err)
	}
	var resp validator.ObjectResponse
	blockValidator{}.ValidateObject(t.Context(), validator.ObjectRequest{Path: blockPath(), ConfigValue: block(t, map[string]any{"bastion": bastions(t, "AAAA", "b")})}, &resp)
	if len(resp.Diagnostics) != 1 || resp.Diagnostics[0].Summary() != "Invalid host key" {
		t.Error(resp.Diagnostics)
	}
}
