package main

import (
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/view"
)

// jsonDisplay writes one JSON object per line, for pipelines.
type jsonDisplay struct {
	s      *session
	stream *view.Stream
}

func newJSONDisplay(s *session) *jsonDisplay {
	return &jsonDisplay{s: s, stream: view.NewStream(s.results, time.Now, version)}
}

// speakJSON has all that follows written as JSON.
func (s *session) speakJSON() {
	if _, is := s.display().(*jsonDisplay); !is {
		s.showOn(newJSONDisplay(s))
	}
}

// streams reports whether a command line asks for a stream of JSON: mistakes
// in the line itself belong into it too.
func streams(args []string) bool {
	switch {
	case len(args) == 0 || slices.ContainsFunc(args, func(a string) bool { return strings.TrimLeft(a, "-") == "help" || a == "-h" }):
		return false
	case args[0] == "plan" || args[0] == "apply" || args[0] == "destroy" || args[0] == "refresh":
		return slices.ContainsFunc(args, func(a string) bool { return a == "-json" || a == "--json" })
	}
	return false
}

// withJSON gives a command that prints messages the option -json.
func (s *session) withJSON(cmd *cobra.Command) *cobra.Command {
	var asJSON bool
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print one JSON object per line, as Terraform does.")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if asJSON {
			s.speakJSON()
		}
		return run(cmd, args)
	}
	return cmd
}

// lines writes what a command prints for people, a message for each paragraph.
func (d *jsonDisplay) lines(text string) {
	for _, paragraph := range strings.Split(text, "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
			d.stream.Init(paragraph)
		}
	}
}

func (d *jsonDisplay) begin() plan.Listener  { return d.s.logs.listen(d.stream.Listen) }
func (d *jsonDisplay) end()                  {}
func (d *jsonDisplay) printText(text string) { d.stream.Log(text) }
func (d *jsonDisplay) plan(pl *plan.Plan)    { d.stream.Plan(pl) }

func (d *jsonDisplay) diagnostics(diags hcl.Diagnostics) { d.stream.Diagnostics(diags, d.s.source()) }

func (d *jsonDisplay) applied(r *run.Report, mode plan.Mode, _ bool) { d.stream.Applied(r, mode) }

func (d *jsonDisplay) outputs(outputs map[string]state.Output) { d.stream.Outputs(outputs) }

func (d *jsonDisplay) round(n int, r *run.Report, more bool) { d.stream.Round(n, r, more) }
func (d *jsonDisplay) reportDeferrals(pl *plan.Plan)         { d.stream.ReportDeferrals(pl) }
