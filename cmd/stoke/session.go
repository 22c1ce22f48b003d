package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/cmd/stoke/terminal"
	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan/view"
)

// session is one run of the command line.
type session struct {
	stage
	results *outlet // the standard output
	root    *cobra.Command
	answers *terminal.Answers
	logs    *logs
	signals *signals
	files   *modules.Files // what diagnostics quote

	draft     *draftFile // one more file of the folder; nil: none
	configDir string     // -config; "": the working directory
	cli       *cliConfig // nil before it was read

	noColor bool
	compact bool        // -compact-warnings
	concise bool        // -concise
	looking atomic.Bool // the command only looks: an interrupt ends it at once

	mu      sync.Mutex
	current display
}

func newSession(st stage) *session {
	s := &session{stage: st, results: &outlet{file: st.out}, files: modules.NewFiles(), answers: terminal.NewAnswers(st.in)}
	s.showOn(&textDisplay{s: s})
	return s
}

// display is who reads along. Signals come at any time, hence the lock.
func (s *session) display() display {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

func (s *session) showOn(d display) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = d
}

// stdout and stderr are the printers; they are made when they are used,
// because -no-color is known by then.
func (s *session) stdout() *view.Printer {
	p := s.printer(s.stage.out, s.noColor)
	p.Out = s.results
	return p
}

func (s *session) stderr() *view.Printer { return s.printer(s.stage.err, s.noColor) }

// source gives diagnostics the text of the files that were read.
func (s *session) source() view.Sources {
	content := s.files.Content()
	return func(name string) []byte { return content[name] }
}

// complain prints errors and warnings.
func (s *session) complain(diags ...*hcl.Diagnostic) {
	s.display().diagnostics(diags)
}

// hint says where to read more about a command.
func (s *session) hint(path string) {
	if path == "" {
		path = "stoke"
	}
	fmt.Fprintf(s.stage.err, "\nFor more about this command, run:\n  %s -help\n", path)
}

// printf prints text of a command's own on its standard output.
func (s *session) printf(format string, args ...any) {
	switch d := s.display().(type) {
	case *jsonDisplay:
		d.lines(fmt.Sprintf(format, args...))
		return
	case *textDisplay:
		d.endDiagnostics()
	}
	fmt.Fprintf(s.results, format, args...)
}

func diagnostic(severity hcl.DiagnosticSeverity, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: fmt.Sprintf(format, args...)}
}

// interruptible returns a context that the second Ctrl-C ends; the first one
// closes s.signals.stopping.
func (s *session) interruptible(ctx context.Context) (context.Context, func()) {
	s.signals = &signals{stopping: make(chan struct{})}
	return s.signals.watch(ctx, func(text string) {
		if !s.looking.Load() { // else there is nothing that has to be finished
			s.display().printText(text)
		}
	})
}
