package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"
)

// longestPlan bounds the text of a plan on a page.
const longestPlan = 1 << 20

// Plan returns the text that stoke plan would print if the folder had one more file
// with this configuration. It takes no lock and changes nothing. The text ends with the
// errors of the plan; err reports that no plan could be attempted.
func (w *shownRuns) Plan(ctx context.Context, hcl string) (text string, err error) {
	if w.machine != nil {
		return "", errors.New("-machine shows runs without a configuration: start the dashboard in the folder of one, without -machine")
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
		text, _ := io.ReadAll(io.LimitReader(from, longestPlan)) //nolint:errcheck // the pipe of this process
		io.Copy(io.Discard, from)                                //nolint:errcheck // likewise
		read <- text
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
	if err != nil && !errors.Is(err, failed) { // what failed is in the text
		return text, err
	}
	return text, nil
}
