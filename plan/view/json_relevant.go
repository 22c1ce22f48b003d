package view

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// jsonRelevant is a changed attribute that affects the plan.
type jsonRelevant struct {
	Resource  string `json:"resource"`
	Attribute []any  `json:"attribute"`
}

// relevance follows references from what changes to the attributes of
// resources that it rests on, by way of locals, variables and outputs.
type relevance struct {
	Configuration
	pending []moduleExpressions
	seen    map[string]bool
	found   map[string]jsonRelevant
}

// moduleExpressions is expressions and the module instance that they are written in.
type moduleExpressions struct {
	in    *frame // its path has the keys of instances
	exprs []hcl.Expression
}

// relevantJSON lists the attributes that changed objects and outputs rest on.
func relevantJSON(pl *plan.Plan, c Configuration) []jsonRelevant {
	if c.Root == nil {
		return nil
	}
	r := &relevance{Configuration: c, seen: map[string]bool{}, found: map[string]jsonRelevant{}}
	for _, change := range toChange(pl) {
		if change.Action == plan.NoOp || !r.first(string(change.Addr.Module), change.Addr.Resource.String()) {
			continue
		}
		f := r.frameOf(change.Addr.Module)
		if f == nil {
			continue
		}
		if decl := f.module.Resources[modules.ResourceName{Mode: change.Addr.Mode, Type: change.Addr.Type, Name: change.Addr.Name}]; decl != nil {
			r.follow(f, r.expressions(f, decl, "")...) // not what decides how many there are
		}
	}
	for _, o := range pl.Outputs {
		if decl := c.Root.Outputs[o.Name]; decl != nil && o.Action != plan.NoOp {
			r.follow(&frame{module: c.Root}, decl.Value)
		}
	}
	if pl.Mode != plan.Destroy && len(pl.Targets) == 0 {
		r.modules(&frame{module: c.Root}, instances(pl))
	}
	for len(r.pending) > 0 {
		next := r.pending[len(r.pending)-1]
		r.pending = r.pending[:len(r.pending)-1]
		refs, _ := lang.References(next.exprs...)
		for _, ref := range refs {
			r.reference(next.in, ref)
		}
	}
	out := make([]jsonRelevant, 0, len(r.found))
	for _, key := range sortedKeys(r.found) {
		out = append(out, r.found[key])
	}
	return out
}

// instances are the keys of the module instances that the plan has objects of,
// by the module instance and the name that they are called with.
func instances(pl *plan.Plan) map[string][]address.Key {
	keys := make(map[string][]address.Key)
	seen := make(map[address.Module]bool)
	for _, c := range pl.Changes {
		for m := c.Addr.Module; m != "" && !seen[m]; {
			seen[m] = true
			parent, call := m.Caller()
			name := string(parent) + "\x00" + call.Name
			keys[name] = append(keys[name], call.Key)
			m = parent
		}
	}
	return keys
}

// modules follows the outputs of the modules below one. They are not part of a
// plan and therefore count as changed.
func (r *relevance) modules(f *frame, keys map[string][]address.Key) {
	for _, name := range sortedKeys(f.module.Calls) {
		call := f.module.Calls[name]
		each := keys[f.path+"\x00"+name]
		if call.Count == nil && call.ForEach == nil {
			each = []address.Key{{}}
		}
		for _, key := range each {
			child := f.child(name, key)
			if child == nil {
				continue
			}
			for _, output := range sortedKeys(child.module.Outputs) {
				if r.first(child.path, "output."+output) {
					r.follow(child, child.module.Outputs[output].Value)
				}
			}
			r.modules(child, keys)
		}
	}
}

// first reports whether something is met for the first time.
func (r *relevance) first(path, name string) bool {
	key := path + "\x00" + name
	again := r.seen[key]
	r.seen[key] = true
	return !again
}

func (r *relevance) follow(f *frame, exprs ...hcl.Expression) {
	r.pending = append(r.pending, moduleExpressions{f, exprs})
}

// frameOf finds a module instance; nil where the configuration has none.
func (r *relevance) frameOf(m address.Module) *frame {
	f := &frame{module: r.Root}
	for _, step := range m.Steps() {
		if f = f.child(step.Name, step.Key); f == nil {
			return nil
		}
	}
	return f
}

func (f *frame) child(name string, key address.Key) *frame {
	call := f.module.Calls[name]
	if call == nil || call.Module == nil {
		return nil
	}
	return &frame{module: call.Module, call: call, parent: f, path: string(address.Module(f.path).Child(name, key))}
}

func (r *relevance) reference(f *frame, ref lang.Reference) {
	switch s := ref.Subject.(type) {
	case lang.Local:
		if l := f.module.Locals[s.Name]; l != nil && r.first(f.path, s.String()) {
			r.follow(f, l.Expr)
		}
	case lang.Variable:
		if f.call == nil || !r.first(f.path, s.String()) {
			return
		}
		if arg := f.call.Args[s.Name]; arg != nil {
			r.follow(f.parent, arg.Expr)
		}
	case lang.ModuleCall:
		r.call(f, s, ref.Remaining)
	case lang.Resource:
		r.resource(f, s, ref.Remaining)
	}
}

// call follows the output that a reference names, or all of them.
func (r *relevance) call(f *frame, s lang.ModuleCall, rest hcl.Traversal) {
	key, rest := instanceKey(rest)
	child := f.child(s.Name, key)
	if child == nil {
		return
	}
	name, _ := attributeName(rest)
	for _, output := range sortedKeys(child.module.Outputs) {
		if (name == "" || name == output) && r.first(child.path, "output."+output) {
			r.follow(child, child.module.Outputs[output].Value)
		}
	}
}

// resource notes an attribute, and follows what it is set to.
func (r *relevance) resource(f *frame, s lang.Resource, rest hcl.Traversal) {
	decl := f.module.Resources[modules.ResourceName{Mode: s.Mode, Type: s.Type, Name: s.Name}]
	if decl == nil { // the iterator of a dynamic block looks the same
		return
	}
	var key address.Key
	if decl.Count != nil || decl.ForEach != nil {
		key, rest = instanceKey(rest)
	}
	addr := address.Resource{Module: address.Module(f.path), Mode: s.Mode, Type: s.Type, Name: s.Name}.Instance(key).String()
	if !r.first(addr, traversalText(rest)) {
		return
	}
	r.found[addr+"\x00"+traversalText(rest)] = jsonRelevant{addr, attributePath(rest)}
	name, _ := attributeName(rest)
	r.follow(f, r.expressions(f, decl, name)...)
}

// expressions returns the expressions of a resource, or of one of its arguments
// or blocks.
func (r *relevance) expressions(f *frame, decl *modules.Resource, name string) []hcl.Expression {
	var exprs []hcl.Expression
	schema := r.Schema(r.Source(f.module, decl.Provider.Name))
	if schema == nil {
		return exprs
	}
	types := schema.Resources
	if decl.Mode == address.Data {
		types = schema.Data
	}
	rs := types[decl.Type]
	if rs == nil {
		return exprs
	}
	block := rs.Block
	if name != "" {
		one := &providers.Block{}
		if a, ok := block.Attributes[name]; ok {
			one.Attributes = map[string]*providers.Attribute{name: a}
		}
		if b, ok := block.Blocks[name]; ok {
			one.Blocks = map[string]*providers.NestedBlock{name: b}
		}
		block = one
	}
	return withRepetition(decl, append(exprs, bodyExpressions(decl.Body, block)...))
}

// withRepetition adds the count or for_each of a resource to expressions that
// use what they stand for.
func withRepetition(decl *modules.Resource, exprs []hcl.Expression) []hcl.Expression {
	refs, _ := lang.References(exprs...)
	for _, ref := range refs {
		switch ref.Subject.(type) {
		case lang.CountIndex, lang.EachKey, lang.EachValue:
			if decl.Count != nil {
				return append(exprs, decl.Count)
			}
			return append(exprs, decl.ForEach)
		}
	}
	return exprs
}

// bodyExpressions returns the expressions of a block and of the blocks in it,
// written out or dynamic.
func bodyExpressions(body hcl.Body, block *providers.Block) []hcl.Expression {
	if body == nil || block == nil {
		return nil
	}
	schema := bodySchema(block)
	schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: "dynamic", LabelNames: []string{"type"}})
	content, _, _ := body.PartialContent(schema)
	var exprs []hcl.Expression
	for _, name := range sortedKeys(content.Attributes) {
		exprs = append(exprs, content.Attributes[name].Expr)
	}
	for _, b := range content.Blocks {
		if b.Type != "dynamic" {
			exprs = append(exprs, bodyExpressions(b.Body, block.Blocks[b.Type].Block)...)
			continue
		}
		nested := block.Blocks[b.Labels[0]]
		if nested == nil {
			continue
		}
		made, _, _ := b.Body.PartialContent(&hcl.BodySchema{
			Attributes: []hcl.AttributeSchema{{Name: "for_each"}}, Blocks: []hcl.BlockHeaderSchema{{Type: "content"}},
		})
		if each := made.Attributes["for_each"]; each != nil {
			exprs = append(exprs, each.Expr)
		}
		for _, inner := range made.Blocks {
			exprs = append(exprs, bodyExpressions(inner.Body, nested.Block)...)
		}
	}
	return exprs
}

// instanceKey takes the key of an instance from the front of a traversal.
func instanceKey(rest hcl.Traversal) (address.Key, hcl.Traversal) {
	if len(rest) == 0 {
		return address.Key{}, rest
	}
	index, ok := rest[0].(hcl.TraverseIndex)
	switch {
	case !ok || !index.Key.IsKnown() || index.Key.IsNull():
		return address.Key{}, rest
	case index.Key.Type() == cty.String:
		return address.StringKey(index.Key.AsString()), rest[1:]
	case index.Key.Type() == cty.Number:
		n, _ := index.Key.AsBigFloat().Int64()
		return address.IntKey(int(n)), rest[1:]
	}
	return address.Key{}, rest
}

// attributeName is the attribute that a traversal begins with.
func attributeName(rest hcl.Traversal) (string, bool) {
	if len(rest) == 0 {
		return "", false
	}
	attr, ok := rest[0].(hcl.TraverseAttr)
	return attr.Name, ok
}

func attributePath(rest hcl.Traversal) []any {
	path := make([]any, 0, len(rest))
	for _, step := range rest {
		switch s := step.(type) {
		case hcl.TraverseAttr:
			path = append(path, s.Name)
		case hcl.TraverseIndex:
			if x, ok := jsonValue(s.Key); ok {
				path = append(path, x)
			}
		default:
			return path
		}
	}
	return path
}
