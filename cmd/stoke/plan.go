package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func planCommand(s *session) *cobra.Command {
	f := &planFlags{}
	var out string
	var detailed bool
	cmd := &cobra.Command{
		Use:   "plan [options]",
		Short: "Show what apply would change",
		Long: `Compares the configuration with the real objects and shows what "stoke apply"
would do about the differences. Nothing is changed.

With -out the plan is saved, and "stoke apply FILE" does exactly what it shows.`,
		Args: atMost(0, "; to plan in another folder, use the global option -chdir"),
	}
	f.addPlan(cmd.Flags(), true)
	f.addGenerate(cmd)
	f.addRun(s, cmd.Flags())
	cmd.Flags().StringVar(&out, "out", "", "Save the plan to `FILE`.")
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "Exit with 0 when there is nothing to change, 1 after an error, 2 when there are changes.")
	addFlagGroup(cmd.Flags(), otherOptions, "out", "detailed-exitcode")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd, s.built); err != nil {
			return err
		}
		if err := s.checkGenerate(cmd, f); err != nil {
			return err
		}
		o := newOperation(s, f)
		if err := o.open(cmd.Context(), "Plan"); err != nil {
			return err
		}
		defer o.close()
		pl, err := o.planned(cmd.Context())
		if err != nil {
			return err
		}
		if out != "" {
			pl.Pin(o.state.State())
			if err := s.writePlan(cmd.Context(), out, pl); err != nil {
				s.complain(problem("Plan not saved", "%s cannot be written: %s.", out, err))
				return failed
			}
		}
		s.generated(f, pl)
		if (pl.Changed() || out != "") && !s.automated() && !f.json {
			s.stdout().PrintNextStep(out)
		}
		if detailed && (pl.Changed() || len(pl.Deferred) > 0) {
			return exitCode(2)
		}
		return nil
	}
	return cmd
}

// longestPlan bounds the text of a plan on a page.
const longestPlan = 1 << 20

// Plan returns the text that stoke plan would print if the folder had one more file
// with this configuration, as far as the last longestPlan bytes have it. It takes no lock
// and changes nothing. Where the plan fails, err says so, and the text ends with the
// plan's errors.
func (w *shownRuns) Plan(ctx context.Context, hcl string) (text string, err error) {
	if w.machine != nil {
		return "", errors.New("the dashboard makes no plan with -machine: start it without -machine, in the folder of the configuration")
	}
	w.planning.Lock()
	defer w.planning.Unlock()
	in, err := os.Open(os.DevNull)
	if err != nil {
		return "", err
	}
	defer in.Close()
	from, to, err := os.Pipe()
	if err != nil {
		return "", err
	}
	read := make(chan []byte)
	go func() {
		defer from.Close()
		read <- readEnd(from, longestPlan)
	}()
	st := w.s.stage
	st.in, st.out, st.err = in, to, to
	s := newSession(st)
	s.root, s.logs, s.signals, s.configDir, s.cli, s.noColor, s.draft = w.s.root, w.s.logs, w.s.signals, w.s.configDir, w.s.cli, true, hcl
	f := new(planFlags)
	flags := pflag.NewFlagSet("plan", pflag.ContinueOnError)
	f.addPlan(flags, true)
	f.addRun(s, flags)
	s.noColor, f.variables, f.state, f.input, f.lock.lock = true, slices.Clone(w.flags.plan.variables), w.flags.path, false, false
	o := newOperation(s, f)
	if err = o.open(ctx, "Plan"); err == nil {
		_, err = o.planned(ctx)
		o.close()
	}
	to.Close()
	text = string(<-read)
	if errors.Is(err, failed) {
		err = errors.New("the plan failed: its text ends with the errors")
	}
	return text, err
}

// readEnd returns the last bytes of a text, most at the most.
func readEnd(from io.Reader, most int) (end []byte) {
	part := make([]byte, 32<<10)
	for {
		n, err := from.Read(part)
		if end = append(end, part[:n]...); len(end) > 2*most || err != nil {
			end = append(end[:0], end[max(0, len(end)-most):]...)
		}
		if err != nil {
			return end
		}
	}
}
