package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/view"
)

type graphFlags struct {
	plan, kind, format string
	cycles             bool
	depth              int
}

func graphCommand(s *session) *cobra.Command {
	var f graphFlags
	cmd := &cobra.Command{
		Use:   "graph [options]",
		Short: "Draw the dependency graph",
		Long: `Writes a graph in the DOT language (for Graphviz) or in Mermaid's language (for
Markdown): the resources of the configuration and the references between them.
With -plan it shows the operations of a saved plan and their order.

  stoke graph | dot -Tsvg > graph.svg`,
		Args: atMost(0, ""),
	}
	cmd.Flags().StringVar(&f.plan, "plan", "", "Draw the operations of the saved plan `FILE`.")
	cmd.Flags().StringVar(&f.kind, "type", "", "Draw everything that takes part in an operation, variables and outputs too: `TYPE` is plan, plan-refresh-only, plan-destroy or apply.")
	cmd.Flags().StringVar(&f.format, "format", "dot", "The language to write: `FORMAT` is dot or mermaid.")
	cmd.Flags().BoolVar(&f.cycles, "draw-cycles", false, "Accepted for Terraform's sake; a cycle is drawn as a cycle.")
	cmd.Flags().IntVar(&f.depth, "module-depth", -1, "Accepted for Terraform's sake.")
	_ = cmd.Flags().MarkHidden("module-depth") //nolint:errcheck // it is defined one line above
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		drawing, err := s.graph(cmd.Context(), f)
		if err != nil {
			return err
		}
		return f.writer(drawing)(s.results)
	}
	return cmd
}

func (f *graphFlags) check(cmd *cobra.Command) error {
	fail := func(text string) error { return &usageError{path: cmd.CommandPath(), err: errors.New(text)} }
	switch f.kind {
	case "", "plan", "plan-refresh-only", "plan-destroy", "apply":
	default:
		return fail("-type is plan, plan-refresh-only, plan-destroy or apply, not \"" + f.kind + "\"")
	}
	switch {
	case f.format != "dot" && f.format != "mermaid":
		return fail("-format is dot or mermaid, not \"" + f.format + "\"")
	case f.plan != "" && f.kind != "" && f.kind != "apply":
		return fail("a saved plan has the graph of its apply only: leave -type out")
	}
	return nil
}

func (f *graphFlags) writer(g *view.Graph) func(io.Writer) error {
	switch {
	case f.format == "mermaid":
		return g.Mermaid
	case f.kind != "" && f.plan == "":
		return g.OperationDOT
	}
	return g.DOT
}

func (s *session) graph(ctx context.Context, f graphFlags) (*view.Graph, error) {
	if f.plan != "" {
		pl, err := s.readPlan(ctx, f.plan)
		if err != nil {
			s.complain(problem("Plan file cannot be read", "%s cannot be read as a saved plan: %s.", f.plan, err))
			return nil, failed
		}
		return view.PlanGraph(pl), nil
	}
	root, err := s.load(f.kind == "plan-destroy")
	if err != nil {
		return nil, err
	}
	switch f.kind {
	case "":
		return summaryGraph(root), nil
	case "plan-destroy":
		file, err := s.currentState(ctx, "")
		if err != nil {
			return nil, err
		}
		defer file.close()
		return destroyGraph(file.State()), nil
	}
	return wholeGraph(root), nil
}

// summaryGraph has the resources alone.
func summaryGraph(root *modules.Module) *view.Graph {
	g := &view.Graph{}
	nodes := modules.Summary(modules.Graph(root))
	for _, n := range nodes {
		label, shape := n.Name, "plaintext"
		switch {
		case n.Kind == modules.ResourceNode:
			shape = ""
		case label == "":
			label = n.Address()
		}
		g.Node(n.Address(), label, n.Module, shape)
	}
	connect(g, nodes, (*modules.GraphNode).Address)
	return g
}

// wholeGraph has everything that is declared, under the names that Terraform
// gives the nodes of its operations.
func wholeGraph(root *modules.Module) *view.Graph {
	g := &view.Graph{}
	nodes := modules.Graph(root)
	for _, n := range nodes {
		shape := ""
		switch n.Kind {
		case modules.ResourceNode:
			shape = "box"
		case modules.VariableNode:
			shape = "note"
		case modules.ProviderNode:
			shape = "diamond"
		}
		g.Node(operationName(n), n.Address(), n.Module, shape)
	}
	connect(g, nodes, operationName)
	return g
}

func operationName(n *modules.GraphNode) string {
	switch {
	case n.Kind == modules.VariableNode && n.Module == "", n.Kind == modules.ProviderNode, n.Name == "":
		return n.Address()
	}
	return n.Address() + " (expand)"
}

func connect(g *view.Graph, nodes []*modules.GraphNode, name func(*modules.GraphNode) string) {
	for _, n := range nodes {
		for _, needed := range n.Needs {
			g.Edge(name(n), name(needed))
		}
	}
}

// destroyGraph has what the state holds; a resource is ordered after the
// resources that depend on it.
func destroyGraph(st *state.State) *view.Graph {
	g := &view.Graph{}
	name := func(resource string) string { return resource + " (destroy)" }
	for _, a := range st.Instances() {
		resource := plan.Keyless(a.Resource)
		g.Node(name(resource), resource, "", "box")
	}
	for _, a := range st.Instances() {
		o := st.Current(a)
		if o == nil {
			continue
		}
		for _, needed := range o.Dependencies {
			g.Edge(name(needed), name(plan.Keyless(a.Resource)))
		}
	}
	return g
}
