package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/cmd/stoke/dashboard"
	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan"
)

// MayWrite reports whether the form of a new run may save files.
func (w *shownRuns) MayWrite() bool { return w.mayWrite }

// MayApply reports whether a plan of the form may be applied.
func (w *shownRuns) MayApply() bool { return w.mayApply }

// Save writes a new file next to the configuration.
func (w *shownRuns) Save(_ context.Context, name, hcl string) (string, error) {
	if !w.mayWrite {
		return "", errors.New("the dashboard was started without -allow-write")
	}
	path, err := w.newFile(name)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil { // also where a file of that name appeared just now
		return "", err
	}
	_, err = f.WriteString(hcl)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

// draftFile is a file that the form has written and that is not on the disk yet.
type draftFile struct{ name, text string }

// drafted is a configuration with one more file.
type drafted struct {
	modules.Source
	dir   string
	draft draftFile
}

func (d drafted) List(dir string) ([]string, error) {
	names, err := d.Source.List(dir)
	if filepath.Clean(dir) == filepath.Clean(d.dir) {
		names = append(names, d.draft.name)
		slices.Sort(names)
	}
	return names, err
}

func (d drafted) Read(name string) ([]byte, error) {
	if filepath.Clean(name) == filepath.Join(d.dir, d.draft.name) {
		return []byte(d.draft.text), nil
	}
	return d.Source.Read(name)
}

// newFile returns the path of a new file of the folder.
func (w *shownRuns) newFile(name string) (path string, err error) {
	path = filepath.Join(cmp.Or(w.s.configDir, "."), filepath.Base(name))
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s exists already: choose another label", path)
	}
	return path, nil
}

// Validate checks a draft together with the configuration of the folder, as stoke
// validate does.
func (w *shownRuns) Validate(ctx context.Context, file, text string) ([]string, error) {
	path, err := w.newFile(file)
	if err != nil {
		return nil, err
	}
	dir, name := cmp.Or(w.s.configDir, "."), filepath.Base(path)
	root, _, diags := modules.Load(drafted{modules.OnDiskWith(w.s.dataDir()), dir, draftFile{name, text}}, dir)
	if !diags.HasErrors() {
		diags = append(diags, validate(ctx, w.s, &configuration{root: root})...)
	}
	var problems []string
	for _, d := range diags {
		if d.Subject != nil && filepath.Base(d.Subject.Filename) == name {
			problems = append(problems, fmt.Sprintf("Line %d: %s. %s", d.Subject.Start.Line, d.Summary, d.Detail))
		} else {
			problems = append(problems, d.Summary+". "+d.Detail)
		}
	}
	return problems, nil
}

// longestPlan bounds the text of a plan on a page.
const longestPlan = 1 << 20

// Plan returns the plan that stoke plan would make if the folder had one more file with
// this configuration. Of its text it has the last longestPlan bytes. It takes no lock and
// changes nothing. Where the plan fails, err says so, and the text ends with the plan's
// errors.
func (w *shownRuns) Plan(ctx context.Context, file, hcl string) (is dashboard.Plan, err error) {
	if w.machine != nil {
		return is, errors.New("the dashboard makes no plan with -machine: start it without -machine, in the folder of the configuration")
	}
	path, err := w.newFile(file)
	if err != nil {
		return is, err
	}
	draft := &draftFile{filepath.Base(path), hcl}
	w.planning.Lock()
	defer w.planning.Unlock()
	read := make(chan []byte, 1)
	o, end, err := w.operate(w.s.signals, draft, func(from io.Reader) { read <- readEnd(from, longestPlan) })
	if err != nil {
		return is, err
	}
	o.flags.lock.lock = false
	var pl *plan.Plan
	if err = o.open(ctx, "Plan"); err == nil {
		if pl, err = o.planned(ctx); err == nil {
			pl.Pin(o.state.State())
		}
		o.close()
	}
	end()
	is.Text = string(<-read)
	if errors.Is(err, failed) {
		err = errors.New("the plan failed: its text ends with the errors")
	}
	if err != nil {
		return is, err
	}
	is.Add, is.Change, is.Destroy = pl.Count()
	is.Left = len(pl.Deferred)
	if w.mayApply && pl.Changed() {
		is.Apply = (&draftPlan{w, pl, o.config, o.s.files, hcl}).apply
	}
	return is, nil
}

// Drift compares the object at an address, and all that it depends on, with the real
// objects, as stoke plan -refresh-only -target does. It takes no lock.
func (w *shownRuns) Drift(ctx context.Context, address string) (is dashboard.Drift, err error) {
	if w.machine != nil {
		return is, errors.New("with -machine the dashboard has no state to compare with")
	}
	w.planning.Lock()
	defer w.planning.Unlock()
	read := make(chan []byte, 1)
	o, end, err := w.operate(w.s.signals, nil, func(from io.Reader) { read <- readEnd(from, longestPlan) })
	if err != nil {
		return is, err
	}
	o.mode, o.flags.lock.lock, o.flags.refreshOnly, o.flags.targets = plan.RefreshOnly, false, true, []string{address}
	if err = o.open(ctx, "Plan"); err == nil {
		var pl *plan.Plan
		if pl, err = o.planned(ctx); err == nil {
			is.Objects, is.Warnings = len(pl.Drift), max(0, len(pl.Warnings)-len(o.flags.warnings())) // one is of -target
		}
		o.close()
	}
	end()
	is.Text = string(<-read)
	if errors.Is(err, failed) {
		err = errors.New("the objects cannot be read: the text ends with the errors")
	}
	return is, err
}

// operate returns an operation of the folder with one more file: a draft, or nil for none.
// Its session asks nothing and prints without colours; read reads the text. The caller
// calls end once the operation is done, which waits for read.
func (w *shownRuns) operate(sig *signals, draft *draftFile, read func(io.Reader)) (o *operation, end func(), err error) {
	in, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() { read(from) })
	st := w.s.stage
	st.in, st.out, st.err = in, to, to
	s := newSession(st)
	s.root, s.logs, s.signals, s.configDir, s.cli, s.draft = w.s.root, w.s.logs, sig, w.s.configDir, w.s.cli, draft
	f := new(planFlags)
	flags := pflag.NewFlagSet("plan", pflag.ContinueOnError)
	f.addPlan(flags, true)
	f.addRun(s, flags)
	s.noColor, f.variables, f.state, f.input = true, slices.Clone(w.flags.plan.variables), w.flags.path, false
	return newOperation(s, f), func() {
		to.Close()
		reading.Wait()
		from.Close()
		in.Close()
	}, nil
}

// draftPlan is a plan of the folder with a draft. It is applied as it was shown, as a
// saved plan is: not if the state has changed since.
type draftPlan struct {
	w      *shownRuns
	plan   *plan.Plan
	config *configuration
	files  *modules.Files
	hcl    string
}

// apply locks the state, saves the draft as a new file, and carries the plan out. The
// first interrupt, or stop, lets it finish the steps that are under way. The second
// interrupt, or the end of ctx, ends them.
func (d *draftPlan) apply(ctx context.Context, name string, stop <-chan struct{}, line func(string)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.w.life, func() { cancel(errInterrupted) })()
	sig := &signals{stopping: make(chan struct{})}
	o, end, err := d.w.operate(sig, nil, func(from io.Reader) { readLines(from, line) })
	if err != nil {
		return err
	}
	defer end()
	o.saved, o.mode, o.config, o.s.files = true, d.plan.Mode, d.config, d.files
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		d.announceStop(ctx, stop, func(text string) {
			close(sig.stopping)
			o.s.display().printText(text)
		})
	})
	if err := o.openState(ctx, "Apply"); err != nil {
		return applyError(err)
	}
	defer d.w.expire()
	defer o.close()
	if err := o.checkPlan(ctx, d.plan); err != nil {
		return applyError(err)
	}
	path, err := d.w.Save(ctx, name, d.hcl)
	if err != nil {
		return err
	}
	o.s.printf("Saved %s.\n\n", path)
	if err := o.carryOut(ctx, d.plan); err != nil {
		return fmt.Errorf("%w. The configuration is saved as %s. Correct it where needed and run stoke apply, or remove the file",
			applyError(err), path)
	}
	if len(d.plan.Deferred) > 0 {
		o.s.display().reportDeferrals(d.plan)
	}
	return nil
}

// stopOnPage is what an apply says after Stop on its page.
const stopOnPage = "\nStop received.\n" +
	"Stoke finishes the steps that are under way and writes the state; please wait.\n" +
	"Stop at once ends those steps at once.\n\n"

// announceStop calls say once, at a stop on the page or the first interrupt. The terminal
// hears of the interrupt, also after a stop on the page. It returns once ctx ends, or after
// the interrupt.
func (d *draftPlan) announceStop(ctx context.Context, stop <-chan struct{}, say func(text string)) {
	select {
	case <-stop:
		say(stopOnPage)
	case <-d.w.s.signals.stopping:
		fmt.Fprint(d.w.s.stage.err, firstSignal)
		say(firstSignal)
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-d.w.s.signals.stopping:
		fmt.Fprint(d.w.s.stage.err, firstSignal)
	case <-ctx.Done():
	}
}

// applyError returns an error for people of an apply whose text has the reasons.
func applyError(err error) error {
	if errors.Is(err, failed) {
		return errors.New("the apply failed: its text has the errors")
	}
	return err
}

// expire lets the next look at the runs read the state again.
func (w *shownRuns) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = time.Time{}
}

// readLines calls line for each line of a text. It cuts lines longer than 64 KiB into
// several.
func readLines(from io.Reader, line func(string)) {
	for b := bufio.NewReaderSize(from, 64<<10); ; {
		text, _, err := b.ReadLine()
		if err != nil {
			return
		}
		line(string(bytes.TrimRight(text, "\r")))
	}
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
