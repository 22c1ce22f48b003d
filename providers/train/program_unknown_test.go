package train

import (
	"context"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/code"
)

func TestUnknownsOfAProgramAreNoErrors(t *testing.T) {
	b, of := programs(t)
	text := cty.UnknownVal(cty.String)
	ty := b.schema(experiment).ImpliedType().AttributeType("program")
	for name, change := range map[string]values{
		"command":              {"program.command": cty.UnknownVal(cty.List(cty.String))},
		"an argument":          {"program.command": cty.ListVal([]cty.Value{cty.StringVal("nothing-of-the-kind"), text})},
		"code":                 {"program.code": text, "program.command": texts("./train.sh")},
		"parameters":           {"program.parameters": cty.DynamicVal},
		"a parameter":          {"program.parameters": cty.ObjectVal(values{"rate": text}), "program.command": texts("{{rate}}")},
		"environment":          {"program.environment": cty.UnknownVal(cty.Map(cty.String)), "program.command": texts("nothing-of-the-kind")},
		"a variable":           {"program.environment": cty.MapVal(values{"PATH": text}), "program.command": texts("nothing-of-the-kind")},
		"framework":            {"program.framework": text, "program.chief": cty.True},
		"chief":                {"program.chief": cty.UnknownVal(cty.Bool), "program.framework": cty.StringVal("none")},
		"GPUs":                 {"program.processes": cty.StringVal("gpu"), "worker.gpus": cty.UnknownVal(cty.Number)},
		"processes":            {"program.processes": text},
		"on_change":            {"program.on_change": text},
		"grace":                {"program.stop_grace": text},
		"dataset":              {"dataset": text},
		"model":                {"model": text},
		"strategy":             {"strategy": text},
		"all of it":            {"program": cty.UnknownVal(ty)},
		"workers":              {"worker.replicas": cty.UnknownVal(cty.Number), "program.evaluator": cty.True, "worker.min_replicas": cty.NumberIntVal(2)},
		"the number of needed": {"worker.min_replicas": cty.UnknownVal(cty.Number), "program.evaluator": cty.True},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			p := b.plan(b.new(experiment), of(change))
			noErrors(t, p.Diagnostics)
			hashed := !slices.Contains([]string{"GPUs", "chief", "processes", "on_change", "grace", "workers", "the number of needed", "strategy", "model"}, name)
			if known := p.Planned.GetAttr("spec_hash").IsKnown(); known == hashed {
				t.Errorf("spec_hash is known: %v", known)
			}
			if known := p.Planned.GetAttr("code_hash").IsKnown(); known == (name == "code" || name == "all of it") {
				t.Errorf("code_hash is known: %v", known)
			}
		})
	}
}

// known puts a value into the block program of a plan, as the engine does once it
// knows it.
func known(p providers.PlanResponse, name string, value cty.Value) providers.PlanResponse {
	p.Planned, _ = cty.Transform(p.Planned, func(at cty.Path, v cty.Value) (cty.Value, error) {
		if at.Equals(cty.GetAttrPath("program").GetAttr(name)) {
			return value, nil
		}
		return v, nil
	})
	return p
}

// The folder of the code may come from another resource.
func TestCodeThatOnlyTheApplyKnows(t *testing.T) {
	b, of := programs(t)
	resume := values{"program.on_change": cty.StringVal("resume")}
	unknown := of(values{"program.on_change": cty.StringVal("resume"), "program.code": cty.UnknownVal(cty.String)})
	b.held(behaviour{Save: true})
	th := b.leave("op-run", of(resume))
	b.running(th)
	writeCode(t, b.code, "train.sh", "exit 7")
	snapshot, err := code.Read(t.Context(), b.code)
	if err != nil {
		t.Fatal(err)
	}
	b.behave(behaviour{}) // the next start ends by itself
	for _, th := range []*thing{th, b.new(experiment)} {
		p := b.plan(th, unknown)
		noErrors(t, p.Diagnostics)
		noErrors(t, b.apply(context.Background(), b.call("op-next"), th, of(resume), known(p, "code", cty.StringVal(b.code))))
		is, err := b.folder(th).ReadSpec()
		if err != nil || is.Program.Code != snapshot.Hash() || th.state.GetAttr("code_hash").AsString() != is.Program.Code ||
			th.state.GetAttr("spec_hash").AsString() != is.Hash() || status(th) != "succeeded" {
			t.Errorf("%s runs %s, %v", show(th.state), is.Program.Code, err)
		}
		b.unchanged(th, of(resume))
	}
}

// Values that only the apply knows are checked there.
func TestApplyChecksWhatThePlanCouldNot(t *testing.T) {
	b, of := programs(t)
	defer b.held(behaviour{Save: true})()
	running := b.leave("op-run", of(nil))
	b.running(running)
	unknown := of(values{"program.command": cty.UnknownVal(cty.List(cty.String)), "program.on_change": cty.StringVal("resume")})
	late := of(values{"program.command": texts("sh", "{{speed}}"), "program.on_change": cty.StringVal("resume")})
	for _, th := range []*thing{b.new(experiment), running} {
		p := b.plan(th, unknown)
		noErrors(t, p.Diagnostics)
		p = known(p, "command", texts("sh", "{{speed}}"))
		oneError(t, b.apply(context.Background(), b.call("op-late"), th, late, p), "Command and parameters do not fit")
	}
	if !local.Alive(b.folder(running)) {
		t.Error("the run was stopped")
	}
}
