//go:build e2e

package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

const objects = 120

var seed = flag.Uint64("seed", 42, "of the random configurations")

// Terraform is the oracle: it plans and applies random configurations with a
// provider that writes everything down and answers at random. What it proposed
// has to be what Proposed proposes, and what it refused is what CheckPlanned
// and CheckApplied refuse. It needs a terraform of 1.11 or later on the PATH.
func TestTerraformAgrees(t *testing.T) {
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("no terraform on the PATH")
	}
	w := &witness{schema: oracleSchema(), applied: map[string]appliedCase{}}
	w.ty = w.schema.ImpliedType()
	o := &oracle{t: t, terraform: terraform, dir: t.TempDir(), env: serve(t, w), w: w, rng: rand.New(rand.NewPCG(*seed, 0))}

	o.write(0)
	o.run("apply", "-auto-approve")
	o.checkProposed("create")
	for range 3 {
		o.write(0.1)
		o.run("plan")
		o.checkProposed("update")
		w.mutatePlan = true
		o.checkPlanned(o.run("plan"))
		w.mutatePlan = false
	}
	o.write(0.1)
	w.mutateApplied = true
	o.checkApplied(o.run("apply", "-auto-approve"))
}

// oracleSchema is everything of the tables, nested once more. Terraform allows
// no write-only attributes in sets, and 1.11 crashes on some of those within
// nested attributes.
func oracleSchema() *providers.Block {
	s := everything()
	deep := nested(providers.List)
	deep.Nested.Attributes["inner"] = nested(providers.Map)
	deep.Nested.Attributes["pick"] = nested(providers.Single)
	deep.Nested.Attributes["pick"].Computed = true
	s.Attributes["deep"] = deep
	s.Blocks["blist"].Block.Blocks = map[string]*providers.NestedBlock{"inner": nestedBlock(providers.Set), "one": nestedBlock(providers.Single)}
	for _, a := range s.Attributes {
		withoutWriteOnly(a)
	}
	delete(s.Blocks["bset"].Block.Attributes, "token")
	delete(s.Blocks["blist"].Block.Blocks["inner"].Block.Attributes, "token")
	group := s.Blocks["bgroup"].Block.Attributes["name"]
	group.Required, group.Optional = false, true
	return s
}

func withoutWriteOnly(a *providers.Attribute) {
	if a.Nested == nil {
		return
	}
	delete(a.Nested.Attributes, "token")
	for _, n := range a.Nested.Attributes {
		withoutWriteOnly(n)
	}
}

type oracle struct {
	t         *testing.T
	terraform string
	dir       string
	env       string
	w         *witness
	rng       *rand.Rand
}

// serve starts the provider in this process, for Terraform to attach to.
func serve(t *testing.T, w *witness) string {
	t.Setenv("TF_LOG_SDK", "OFF")
	ctx, cancel := context.WithCancel(context.Background())
	config, closed := make(chan *plugin.ReattachConfig), make(chan struct{})
	const source = "registry.terraform.io/stokehq/witness"
	go func() {
		err := tf6server.Serve(source, func() tfprotov6.ProviderServer { return w },
			tf6server.WithDebug(ctx, config, closed), tf6server.WithGoPluginLogger(hclog.NewNullLogger()))
		if err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-closed })
	select {
	case c := <-config:
		text, err := json.Marshal(map[string]any{source: map[string]any{
			"Protocol": string(c.Protocol), "ProtocolVersion": c.ProtocolVersion, "Pid": c.Pid, "Test": true,
			"Addr": map[string]string{"Network": c.Addr.Network(), "String": c.Addr.String()},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return "TF_REATTACH_PROVIDERS=" + string(text)
	case <-time.After(10 * time.Minute):
		t.Fatal("the provider did not start")
	}
	return ""
}

// write makes a configuration; unknowns is the part of strings that are not
// known while planning.
func (o *oracle) write(unknowns float64) {
	o.t.Helper()
	o.w.round++
	things := map[string]any{}
	for i := range objects {
		name := fmt.Sprint("t", i)
		thing := o.object(rootShape(o.w.schema), unknowns)
		thing["name"] = name
		things[name] = thing
	}
	// A new source each round, so that its value is unknown.
	source := map[string]any{fmt.Sprint("s", o.w.round): map[string]any{"name": "s"}}
	text, err := json.Marshal(map[string]any{
		"terraform": map[string]any{"required_providers": map[string]any{"witness": map[string]any{"source": "stokehq/witness"}}},
		"resource":  map[string]any{"witness_thing": things, "witness_source": source},
	})
	if err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.dir, "main.tf.json"), text, 0o600); err != nil {
		o.t.Fatal(err)
	}
}

func (o *oracle) object(s shape, unknowns float64) map[string]any {
	out := map[string]any{}
	for _, name := range sortedKeys(s.attrs) {
		a := s.attrs[name]
		if a.Computed && !a.Optional || !a.Required && o.rng.IntN(2) == 0 {
			continue
		}
		switch {
		case a.Nested != nil:
			out[name] = o.nested(attributeShape(a.Nested), unknowns)
		case a.Type == cty.String, a.Type == cty.DynamicPseudoType:
			out[name] = o.text(unknowns)
		case a.Type.IsMapType():
			out[name] = map[string]any{"k0": o.text(unknowns), "k1": o.text(unknowns)}
		case a.Type.IsSetType():
			out[name] = []int{o.rng.IntN(4), o.rng.IntN(4)}
		}
	}
	for _, name := range sortedKeys(s.blocks) {
		b := o.nested(blockShape(s.blocks[name]), unknowns)
		if labels, isMap := b.(map[string]any); o.rng.IntN(3) > 0 && (!isMap || len(labels) > 0) {
			out[name] = b
		}
	}
	return out
}

func (o *oracle) nested(s shape, unknowns float64) any {
	switch s.nesting {
	case providers.Single, providers.Group:
		return o.object(s, unknowns)
	case providers.Map:
		out := map[string]any{}
		for range o.rng.IntN(4) {
			out[fmt.Sprint("k", o.rng.IntN(4))] = o.object(s, unknowns)
		}
		return out
	}
	out := []any{}
	for range o.rng.IntN(4) {
		out = append(out, o.object(s, unknowns))
	}
	return out
}

func (o *oracle) text(unknowns float64) string {
	if o.rng.Float64() < unknowns {
		return fmt.Sprintf("${witness_source.s%d.value}", o.w.round)
	}
	return pick(o.rng, "a", "b", "c")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

var objectName = regexp.MustCompile(`witness_thing\.(t\d+)`)

// run runs Terraform and returns the objects that it complained of as the
// provider's fault. Any other complaint fails the test.
func (o *oracle) run(args ...string) map[string]string {
	o.t.Helper()
	o.w.planned, o.w.applied = nil, map[string]appliedCase{}
	cmd := exec.CommandContext(o.t.Context(), o.terraform, append(args, "-json", "-lock=false")...)
	cmd.Dir = o.dir
	cmd.Env = append(os.Environ(), o.env, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	refused := map[string]string{}
	for line := range bytes.Lines(out) {
		var message struct {
			Diagnostic struct{ Severity, Summary, Detail string }
		}
		if json.Unmarshal(line, &message) != nil || message.Diagnostic.Severity != "error" {
			continue
		}
		d := message.Diagnostic
		name := objectName.FindStringSubmatch(d.Detail)
		if name == nil || !o.w.mutatePlan && !o.w.mutateApplied {
			o.t.Fatalf("terraform %v: %s: %s", args, d.Summary, d.Detail)
		}
		refused[name[1]] += d.Detail + "\n"
	}
	if err != nil && len(refused) == 0 {
		o.t.Fatalf("terraform %v: %v\n%s%s", args, err, out, &stderr)
	}
	return refused
}

func (o *oracle) checkProposed(what string) {
	o.t.Helper()
	if len(o.w.planned) < objects {
		o.t.Fatalf("%s: only %d plans were asked for", what, len(o.w.planned))
	}
	for _, c := range o.w.planned {
		got := Proposed(o.w.schema, c.prior, c.config)
		if !got.RawEquals(c.proposed) {
			o.t.Errorf("%s: proposed", what)
			equal(o.t, got, c.proposed)
			o.t.FailNow()
		}
		if errs := CheckPlanned(o.w.schema, c.prior, c.config, c.planned); len(errs) > 0 {
			o.t.Fatalf("%s: a plan that Terraform takes is refused: %v", what, texts(errs))
		}
	}
}

func (o *oracle) checkPlanned(refused map[string]string) {
	o.t.Helper()
	both := 0
	for _, c := range o.w.planned {
		name := c.config.GetAttr("name").AsString()
		errs := CheckPlanned(o.w.schema, c.prior, c.config, c.planned)
		if (len(errs) > 0) != (refused[name] != "") {
			o.t.Errorf("planned %s: we say %q, Terraform says %q", name, texts(errs), refused[name])
		}
		if len(errs) > 0 {
			both++
		}
	}
	o.t.Logf("refused %d of %d plans", both, len(o.w.planned))
}

func (o *oracle) checkApplied(refused map[string]string) {
	o.t.Helper()
	both := 0
	for name, c := range o.w.applied {
		errs := CheckApplied(o.w.schema, c.planned, c.actual)
		if (len(errs) > 0) != (refused[name] != "") {
			o.t.Errorf("applied %s: we say %q, Terraform says %q", name, texts(errs), refused[name])
		}
		if len(errs) > 0 {
			both++
		}
	}
	o.t.Logf("refused %d of %d results", both, len(o.w.applied))
}
