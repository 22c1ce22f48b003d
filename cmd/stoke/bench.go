package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/cmd/stoke/terminal"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/plan/view"
	"github.com/stokehq/stoke/providers"
)

func benchCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench <subcommand> [options]",
		Short: "Measure the exchange between workers",
		Long:  `Measures the exchange between workers.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd.CommandPath(), args[0], commandNames(cmd))
			}
			printHelp(cmd)
			return failed
		},
	}
	cmd.AddCommand(benchReduceCommand(s))
	return cmd
}

// maxBenchWorkers is the most workers of a benchmark.
const maxBenchWorkers = 256

func benchReduceCommand(s *session) *cobra.Command {
	var f lookFlags
	var o providers.RunBenchmark
	var in string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "allreduce [options]",
		Short: "Measure the all-reduce of workers",
		Long: `Measures how long workers take to add up vectors of 100 to 10 million numbers, as
they do for each update of strategy = "all_reduce": the same code exchanges the
sums and makes the updates, without the computation of gradients. The workers are
a temporary run on this machine, or with -provider pods of a cluster. The run is
removed at the end, and on Ctrl-C.

  stoke bench allreduce -workers=4
  stoke bench allreduce -workers=8 -provider=train_experiment.digits

TIME is the median time of one update and FASTEST the shortest, both measured as
means of five updates in a row. BANDWIDTH is the vector's size in bytes divided
by TIME.`,
		Args: atMost(0, ""),
	}
	cmd.Flags().IntVar(&o.Workers, "workers", 2, "Number `N` of workers, at least 2.")
	cmd.Flags().StringVar(&in, "provider", "", "Run in the cluster that the object at `ADDRESS` is or belongs to.")
	cmd.Flags().StringVar(&o.Image, "image", "",
		"In a cluster: `REFERENCE` of the pods' image, whose entry point is stoke-trainer. "+
			"Default: the image of the experiment at ADDRESS, or else trainer_image of its provider block; "+
			"for an experiment with a program, trainer_image first.")
	cmd.Flags().StringVar(&o.Namespace, "namespace", "",
		"In a cluster: `NAME` of the namespace. Default: the namespace of the experiment, or else default.")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print a JSON object.")
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Workers < 2 || o.Workers > maxBenchWorkers {
			err := fmt.Errorf("-workers is %d: it must be between 2 and %d", o.Workers, maxBenchWorkers)
			return &usageError{path: cmd.CommandPath(), err: err}
		}
		if in == "" && o.Image+o.Namespace != "" {
			return &usageError{path: cmd.CommandPath(), err: errors.New("-image and -namespace are for a cluster: give -provider, too")}
		}
		s.looking.Store(true)
		ctx, done := s.signals.untilStopped(cmd.Context())
		defer done()
		r := &runs{s: s, secrets: new(redact.Secrets), flags: &f}
		if in != "" {
			opened, err := placeBenchmark(ctx, s, &f, in, &o)
			if err != nil {
				return err
			}
			defer opened.close()
			r = opened
		}
		return r.benchFailed(ctx, r.bench(ctx, o, asJSON))
	}
	return cmd
}

// placeBenchmark completes a benchmark in the cluster of an object, or complains.
func placeBenchmark(ctx context.Context, s *session, f *lookFlags, text string, o *providers.RunBenchmark) (*runs, error) {
	c, err := s.cluster(ctx, f.path, text)
	if err != nil {
		return nil, err
	}
	r, err := s.openRuns(ctx, f)
	if err != nil {
		return nil, err
	}
	if o.Cluster, err = r.clusterObject(c, o); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// clusterObject returns an object with the connection to a cluster, and with an experiment's
// image and program. It fills in the namespace of an experiment where none is given.
func (r *runs) clusterObject(c *cluster, o *providers.RunBenchmark) (*providers.RunObject, error) {
	connection, err := c.Connection.Value()
	if err != nil {
		return nil, err
	}
	values := map[string]cty.Value{"cluster": connection}
	object := &providers.RunObject{Type: c.address.Type}
	stored := r.file.State().Current(c.address)
	if known := r.s.built[view.ProviderSource(stored.Provider)].Runs; known != nil && c.address.Mode == address.Managed {
		if _, ok := known.(providers.RunBenchmarks); ok {
			object.Configured = r.configured(stored.Provider, c.address)
		}
	}
	v, _ := view.ObjectValue(c.address, stored, r.find)
	for _, name := range []string{"image", "program"} {
		if v.Type().IsObjectType() && v.Type().HasAttribute(name) {
			values[name] = v.GetAttr(name)
		}
	}
	object.Value = cty.ObjectVal(values)
	if o.Namespace == "" {
		o.Namespace = textOf(v, "namespace")
	}
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	return object, nil
}

// bench measures, and prints each result once it is known; as JSON all at the end.
func (r *runs) bench(ctx context.Context, o providers.RunBenchmark, asJSON bool) error {
	var by providers.RunBenchmarks
	for _, source := range sources(r.s.built) {
		if known, ok := r.s.built[source].Runs.(providers.RunBenchmarks); ok {
			by = known
		}
	}
	if by == nil {
		return errors.New("no provider of this program trains")
	}
	all := []providers.RunReduction{}
	err := by.Benchmark(ctx, o, func(m providers.RunReduction) error {
		all = append(all, m)
		if asJSON {
			return nil
		}
		if len(all) == 1 {
			if err := r.s.printOrStop("%10s  %10s  %10s  %10s\n", "FLOATS", "TIME", "FASTEST", "BANDWIDTH"); err != nil {
				return err
			}
		}
		return r.s.printOrStop("%10d  %10s  %10s  %10s\n",
			m.Floats, shortTime(m.Seconds), shortTime(m.Fastest), size(int64(m.Bandwidth))+"/s")
	})
	if err != nil || !asJSON {
		return err
	}
	text, err := json.MarshalIndent(struct {
		Workers int                      `json:"workers"`
		Results []providers.RunReduction `json:"results"`
	}{o.Workers, all}, "", "  ")
	if err != nil {
		return err
	}
	return r.s.printOrStop("%s\n", text)
}

// benchFailed puts the error of a benchmark in words. After an interrupt only a run that
// is left is worth a message: what else failed, failed by the interrupt.
func (r *runs) benchFailed(ctx context.Context, err error) error {
	if err == nil || !errors.Is(context.Cause(ctx), terminal.ErrStopped) {
		return r.failed("Nothing was measured", err)
	}
	var left *providers.RunLeftError
	if errors.As(err, &left) {
		r.s.complain(problem("The run was not removed", "%s", r.clean(asSentence(left.Error()))))
	}
	return interruptedCode
}

// shortTime returns a time in three digits.
func shortTime(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	for unit := time.Nanosecond; ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
}
