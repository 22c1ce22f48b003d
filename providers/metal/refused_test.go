package metal

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// TestPlanAfterARefusedApply: each command of each apply fails once. The next plan has
// what is missing, and the machine has it after the next apply, also where what failed is
// declared no more.
func TestPlanAfterARefusedApply(t *testing.T) {
	o := newOverProtocol(t)
	o.tree.Sh(`mkdir -p /usr/share/zoneinfo/Etc; touch /usr/share/zoneinfo/Etc/UTC /usr/share/zoneinfo/Etc/GMT /usr/share/zoneinfo/Etc/Old`)
	if testing.Short() {
		t.Skip("a hundred applies")
	}
	for n, met := 0, true; met && !t.Failed(); n += refusedEvery {
		met = o.refusedAt(n)
	}
}

// refusedAt is one life in which the command n of each apply fails. It reports whether one did.
func (o *overProtocol) refusedAt(n int) (met bool) {
	o.Helper()
	o.tree.Sh(`echo "/swap none swap sw 0 0" >/etc/fstab; printf 'Filename Type Size Used Priority\n/swap file 1 0 -2\n' >/proc/swaps; ln -sf /usr/share/zoneinfo/Etc/Old /etc/localtime; echo Etc/Old >/etc/timezone`)
	before := o.stands()
	first := map[string]cty.Value{"timezone": cty.StringVal("Etc/UTC")}
	second := map[string]cty.Value{"timezone": cty.StringVal("Etc/GMT"), "swap": cty.StringVal("off")}
	state, private := cty.NullVal(o.schema.Resources["metal_host"].Block.ImpliedType()), []byte(nil)
	read := func() {
		r := o.p.Read(o.Context(), providers.ReadRequest{Type: "metal_host", State: state, Private: private, Meta: cty.NullVal(cty.DynamicPseudoType)})
		if r.Diagnostics.HasErrors() {
			o.Fatal(r.Diagnostics)
		}
		state, private = r.State, r.Private
	}
	settled := func(given map[string]cty.Value, want, title string) {
		plan, _ := o.plan("metal_host", state, private, o.given(given))
		if is := o.stands(); is != want && plan.Planned.RawEquals(state) {
			o.Errorf("command %d, %s: the next plan has nothing to do, and the machine has %s", n, title, is)
			return
		}
		done := o.apply(o.Context(), state, private, o.given(given))
		if done.Diagnostics.HasErrors() {
			o.Fatalf("command %d, %s: the next apply says %v", n, title, done.Diagnostics)
		}
		state, private = done.State, done.Private
		if is := o.stands(); is != want {
			o.Errorf("command %d, %s: after the next apply the machine has %s", n, title, is)
		}
		read()
		if again, _ := o.plan("metal_host", state, private, o.given(given)); !again.Planned.RawEquals(state) {
			o.Errorf("command %d, %s: the plan after it is not empty", n, title)
		}
	}
	for _, step := range []struct {
		given map[string]cty.Value
		want  string
	}{{first, "Etc/UTC, swap on"}, {second, "Etc/GMT, swap off"}, {first, "Etc/UTC, swap on"}} {
		plan, config := o.plan("metal_host", state, private, o.given(step.given))
		o.passing.Store(int64(n))
		r := o.p.Apply(o.Context(), providers.ApplyRequest{Type: "metal_host", Prior: state, Planned: plan.Planned, Config: config, Private: plan.Private, Meta: cty.NullVal(cty.DynamicPseudoType)})
		met = o.passing.Swap(-1) < 0 || met
		state, private = r.State, r.Private
		if !state.IsNull() {
			read()
		}
		if r.Diagnostics.HasErrors() && step.given["swap"] != cty.NilVal && n%2 == 1 {
			settled(first, "Etc/UTC, swap on", "then taken back")
		}
		if settled(step.given, step.want, step.want); o.Failed() {
			return false
		}
	}
	null := cty.NullVal(state.Type())
	destroy := func() providers.ApplyResponse {
		return o.p.Apply(o.Context(), providers.ApplyRequest{Type: "metal_host", Prior: state, Planned: null, Config: null, Private: private, Meta: cty.NullVal(cty.DynamicPseudoType)})
	}
	o.passing.Store(int64(n))
	r := destroy()
	met = o.passing.Swap(-1) < 0 || met
	if r.Diagnostics.HasErrors() {
		r = destroy()
	}
	if is := o.stands(); r.Diagnostics.HasErrors() || is != before {
		o.Errorf("command %d: after the destroy the machine has %s: %v", n, is, r.Diagnostics)
	}
	return met
}

// stands is what the machine has of what is declared.
func (o *overProtocol) stands() string {
	zone := strings.TrimPrefix(o.tree.Sh("readlink /etc/localtime"), "/usr/share/zoneinfo/")
	if _, after, ok := strings.Cut(zone, "zoneinfo/"); ok {
		zone = after
	}
	swap := "on"
	if !strings.Contains(o.tree.Sh("cat /proc/swaps"), "/swap") || !strings.HasPrefix(o.tree.Sh("cat /etc/fstab"), "/swap") {
		swap = "off"
	}
	return strings.TrimSpace(zone) + ", swap " + swap
}
