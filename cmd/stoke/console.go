package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/term"

	"github.com/stokehq/stoke/cmd/stoke/terminal"
	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/syntax"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/view"
)

func consoleCommand(s *session) *cobra.Command {
	f := planFlags{}
	var planned bool
	cmd := &cobra.Command{
		Use:   "console [options]",
		Short: "Try out expressions",
		Long: `Evaluates expressions against the configuration and the state: lines typed at the
prompt, or the standard input. An expression ends with its line, or when its
brackets are closed. The state is never changed.

From a pipe, all expressions are evaluated and the last one's value is printed;
the first error ends the command with exit code 1.`,
		Args: atMost(0, ""),
	}
	cmd.Flags().StringVar(&f.state, "state", "", "Read `FILE` in place of terraform.tfstate.")
	cmd.Flags().BoolVar(&planned, "plan", false, "Make a plan first, and give resources their planned values.")
	f.addVariables(cmd.Flags())
	f.lock.add(cmd.Flags())
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c := &console{s: s}
		if err := c.open(cmd.Context(), &f, planned); err != nil {
			return err
		}
		defer c.explorer.Close()
		if isTerminal(s.stage.in) && isTerminal(s.stage.out) {
			return c.interact()
		}
		return c.read()
	}
	return cmd
}

// console evaluates one expression after the other.
type console struct {
	s        *session
	explorer *plan.Explorer
}

// open reads the configuration and the state, and makes a plan where one is
// asked for. The state is not kept open: somebody may sit here for hours.
func (c *console) open(ctx context.Context, f *planFlags, planned bool) (err error) {
	o := newOperation(c.s, f)
	if planned {
		if err := o.open(ctx, "Plan"); err != nil {
			return err
		}
	} else {
		if o.config, err = c.s.configureLoosely(f); err != nil {
			return err
		}
		if o.state, err = c.s.currentState(ctx, f.state); err != nil {
			return err
		}
	}
	defer o.close()
	r := o.request()
	r.State = o.state.State()
	explorer, diags := plan.Explore(ctx, r, planned)
	c.report(diags)
	if diags.HasErrors() {
		return failed
	}
	c.explorer = explorer
	return nil
}

// configureLoosely reads the configuration and the values of its variables;
// those that are missing are unknown.
func (s *session) configureLoosely(f *planFlags) (*configuration, error) {
	root, err := s.load(true)
	if err != nil {
		return nil, err
	}
	values, missing, diags := modules.Values(root, modules.Inputs{
		Environ: s.environ, Source: modules.OnDisk(), Dir: ".", Flags: f.variables,
	}, s.files)
	s.complain(diags...)
	if diags.HasErrors() {
		return nil, failed
	}
	c := &configuration{root: root, variables: make(map[string]cty.Value, len(values))}
	for name, v := range values {
		c.variables[name] = v.Value
	}
	for _, v := range missing {
		c.variables[v.Name] = cty.UnknownVal(v.Type)
	}
	return c, nil
}

// report prints warnings and errors; standard output is for values.
func (c *console) report(diags hcl.Diagnostics) {
	if len(diags) > 0 {
		c.s.stderr().Diagnostics(diags, c.s.source(), false)
	}
}

const consoleHelp = `Type an expression and press enter to see its value. It is evaluated as if it
stood in the root module: var.region, terraform_data.a.id, [for x in local.l : x].
type(x) is the type of x. "exit", Ctrl-C or Ctrl-D ends the console.`

// evaluate returns what an expression's value looks like.
func (c *console) evaluate(text string) (shown string, ok bool) {
	if text == "help" {
		return consoleHelp, true
	}
	const name = "<console-input>"
	c.s.files.AddValues(name, []byte(text))
	expr, diags := syntax.ParseExpression(name, []byte(text), hcl.InitialPos)
	if diags.HasErrors() {
		c.report(diags)
		return "", false
	}
	v, diags := c.explorer.Value(expr)
	c.report(diags)
	if diags.HasErrors() {
		return "", false
	}
	return view.Expression(c.explorer.ForDisplay(expr, v)), true
}

// read evaluates what comes through a pipe.
func (c *console) read() error {
	const most = 64 << 20
	src, err := c.s.answers.All(most, c.s.signals.stopping)
	if err != nil {
		c.s.complain(problem("Input cannot be read", "%s.", err))
		return failed
	}
	whole, rest := syntax.Statements(src)
	if len(rest) > 0 {
		whole = append(whole, rest)
	}
	last := ""
	for _, text := range whole {
		text := strings.TrimSpace(string(text))
		if text == "exit" {
			return nil
		}
		shown, ok := c.evaluate(text)
		if !ok {
			return failed
		}
		last = shown
	}
	if len(whole) > 0 {
		c.s.printf("%s\n", last)
	}
	return nil
}

// prompt is a terminal with line editing and a history. It is in raw mode
// only while a line is typed, so that Ctrl-C interrupts an evaluation.
type prompt struct {
	s        *session
	terminal *term.Terminal
}

func newPrompt(s *session) *prompt {
	both := struct {
		io.Reader
		io.Writer
	}{s.stage.in, s.stage.out}
	return &prompt{s: s, terminal: term.NewTerminal(both, "")}
}

// line returns what is typed until enter is pressed; the end of input and
// Ctrl-C are io.EOF.
func (p *prompt) line(text string) (string, error) {
	fd := int(p.s.stage.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, before) }()
	if width, height, err := term.GetSize(int(p.s.stage.out.Fd())); err == nil && width > 0 && height > 0 {
		_ = p.terminal.SetSize(width, height)
	}
	p.terminal.SetPrompt(text)
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // a read from a terminal cannot be called off
		text, err := p.terminal.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		got <- answer{text, err}
	}()
	select {
	case x := <-got:
		return x.text, x.err
	case <-p.s.signals.stopping:
		return "", terminal.ErrStopped
	}
}

// interact evaluates what is typed until somebody has had enough. Mistakes
// are shown, and do not end it.
func (c *console) interact() error {
	p := newPrompt(c.s)
	var pending []byte
	for {
		text := "> "
		if len(pending) > 0 {
			text = ": "
		}
		line, err := p.line(text)
		switch {
		case errors.Is(err, io.EOF):
			c.s.printf("\n")
			return nil
		case err != nil:
			return failed
		}
		pending = append(append(pending, line...), '\n')
		whole, rest := syntax.Statements(pending)
		for _, statement := range whole {
			text := strings.TrimSpace(string(statement))
			if text == "exit" {
				return nil
			}
			if shown, ok := c.evaluate(text); ok {
				c.s.printf("%s\n\n", shown)
			}
		}
		pending = append(pending[:0], rest...)
		if c.s.signals.interrupted() {
			return failed
		}
	}
}
