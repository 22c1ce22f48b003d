package metal

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// One machine has one owner. What a create left that failed before it changed
// anything belongs to the next one of the same address.
func TestOwn(t *testing.T) {
	as := func(address string) context.Context {
		return providers.WithCall(context.Background(), &providers.Call{Address: address})
	}
	m := &hosttest.Machine{}
	for _, id := range []string{"first", "second", "second"} {
		rec, err := openRecord(as("metal_host.a"), m, hostRecord, id)
		if err != nil || rec.ID() != id {
			t.Fatalf("own(%s) = %v, %v", id, rec, err)
		}
	}
	var taken *takenError
	if _, err := openRecord(as("metal_host.b"), m, hostRecord, "third"); !errors.As(err, &taken) {
		t.Errorf("another resource: %v, want a takenError", err)
	}
	rec, err := host.OpenRecord(context.Background(), m, hostRecord)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Remember(context.Background(), "sysctl a", "0"); err != nil {
		t.Fatal(err)
	}
	if _, err := openRecord(as("metal_host.a"), m, hostRecord, "third"); !errors.As(err, &taken) {
		t.Errorf("the same address, after something was changed: %v, want a takenError", err)
	}
}

// A table that no record knows of is somebody else's, unless it was imported.
func TestForeign(t *testing.T) {
	ctx, m := context.Background(), &hosttest.Machine{}
	if foreign(ctx, m, "", false) != nil || foreign(ctx, m, imported, true) != nil {
		t.Error("nothing there, or imported, and refused")
	}
	if err := foreign(ctx, m, "", true); err == nil || !strings.Contains(err.Error(), "import the firewall") {
		t.Errorf("somebody else's: %v", err)
	}
	if _, err := openRecord(ctx, m, firewallRecord, "first"); err != nil {
		t.Fatal(err)
	}
	if err := foreign(ctx, m, "second", true); err != nil {
		t.Errorf("what the record knows: %v", err)
	}
}

// TestClaim: a plan says what apply would say of a machine that somebody manages
// already, and how to take it over.
func TestClaim(t *testing.T) {
	list := hosttest.NewChecks(t, "claim")
	way := connect.SSH{Hop: connect.Hop{Address: "192.0.2.1", Port: 2222, User: "ops", HostKey: "ssh-ed25519 AAAA\n"}}
	const command = `stoke import 'metal_host.n["a"]' 'ops@192.0.2.1:2222 ssh-ed25519 AAAA'`
	for _, tt := range []struct {
		name, by, id, replaces string
		begun                  bool
		want, says             string // the id; severity and a part of the text
	}{
		{name: "the same address, begun", by: `metal_host.n["a"]`, begun: true, says: "Error: Import it to manage it here:\n  " + command + "\nIf"},
		{name: "the same address, not begun", by: `metal_host.n["a"]`},
		{name: "another address", by: "metal_host.b", begun: true, says: "Warning: as metal_host.b (/var/lib/stoke/host/record.json). Import it to manage it here:\n  " + command + "\nIf"},
		{name: "a replacement", by: `metal_host.n["a"]`, begun: true, replaces: "recorded"},
		{name: "a replacement of another", by: `metal_host.n["a"]`, begun: true, replaces: "other", says: "Error: "},
		{name: "an update", by: `metal_host.n["a"]`, begun: true, id: "recorded", want: "recorded"},
		{name: "an update of another", by: `metal_host.n["a"]`, begun: true, id: "other", want: "other", says: "Error: here:\n  stoke state rm 'metal_host.n[\"a\"]' && " + command},
		{name: "an import that nobody could look at", by: "metal_host.b", begun: true, id: imported, want: "recorded"},
		{name: "an engine without calls", begun: true},
	} {
		call := &providers.Call{Address: `metal_host.n["a"]`}
		if tt.by == "" {
			call.Address = ""
		}
		if tt.replaces != "" {
			call.Replaces = cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(tt.replaces)})
		}
		ctx := providers.WithCall(t.Context(), call)
		m := &hosttest.Machine{}
		id := types.StringUnknown()
		if tt.id != "" {
			id = types.StringValue(tt.id)
		}
		var diags diag.Diagnostics
		if got := claim(ctx, m, hostRecord, "Machine is managed already", path.Root("address"), way, id, &diags); !got.Equal(id) || len(diags) > 0 {
			t.Errorf("%s, without a record: %s %v", tt.name, got, diags)
		}
		rec, err := host.NewRecord(ctx, m, hostRecord, "recorded", tt.by)
		if err == nil && tt.begun {
			err = rec.Remember(ctx, "sysctl a", "0")
		}
		if err != nil {
			t.Fatal(err)
		}
		got, said := claim(ctx, m, hostRecord, "Machine is managed already", path.Root("address"), way, id, &diags), ""
		for _, d := range diags {
			said += d.Severity().String() + ": " + d.Detail()
			list.Say("%s: %s %s: %s", tt.name, d.Severity(), d.Summary(), d.Detail())
		}
		severity, text, _ := strings.Cut(tt.says, ": ")
		if got.ValueString() != tt.want || !strings.HasPrefix(said, severity) || !strings.Contains(said, text) || tt.says == "" && said != "" {
			t.Errorf("%s: id %s, %s", tt.name, got, said)
		}
	}
	for _, at := range []connect.Hop{{Address: "a"}, {Address: "fd00::1", Port: 22}, {Address: "fd00::1"}, {Address: "192.0.2.1", User: "ops"}} {
		at.HostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPisg2IAhP3lO7Rf0T18onhExtD3jIsF6H0g7xVPo3gz"
		if back, err := importedWay(importID(connect.SSH{Hop: at})); err != nil || back.Hop != at {
			t.Errorf("%+v becomes %+v, %v", at, back, err)
		}
		way := connect.SSH{Hop: at, Hops: []connect.Hop{at, at}}
		way.Credential = "admin"
		if back, err := importedWay(importID(way)); err != nil || !reflect.DeepEqual(back, way) {
			t.Errorf("%+v becomes %+v, %v", way, back, err)
		}
	}
}

// TestUndone: replacing a machine shows what destroying it interrupts.
func TestUndone(t *testing.T) {
	s := &settings{shared: newShared()}
	id := cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("recorded")})
	in := func(replaces cty.Value) context.Context {
		return providers.WithCall(t.Context(), &providers.Call{Address: "metal_host.a", Replaces: replaces})
	}
	plain := &hosttest.Machine{}
	node := newNodeMachine(draintest.New(t, nil), "a")
	for m, double := range map[host.Machine]*hosttest.Machine{plain: plain, node: &node.Machine} {
		rec, err := host.NewRecord(t.Context(), double, hostRecord, "recorded", "metal_host.a")
		if err == nil {
			err = rec.RememberAll(t.Context(), map[string]any{"containerd service": true, "system swap": true})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, none := range []cty.Value{cty.NilVal, cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("other")})} {
			if got := plannedRestores(t.Context(), s, m, replaced(in(none), m, hostRecord), nil, new(diag.Diagnostics)); len(got) > 0 {
				t.Errorf("%#v: %v", none, got)
			}
		}
		var diags diag.Diagnostics
		got, want := plannedRestores(t.Context(), s, m, replaced(in(id), m, hostRecord), nil, &diags), []host.Disruption{host.RestartsContainer, host.ReloadsSystemd}
		if m != plain {
			want = []host.Disruption{host.Drains}
		}
		var is []host.Disruption
		for _, c := range got {
			is = append(is, c.Disruption)
		}
		hosttest.NewChecks(t, map[bool]string{true: "undone", false: "undone-node"}[m == plain]).Changes(got)
		if !slices.Equal(is, want) || len(diags) > 0 {
			t.Errorf("%v %v, want %v", got, diags, want)
		}
	}
}

// What a machine said may end in a full stop; one is enough.
func TestSentence(t *testing.T) {
	for said, want := range map[string]string{"it ended": "it ended.", "not available.": "not available."} {
		if got := sentence(errors.New(said)); got != want {
			t.Errorf("sentence(%q) = %q, want %q", said, got, want)
		}
	}
	if summary, detail := unreachable("10.0.0.1", ssh.Permanent{Err: errors.New("no.")}); summary != "Cannot log in on the machine" || detail != "10.0.0.1: no." {
		t.Errorf("%s: %s", summary, detail)
	}
}
