package metal

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestRecall: a machine knows what is declared of it, without what its files
// hold; what it says is believed no further than the schema goes.
func TestRecall(t *testing.T) {
	ctx, m := t.Context(), &hosttest.Machine{}
	rec, err := host.NewRecord(ctx, m, hostRecord, "id", "metal_host.a")
	if err != nil {
		t.Fatal(err)
	}
	s := hostSchema()
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(ctx), nil)}
	set := func(name string, v any) {
		t.Helper()
		if diags := state.SetAttribute(ctx, path.Root(name), v); diags.HasError() {
			t.Fatal(diags)
		}
	}
	set("id", types.StringUnknown())
	set("address", "192.0.2.1")
	set("port", 2222)
	set("host_key", "ssh-ed25519 AAAA comment")
	set("allow_cgroup_v1", true)
	set("kernel_modules", []string{"overlay"})
	set("sysctl", map[string]string{"vm.swappiness": "10"})
	set("node_address", "192.0.2.1")
	set("files", map[string]fileModel{
		"/open":   {Content: types.StringValue("s3cret"), Mode: types.StringValue("0600")},
		"/hidden": {Sensitive: types.StringNull()},
	})
	if err := saveDeclaredOnHost(ctx, rec, s, state.Raw); err != nil {
		t.Fatal(err)
	}
	if rec, err = host.OpenRecord(ctx, m, hostRecord); err != nil {
		t.Fatal(err)
	}
	var compact map[string]any
	if err := json.Unmarshal(rec.LastDeclared(), &compact); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"address": "192.0.2.1", "port": 2222.0, "host_key": "ssh-ed25519 AAAA comment", "allow_cgroup_v1": true, "kernel_modules": []any{"overlay"},
		"sysctl": map[string]any{"vm.swappiness": "10"},
		"files":  map[string]any{"/open": map[string]any{"content": "", "mode": "0600"}, "/hidden": map[string]any{}},
	}
	if diff := cmp.Diff(want, compact); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	clear(m.Files)
	if err := saveDeclaredOnHost(ctx, rec, s, state.Raw); err != nil || len(m.Files) > 0 {
		t.Errorf("the same is written again: %v, %v", err, m.Files)
	}
	var was hostModel
	if _, ok := loadDeclaredFromHost(ctx, rec, s, &was); !ok {
		t.Fatal("nothing is read")
	}
	was.wayAsDeclared(hostModel{
		ID: types.StringValue("id"), Address: types.StringValue("192.0.2.2"), HostKey: types.StringValue("ssh-ed25519 AAAA"), User: types.StringValue("ops"),
	})
	if way, known := was.way(); !known || way.Address != "192.0.2.2" || way.Port != 2222 || way.User != "ops" || way.HostKey != "ssh-ed25519 AAAA comment" {
		t.Errorf("%v %+v", known, way)
	}
	var diags diag.Diagnostics
	declared, ok := was.systemModel.read(ctx, nil, &diags)
	if !ok || declared.sysctl["vm.swappiness"].ValueString() != "10" || declared.files["/open"].Content.IsNull() || !declared.files["/hidden"].Content.IsNull() {
		t.Errorf("%+v %v", declared, diags)
	}

	for _, odd := range []string{`null`, `[]`, `"x"`, `{"sysctl":5}`, `{"port":"x"}`, `{"files":{"/x":5}}`, `{"bastion":{}}`, `{"address":{}}`, strings.Repeat(`{"address":`, 99) + `1` + strings.Repeat(`}`, 99)} {
		if err := rec.Declare(ctx, json.RawMessage(odd)); err != nil {
			t.Fatal(err)
		}
		if _, ok := loadDeclaredFromHost(ctx, rec, s, new(hostModel)); ok {
			t.Errorf("%s is taken for a declaration", odd)
		}
	}
	if err := rec.Declare(ctx, json.RawMessage(`{"address":"a","of_tomorrow":[1]}`)); err != nil {
		t.Fatal(err)
	}
	if _, ok := loadDeclaredFromHost(ctx, rec, s, new(hostModel)); !ok {
		t.Error("one argument more, and nothing is understood")
	}
}

// private is what a provider keeps beside the state.
type private map[string][]byte

func (p private) SetKey(_ context.Context, key string, value []byte) diag.Diagnostics {
	p[key] = value
	return nil
}

func (p private) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) { return p[key], nil }

// TestSettled: after an apply that was killed, what was planned is what is declared:
// the state has what the machine has, such as "1.6 (not configured)", which is no
// version that anybody could ask for.
func TestSettled(t *testing.T) {
	m, s := &hosttest.Machine{}, hostSchema()
	ctx := providers.WithCall(t.Context(), &providers.Call{Settling: true, Operation: "op"})
	if _, err := host.NewRecord(ctx, m, hostRecord, "op", "metal_host.a"); err != nil {
		t.Fatal(err)
	}
	planned := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(ctx), nil)}
	if diags := planned.SetAttribute(ctx, path.Root("packages"), map[string]packageModel{"jq": {Version: types.StringValue("1.*")}}); diags.HasError() {
		t.Fatal(diags)
	}
	var diags diag.Diagnostics
	var state, want hostModel
	kept := private{}
	l := &life[hostModel, *hostModel]{}
	if there, err := l.find(ctx, m, &state, &want, planned.Raw, kept, &diags); !there || err != nil || diags.HasError() || state.ID.ValueString() != "op" {
		t.Fatal(there, err, diags, state.ID)
	}
	var noted hostModel
	if ok, err := loadDeclaredFromState(ctx, kept, s, &noted); !ok || err != nil {
		t.Fatal(ok, err)
	}
	d, ok := noted.packagesModel.read(ctx, &diags)
	if spec := d.spec(nil); !ok || diags.HasError() || spec.Packages["jq"].Version != "1.*" || spec.Validate() != nil {
		t.Errorf("declared are %+v %v", spec.Packages, diags)
	}
	clear(kept)
	other := providers.WithCall(t.Context(), &providers.Call{Settling: true, Operation: "another"})
	if there, err := l.find(other, m, &state, &want, planned.Raw, kept, &diags); there || err != nil || len(kept) > 0 {
		t.Errorf("a create that was never begun: %v %v %v", there, err, kept)
	}
}

func TestRecalledHost(t *testing.T) {
	object := func(address, user, key string) types.Object {
		o, diags := connect.SSH{Hop: connect.Hop{Address: address, User: user, HostKey: key}}.Object(t.Context())
		if diags.HasError() {
			t.Fatal(diags)
		}
		return o
	}
	declared := object("a", "ops", "ssh-ed25519 AAAA x")
	for _, tt := range []struct {
		was, named, want types.Object
	}{
		{declared, object("a", "", "ssh-ed25519 AAAA"), declared},
		{declared, object("b", "", "ssh-ed25519 AAAA"), object("b", "", "ssh-ed25519 AAAA")},
		{declared, object("a", "", "ssh-ed25519 BBBB"), object("a", "", "ssh-ed25519 BBBB")},
		{types.ObjectNull(connect.MachineTypes()), declared, declared},
	} {
		if got := hostAsDeclared(t.Context(), tt.was, tt.named); !got.Equal(tt.want) {
			t.Errorf("%s and %s: %s", tt.was, tt.named, got)
		}
	}
}
