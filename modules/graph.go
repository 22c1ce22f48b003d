package modules

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
)

// NodeKind is the kind of a node of a reference graph.
type NodeKind uint8

const (
	ResourceNode NodeKind = iota
	VariableNode
	LocalNode
	OutputNode
	ProviderNode
	CallNode  // what a module call's count, for_each and depends_on need
	WholeNode // everything in a module, for depends_on = [module.m]
	ValueNode // all outputs of a module, for module.m as a whole
)

// GraphNode is something that is declared, with what it refers to.
type GraphNode struct {
	Kind   NodeKind
	Module string // module.a.module.b, "" for the root
	Name   string // within its module: terraform_data.a, var.x; "" for the last three kinds
	Needs  []*GraphNode
}

// Address is the name of the node in the whole tree of modules.
func (n *GraphNode) Address() string {
	switch n.Kind {
	case CallNode:
		return n.Module + " (expand)"
	case WholeNode:
		return n.Module + " (close)"
	case ValueNode:
		return n.Module + " (outputs)"
	}
	if n.Module == "" {
		return n.Name
	}
	return n.Module + "." + n.Name
}

// Graph is what the declarations below a module refer to, as they are
// written: nothing is evaluated, and a module call is one node however many
// instances it has. Nodes come in no order.
func Graph(root *Module) []*GraphNode {
	var b graphBuilder
	s := b.scope(root, nil, nil, "")
	b.connect(s)
	return b.nodes
}

type graphBuilder struct {
	nodes []*GraphNode
}

// graphScope is one module of the tree with its nodes.
type graphScope struct {
	module               *Module
	parent               *graphScope
	call                 *Call
	names                map[lang.Subject]*GraphNode
	outputs              map[string]*GraphNode
	providers            map[string]*GraphNode
	children             map[string]*graphScope
	enter, whole, values *GraphNode
}

func (b *graphBuilder) node(kind NodeKind, module, name string) *GraphNode {
	n := &GraphNode{Kind: kind, Module: module, Name: name}
	b.nodes = append(b.nodes, n)
	return n
}

// scope makes the nodes of a module and of those that it calls.
func (b *graphBuilder) scope(m *Module, parent *graphScope, call *Call, path string) *graphScope {
	s := &graphScope{
		module: m, parent: parent, call: call, names: map[lang.Subject]*GraphNode{}, outputs: map[string]*GraphNode{},
		providers: map[string]*GraphNode{}, children: map[string]*graphScope{},
	}
	if parent != nil {
		s.enter, s.whole, s.values = b.node(CallNode, path, ""), b.node(WholeNode, path, ""), b.node(ValueNode, path, "")
	}
	for name := range m.Variables {
		s.names[lang.Variable{Name: name}] = b.node(VariableNode, path, "var."+name)
	}
	for name := range m.Locals {
		s.names[lang.Local{Name: name}] = b.node(LocalNode, path, "local."+name)
	}
	for name := range m.Outputs {
		s.outputs[name] = b.node(OutputNode, path, "output."+name)
	}
	for name := range m.Resources {
		label := address.Resource{Mode: name.Mode, Type: name.Type, Name: name.Name}.String()
		s.names[lang.Resource{Mode: name.Mode, Type: name.Type, Name: name.Name}] = b.node(ResourceNode, path, label)
	}
	for key := range m.Providers {
		s.providers[key] = b.node(ProviderNode, path, "provider."+key)
	}
	for name, call := range m.Calls {
		if call.Module != nil {
			s.children[name] = b.scope(call.Module, s, call, strings.TrimPrefix(path+".module."+name, "."))
		}
	}
	return s
}

// connect finds out what each node of a scope, and of those below it, needs.
func (b *graphBuilder) connect(s *graphScope) {
	m := s.module
	for name := range m.Variables {
		if s.call == nil || s.call.Args[name] == nil {
			continue
		}
		s.parent.refer(s.names[lang.Variable{Name: name}], s.call.Args[name].Expr)
	}
	for name, l := range m.Locals {
		s.refer(s.names[lang.Local{Name: name}], l.Expr)
	}
	for name, o := range m.Outputs {
		n := s.outputs[name]
		s.refer(n, o.Value)
		s.await(n, o.DependsOn)
		s.check(n, o.Preconditions)
	}
	for key, p := range m.Providers {
		s.referTo(s.providers[key], bodyReferences(nil, p.Body))
	}
	for name, r := range m.Resources {
		s.connectResource(s.names[lang.Resource{Mode: name.Mode, Type: name.Type, Name: name.Name}], r)
	}
	for name, child := range s.children {
		call := m.Calls[name]
		if s.enter != nil {
			child.enter.Needs = append(child.enter.Needs, s.enter)
			s.whole.Needs = append(s.whole.Needs, child.whole)
		}
		s.refer(child.enter, call.Count, call.ForEach)
		s.await(child.enter, call.DependsOn)
		for _, o := range child.outputs {
			child.values.Needs = append(child.values.Needs, o)
		}
		b.connect(child)
	}
}

func (s *graphScope) connectResource(n *GraphNode, r *Resource) {
	if s.enter != nil {
		n.Needs = append(n.Needs, s.enter)
		s.whole.Needs = append(s.whole.Needs, n)
	}
	if p := s.provider(r.Provider); p != nil {
		n.Needs = append(n.Needs, p)
	}
	s.refer(n, r.Count, r.ForEach)
	s.refer(n, r.Lifecycle.ReplaceTriggeredBy...)
	s.refer(n, r.Lifecycle.Dynamic.Expressions()...)
	s.await(n, r.DependsOn)
	s.referTo(n, bodyReferences(nil, r.Body))
	s.check(n, r.Lifecycle.Preconditions)
	s.check(n, r.Lifecycle.Postconditions)
}

// provider returns the block that configures a provider, which may be in a
// module further up; nil where there is none.
func (s *graphScope) provider(ref ProviderRef) *GraphNode {
	for s != nil {
		if n := s.providers[ref.Key()]; n != nil || s.call == nil {
			return n
		}
		if passed, ok := s.call.Providers[ref.Key()]; ok {
			ref = passed
		} else if ref.Alias != "" {
			return nil
		}
		s = s.parent
	}
	return nil
}

func (s *graphScope) check(n *GraphNode, checks []*Check) {
	for _, c := range checks {
		s.refer(n, c.Condition, c.ErrorMessage)
	}
}

func (s *graphScope) refer(n *GraphNode, exprs ...hcl.Expression) {
	for _, expr := range exprs {
		if expr != nil {
			s.referTo(n, expr.Variables())
		}
	}
}

// referTo notes what traversals name; what is not declared is no node.
func (s *graphScope) referTo(n *GraphNode, traversals []hcl.Traversal) {
	for _, t := range traversals {
		ref, diags := lang.ParseReference(t)
		if diags.HasErrors() {
			continue
		}
		needed := s.names[ref.Subject]
		if call, ok := ref.Subject.(lang.ModuleCall); ok {
			needed = s.children[call.Name].output(ref.Remaining)
		}
		n.need(needed)
	}
}

// await notes what a depends_on names: of a module, everything in it.
func (s *graphScope) await(n *GraphNode, traversals []hcl.Traversal) {
	for _, t := range traversals {
		ref, diags := lang.ParseReference(t)
		call, ok := ref.Subject.(lang.ModuleCall)
		if child := s.children[call.Name]; ok && child != nil && !diags.HasErrors() {
			n.need(child.whole)
			continue
		}
		s.referTo(n, []hcl.Traversal{t})
	}
}

func (n *GraphNode) need(other *GraphNode) {
	if other != nil && other != n {
		n.Needs = append(n.Needs, other)
	}
}

// output is what a reference to a module call is about: one output, or all of
// them.
func (s *graphScope) output(rest hcl.Traversal) *GraphNode {
	if s == nil {
		return nil
	}
	for _, step := range rest {
		if attr, ok := step.(hcl.TraverseAttr); ok {
			if o := s.outputs[attr.Name]; o != nil {
				return o
			}
			break
		}
	}
	return s.values
}

// bodyReferences lists what a body refers to, its blocks included. Without a
// schema only native syntax tells what is a block; elsewhere everything is an
// argument, which comes to the same.
func bodyReferences(into []hcl.Traversal, body hcl.Body) []hcl.Traversal {
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		attrs, _ := body.JustAttributes()
		for _, attr := range attrs {
			into = append(into, attr.Expr.Variables()...)
		}
		return into
	}
	for _, attr := range native.Attributes {
		into = append(into, attr.Expr.Variables()...)
	}
	for _, b := range native.Blocks {
		into = bodyReferences(into, b.Body)
	}
	return into
}
