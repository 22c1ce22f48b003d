package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/cmd/stoke/dashboard"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
)

func dashboardCommand(s *session) *cobra.Command {
	var f lookFlags
	var port uint16
	var noBrowser, mayWrite, mayApply, machine bool
	cmd := &cobra.Command{
		Use:   "dashboard [options] [ADDRESS...]",
		Short: "Show runs in a browser",
		Long: `Serves pages on 127.0.0.1 until Ctrl-C: runs with their curves, logs, workers and
configuration, and several runs on one chart. It opens the browser with a link
that works once; the pages are for that browser only. It shows all runs of the
state, or those at the addresses, and changes none of them. Runs of clusters are
read as stoke status reads them. With -machine it shows the runs of this machine
in FOLDER, of any state. FOLDER replaces the addresses. Default: the default of
runs_dir.

With -allow-apply, a page can apply the plan that it shows of a new run. The page
saves the run's configuration as a new file of this folder first. The apply locks
the state as stoke apply does.`,
	}
	cmd.Flags().Uint16Var(&port, "port", 0, "Listen on this `PORT` of 127.0.0.1. Default: any free port.")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "Print the link only.")
	cmd.Flags().BoolVar(&mayWrite, "allow-write", false, "Let the form of a new run save its configuration as a new file of this folder.")
	cmd.Flags().BoolVar(&mayApply, "allow-apply", false, "Let the form save its configuration, and apply the plan that it showed.")
	cmd.Flags().BoolVar(&machine, "machine", false, "Show the runs of this machine, not of the state.")
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s.looking.Store(true)
		ctx, done := s.signals.untilStopped(cmd.Context())
		defer done()
		w := &shownRuns{s: s, flags: &f, life: cmd.Context(), mayWrite: mayWrite || mayApply, mayApply: mayApply}
		defer w.close()
		if machine {
			switch {
			case len(args) > 1:
				return &usageError{path: cmd.CommandPath(), err: errors.New("-machine shows the runs of one folder")}
			case mayApply:
				return &usageError{path: cmd.CommandPath(), err: errors.New("-allow-apply and -machine exclude each other: " +
					"an apply needs the state of a configuration")}
			}
			w.machine, args = &machineFolder{strings.Join(args, "")}, nil
		}
		if err := w.choose(ctx, args); err != nil {
			return err
		}
		l, err := dashboard.Listen(int(port))
		if err != nil {
			s.complain(problem("The port cannot be used", "%s Choose another -port, or none.", asSentence(err.Error())))
			return failed
		}
		server, err := dashboard.New(w, l.Addr().(*net.TCPAddr).Port)
		if err != nil {
			l.Close()
			return err
		}
		if err := s.printOrStop("The dashboard is at\n\n  %s\n\nThe link works once. Ctrl-C ends the dashboard.\n",
			server.Link()); err != nil {
			l.Close()
			return err
		}
		if !noBrowser {
			defer openBrowser(server.Link())()
		}
		return server.Serve(ctx, l)
	}
	return cmd
}

// openBrowser opens a link in the person's browser, where there is one: the link was
// printed, so that a machine without a browser is not an error. Other users of the
// machine can read command lines, so that the link is in a file that leads to it and that
// only this user can read. The caller removes the file.
func openBrowser(link string) (remove func()) {
	remove = func() {}
	dir, err := os.MkdirTemp(browserFolder(), "stoke-dashboard-")
	if err != nil {
		return remove
	}
	remove = func() { os.RemoveAll(dir) } //nolint:errcheck // the link in it is void soon
	page := filepath.Join(dir, "open.html")
	if os.WriteFile(page, []byte(redirectTo(link)), 0o600) != nil {
		return remove
	}
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	cmd := exec.Command(name, page)
	if cmd.Start() == nil {
		go cmd.Wait() //nolint:errcheck // see above
	}
	return remove
}

// snaps is the folder of the programs that snap has installed.
var snaps = "/snap/bin"

// browserFolder returns the folder in which a browser can read a file; "" is the folder for
// temporary files. Browsers that snap has installed see a /tmp of their own, and no hidden
// folder: they can read the home directory only.
func browserFolder() string {
	for _, name := range []string{"firefox", "chromium"} {
		if _, err := os.Stat(filepath.Join(snaps, name)); err != nil {
			continue
		}
		if home, err := os.UserHomeDir(); err == nil {
			return home
		}
	}
	return ""
}

// redirectTo returns a page that leads to a link.
func redirectTo(link string) string {
	at := html.EscapeString(link)
	return fmt.Sprintf(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>stoke dashboard</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=%s"></head>
<body><p><a href="%s">Open the dashboard</a></p></body></html>
`, at, at)
}

// Bounds of reading the state again.
const (
	stateFresh = 5 * time.Second
	statesKept = 8 // whose connections runs may still use
)

// shownRuns are the runs of a state as the dashboard shows them. An apply may add
// runs, so that the state is read again.
type shownRuns struct {
	s        *session
	flags    *lookFlags
	life     context.Context // of the command: the second Ctrl-C ends it
	mayWrite bool
	mayApply bool
	only     []string       // addresses; none: all
	machine  *machineFolder // nil: the runs of the state
	planning sync.Mutex     // held by the one plan of a draft
	closing  sync.WaitGroup // of states that were read again

	mu      sync.Mutex // held for moments: opening a run takes as long as its cluster
	now     *runs
	old     []*runs
	asked   []*redact.Provider
	read    time.Time
	places  []runPlace // of the folder
	entries []dashboard.Entry
	print   string // of the entries
}

// choose checks the addresses, and reads the state.
func (w *shownRuns) choose(ctx context.Context, args []string) error {
	for _, text := range args {
		a, err := address.ParseInstance(text)
		if err != nil {
			w.s.complain(problem("Invalid address", "%q is not an address of an object: %s.", text, err))
			return failed
		}
		w.only = append(w.only, a.String())
	}
	entries, err := w.Runs(ctx)
	if err != nil {
		return err
	}
	for _, text := range w.only {
		if !slices.ContainsFunc(entries, func(e dashboard.Entry) bool { return e.Address == text }) {
			w.s.complain(problem("Not a run", "The state has no run at %s.%s", text, w.now.describeOthers()))
			return failed
		}
	}
	return nil
}

func (w *shownRuns) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range append(w.old, w.now) {
		if r != nil {
			r.close()
		}
	}
	w.closing.Wait()
}

// Runs lists the runs of the state, which is read again after a while.
func (w *shownRuns) Runs(ctx context.Context) ([]dashboard.Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now != nil && time.Since(w.read) < stateFresh {
		return w.entries, nil
	}
	r, err := w.readRuns(ctx)
	if err != nil {
		if w.now != nil { // it is being written, or out of reach: the runs are known
			return w.entries, nil
		}
		return nil, err
	}
	w.read = time.Now()
	entries, print := w.list(r)
	if w.now != nil && print == w.print {
		r.close()
		return w.entries, nil
	}
	if w.now != nil {
		w.old = append(w.old, w.now)
	}
	if len(w.old) > statesKept {
		w.closing.Go(w.old[0].close) // it may wait for a cluster
		w.old = w.old[1:]
	}
	w.now, w.entries, w.print = r, entries, print
	return entries, nil
}

// machineFolder is a folder with runs of this machine; "" is the default of runs_dir.
type machineFolder struct{ path string }

// readRuns reads the state, or the folder. Called with mu held.
func (w *shownRuns) readRuns(ctx context.Context) (*runs, error) {
	if w.machine == nil {
		return w.s.openRuns(ctx, w.flags)
	}
	r := &runs{s: w.s, secrets: new(redact.Secrets), flags: w.flags}
	var err error
	w.places, err = r.ofMachine(w.machine.path)
	return r, err
}

// list returns the runs of a state, and a text that is another one when they change.
func (w *shownRuns) list(r *runs) (entries []dashboard.Entry, print string) {
	var b strings.Builder
	if w.machine != nil {
		for _, o := range w.places {
			entries = append(entries, dashboard.Entry{Address: o.name, ID: o.name, Run: w.guarded(r, o.open)})
			fmt.Fprintln(&b, o.name)
		}
		return entries, b.String()
	}
	for _, a := range r.addresses() {
		if len(w.only) > 0 && !slices.Contains(w.only, a.String()) {
			continue
		}
		found, _ := r.objects(a)
		if len(found) == 0 {
			continue
		}
		e := dashboard.Entry{Address: a.String(), Configuration: r.configurationOf(a), Run: w.opener(r, found)}
		e.ID = found[0].Operation + idOf(found[0].Value)
		entries = append(entries, e)
		text, err := json.Marshal(e.Configuration)
		fmt.Fprintln(&b, e.Address, e.ID, string(text), err)
	}
	return entries, b.String()
}

// idOf returns the id of a stored object; "" where it has none yet.
func idOf(v cty.Value) string {
	v, _ = v.Unmark()
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute("id") {
		return ""
	}
	id, _ := v.GetAttr("id").Unmark()
	if id.Type() != cty.String || id.IsNull() || !id.IsKnown() {
		return ""
	}
	return id.AsString()
}

// opener returns a function that opens the run behind some objects, the newest first.
func (w *shownRuns) opener(r *runs, found []runSource) func(context.Context) (providers.Run, error) {
	return w.guarded(r, func(ctx context.Context) (providers.Run, error) {
		for _, o := range found {
			run, err := o.known.Run(ctx, o.RunObject)
			if !errors.Is(err, providers.ErrNoRun) {
				return run, err
			}
		}
		return nil, providers.ErrNoRun
	})
}

// guarded returns a function that opens a run whose texts are without secrets.
func (w *shownRuns) guarded(r *runs, open func(context.Context) (providers.Run, error)) func(context.Context) (providers.Run, error) {
	clean := func(text string) string { return w.clean(r, text) }
	return func(ctx context.Context) (providers.Run, error) {
		run, err := open(ctx)
		r.mu.Lock()
		asked := r.asked
		r.mu.Unlock()
		w.mu.Lock()
		if asked != nil && !slices.Contains(w.asked, asked) {
			w.asked = append(w.asked, asked)
		}
		w.mu.Unlock()
		switch {
		case errors.Is(err, providers.ErrNoRun):
			return nil, err
		case err != nil:
			return nil, errors.New(clean(err.Error()))
		}
		return &cleanRun{run, clean}, nil
	}
}

// clean returns a text without secrets.
func (w *shownRuns) clean(r *runs, text string) string {
	w.mu.Lock()
	asked := w.asked
	w.mu.Unlock()
	text = r.secrets.Redact(text)
	for _, p := range asked {
		text = p.Clean(text)
	}
	return text
}

// cleanRun is a run whose texts are without secrets.
type cleanRun struct {
	providers.Run
	clean func(string) string
}

func (c *cleanRun) error(err error) error {
	var told *providers.RunError
	switch {
	case err == nil, errors.Is(err, providers.ErrNoRun):
		return err
	case errors.As(err, &told):
		return errors.New(c.clean(told.Summary + ". " + told.Detail))
	}
	return errors.New(c.clean(err.Error()))
}

func (c *cleanRun) Status(ctx context.Context) (providers.RunStatus, error) {
	is, err := c.Run.Status(ctx)
	is.Message, is.Progress = c.clean(is.Message), c.clean(is.Progress)
	for i := range is.Roles {
		role := &is.Roles[i]
		role.Reason = c.clean(role.Reason)
		if role.Usage != nil {
			role.Usage.Partly = c.clean(role.Usage.Partly)
		}
	}
	return is, c.error(err)
}

func (c *cleanRun) Logs(ctx context.Context, o providers.RunLogs, line func(providers.RunLine) error) error {
	return c.error(c.Run.Logs(ctx, o, func(l providers.RunLine) error {
		l.Text = c.clean(l.Text)
		return line(l)
	}))
}

func (c *cleanRun) Metrics(ctx context.Context, o providers.RunMetrics, event func(providers.RunEvent) error) error {
	return c.error(c.Run.Metrics(ctx, o, func(e providers.RunEvent) error {
		if e.Message != "" {
			e.Message = c.clean(e.Message)
		}
		if e.JSON != nil {
			e.JSON = json.RawMessage(c.clean(string(e.JSON)))
		}
		return event(e)
	}))
}

// Ledger implements providers.RunAccountant.
func (c *cleanRun) Ledger(ctx context.Context) (providers.RunLedger, error) {
	known, ok := c.Run.(providers.RunAccountant)
	if !ok {
		return providers.RunLedger{}, providers.ErrNoLedger
	}
	is, err := known.Ledger(ctx)
	if errors.Is(err, providers.ErrNoLedger) {
		return is, err
	}
	return is, c.error(err)
}

// Survey implements providers.RunSurveyor.
func (c *cleanRun) Survey(ctx context.Context) (providers.RunSurvey, error) {
	known, ok := c.Run.(providers.RunSurveyor)
	if !ok {
		return providers.RunSurvey{}, providers.ErrNoSurvey
	}
	is, err := known.Survey(ctx)
	if errors.Is(err, providers.ErrNoSurvey) {
		return is, err
	}
	for i := range is.Pending {
		is.Pending[i].Reason = c.clean(is.Pending[i].Reason)
	}
	return is, c.error(err)
}
