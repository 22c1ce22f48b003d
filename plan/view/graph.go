package view

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Graph is a drawing of what needs what.
type Graph struct {
	nodes []*drawnNode
	byID  map[string]int
	edges [][2]int
}

type drawnNode struct {
	id, label, group string
	shape            string // of DOT; "" for a box
}

// Node adds a node unless there is one of that name. Group is the module that
// it is drawn in.
func (g *Graph) Node(id, label, group, shape string) {
	if g.byID == nil {
		g.byID = map[string]int{}
	}
	if _, ok := g.byID[id]; !ok {
		g.byID[id] = len(g.nodes)
		g.nodes = append(g.nodes, &drawnNode{id: id, label: label, group: group, shape: shape})
	}
}

// Edge adds an edge: one node needs another. Both have been added.
func (g *Graph) Edge(from, to string) {
	f, ok := g.byID[from]
	t, ok2 := g.byID[to]
	if ok && ok2 {
		g.edges = append(g.edges, [2]int{f, t})
	}
}

// sorted orders nodes by their groups and names, and edges by their nodes.
func (g *Graph) sorted() {
	order := make([]int, len(g.nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := g.nodes[a], g.nodes[b]
		if c := strings.Compare(x.group, y.group); c != 0 {
			return c
		}
		return strings.Compare(x.id, y.id)
	})
	place, nodes := make([]int, len(order)), make([]*drawnNode, len(order))
	for i, old := range order {
		place[old], nodes[i] = i, g.nodes[old]
	}
	for i, e := range g.edges {
		g.edges[i] = [2]int{place[e[0]], place[e[1]]}
	}
	slices.SortFunc(g.edges, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return a[1] - b[1]
	})
	g.edges = slices.Compact(g.edges)
	g.nodes = nodes
	for i, n := range nodes {
		g.byID[n.id] = i
	}
}

// groups calls f for the nodes of each group, in order.
func (g *Graph) groups(f func(group string, from, to int)) {
	for from := 0; from < len(g.nodes); {
		to := from
		for to < len(g.nodes) && g.nodes[to].group == g.nodes[from].group {
			to++
		}
		f(g.nodes[from].group, from, to)
		from = to
	}
}

// DOT writes the graph for Graphviz, with the modules as clusters.
func (g *Graph) DOT(out io.Writer) error {
	g.sorted()
	w := bufio.NewWriter(out)
	fmt.Fprint(w, "digraph G {\n  rankdir = \"RL\";\n  node [shape = rect, fontname = \"sans-serif\"];\n")
	g.groups(func(group string, from, to int) {
		indent := "  "
		if group != "" {
			fmt.Fprintf(w, "  subgraph %s {\n    label = %s\n    fontname = \"sans-serif\"\n", dotText("cluster_"+group), dotText(group))
			indent = "    "
		}
		for _, n := range g.nodes[from:to] {
			shape := ""
			if n.shape != "" {
				shape = ", shape=" + n.shape
			}
			fmt.Fprintf(w, "%s%s [label=%s%s];\n", indent, dotText(n.id), dotText(n.label), shape)
		}
		if group != "" {
			fmt.Fprint(w, "  }\n")
		}
	})
	for _, e := range g.edges {
		fmt.Fprintf(w, "  %s -> %s;\n", dotText(g.nodes[e[0]].id), dotText(g.nodes[e[1]].id))
	}
	fmt.Fprint(w, "}\n")
	return w.Flush()
}

// OperationDOT writes the graph in the form of Terraform's operation graphs:
// every node with its address, in one subgraph.
func (g *Graph) OperationDOT(out io.Writer) error {
	g.sorted()
	w := bufio.NewWriter(out)
	fmt.Fprint(w, "digraph {\n\tcompound = \"true\"\n\tnewrank = \"true\"\n\tsubgraph \"root\" {\n")
	for _, n := range g.nodes {
		if n.shape != "" {
			fmt.Fprintf(w, "\t\t%s [label = %s, shape = %s]\n", dotText("[root] "+n.id), dotText(n.label), dotText(n.shape))
		}
	}
	for _, e := range g.edges {
		fmt.Fprintf(w, "\t\t%s -> %s\n", dotText("[root] "+g.nodes[e[0]].id), dotText("[root] "+g.nodes[e[1]].id))
	}
	fmt.Fprint(w, "\t}\n}\n")
	return w.Flush()
}

// Mermaid writes the graph for Markdown files, which show it as it is.
func (g *Graph) Mermaid(out io.Writer) error {
	g.sorted()
	w := bufio.NewWriter(out)
	fmt.Fprint(w, "flowchart RL\n")
	g.groups(func(group string, from, to int) {
		indent := "  "
		if group != "" {
			fmt.Fprintf(w, "  subgraph m%d [\"%s\"]\n", from, mermaidText(group))
			indent = "    "
		}
		for i, n := range g.nodes[from:to] {
			start, end := "[", "]"
			if n.shape != "" && n.shape != "box" {
				start, end = "([", "])"
			}
			fmt.Fprintf(w, "%sn%d%s\"%s\"%s\n", indent, from+i, start, mermaidText(n.label), end)
		}
		if group != "" {
			fmt.Fprint(w, "  end\n")
		}
	})
	for _, e := range g.edges {
		fmt.Fprintf(w, "  n%d --> n%d\n", e[0], e[1])
	}
	return w.Flush()
}

// dotText is a text in DOT's quotes.
func dotText(text string) string {
	return `"` + eachLine(text, `\n`, func(line string) string {
		return strings.ReplaceAll(strings.ReplaceAll(line, `\`, `\\`), `"`, `\"`)
	}) + `"`
}

// mermaidText is a text between Mermaid's quotes, which knows HTML's entities
// with another sign before them.
func mermaidText(text string) string {
	entities := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;")
	return eachLine(text, "<br>", entities.Replace)
}

func eachLine(text, end string, escape func(string) string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = escape(printable(line))
	}
	return strings.Join(lines, end)
}
