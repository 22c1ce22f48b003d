package train

import (
	"context"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/runtime/run"
)

// TestPlanAfterARefusedChange: a change that a running run does not hear of, and one that
// stops it and cannot start it again, are planned again.
func TestPlanAfterARefusedChange(t *testing.T) {
	for name, c := range map[string]struct {
		change values
		harm   func(b *bench, th *thing) (mend func())
		says   string
	}{
		"live": {values{"worker.replicas": cty.NumberIntVal(5)}, func(b *bench, th *thing) func() {
			f := b.folder(th)
			is, err := f.ReadSupervisor()
			if err != nil {
				t.Fatal(err)
			}
			away := is
			away.API = "http://127.0.0.1:1"
			write := func(s run.Supervisor) {
				if err := run.WriteJSON(f.Supervisor(), s); err != nil {
					t.Fatal(err)
				}
			}
			write(away)
			return func() { write(is) }
		}, "did not take the change"},
		"resume": {values{"parameter_server.replicas": cty.NumberIntVal(2)}, func(b *bench, _ *thing) func() {
			b.behave(behaviour{Refuse: true})
			return func() { b.held(behaviour{Save: true}) }
		}, "could not be resumed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			data := b.make("train_dataset", "op-data", b.digits(nil))
			release := b.held(behaviour{Save: true})
			th := b.make(experiment, "op-run", b.experiment(data, values{"wait": cty.False}))
			eventually(t, "the run trains", func() bool { noErrors(t, b.read(th)); return status(th) == "running" })
			c.change["wait"] = cty.False
			config := b.experiment(data, c.change)
			p := b.plan(th, config)
			noErrors(t, p.Diagnostics)
			mend := c.harm(b, th)
			diags := b.apply(context.Background(), b.call(""), th, config, p)
			if !diags.HasErrors() || !strings.Contains(diags[0].Summary, c.says) {
				t.Fatalf("it says %v", diags)
			}
			mend()
			b.restart()
			noErrors(t, b.read(th))
			p = b.plan(th, config)
			noErrors(t, p.Diagnostics)
			if p.Planned.RawEquals(th.state) || len(p.Replace) > 0 {
				t.Errorf("the next plan has nothing to do, or replaces by %v", p.Replace)
			}
			noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
			is, err := b.folder(th).ReadSpec()
			if err != nil || name == "live" && is.Worker.Replicas != 5 && b.logged("live.log") != 1 || name == "resume" && is.ParameterServer.Replicas != 2 {
				t.Errorf("the run is %+v, %v", is, err)
			}
			release()
			eventually(t, "the run ends", func() bool { noErrors(t, b.read(th)); return status(th) == "succeeded" })
			b.unchanged(th, config)
		})
	}
}
