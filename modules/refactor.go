package modules

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/syntax"
)

// Refactorings are the blocks of a module that tell of objects which change
// their address, come in, or leave, without being made or destroyed.
type Refactorings struct {
	Moved   []*Moved
	Imports []*Import
	Removed []*Removed
}

// Moved says that what was known by one address is known by another now. Both
// are relative to the module and of the same kind: modules or resources.
type Moved struct {
	From, To           address.Target
	Range              hcl.Range
	FromRange, ToRange hcl.Range
}

// Removed is a removed block: a resource or module left the configuration, and
// its objects are destroyed or forgotten.
type Removed struct {
	From      address.Target // without instance keys, relative to the module
	Destroy   bool           // false: the objects are forgotten and left alone
	Range     hcl.Range
	FromRange hcl.Range
}

var movedSchema = newSchema([]string{"!from", "!to"}, nil)

func (d *decoder) moved(block *hcl.Block) {
	content, diags := movedSchema.all(block.Body)
	d.diags = append(d.diags, diags...)
	from, ok := d.target(content.Attributes["from"])
	to, ok2 := d.target(content.Attributes["to"])
	if !ok || !ok2 {
		return
	}
	m := &Moved{
		From: from, To: to, Range: block.DefRange,
		FromRange: content.Attributes["from"].Expr.Range(), ToRange: content.Attributes["to"].Expr.Range(),
	}
	switch {
	case (from.Resource == nil) != (to.Resource == nil):
		d.fail(&m.Range, "Invalid moved addresses", "One of %s and %s is a module and the other is not. Both must be modules, or both resources.", from, to)
	case from.Resource != nil && (from.Resource.Mode == address.Data || to.Resource.Mode == address.Data):
		d.fail(&m.Range, "Data sources cannot move", "Nothing of a data source has to be kept: it is read again under "+
			"any address. Remove the block.")
	case from.String() == to.String():
		d.fail(&m.Range, "Redundant move", "The block says that %s moves to the same address. Remove it.", from)
	default:
		d.module.Moved = append(d.module.Moved, m)
	}
}

// target reads the address of a module, a resource or an instance.
func (d *decoder) target(attr *hcl.Attribute) (address.Target, bool) {
	if attr == nil {
		return address.Target{}, false
	}
	t, diags := hcl.AbsTraversalForExpr(attr.Expr)
	if diags.HasErrors() {
		d.fail(attr.Expr.Range().Ptr(), "Invalid address",
			"The argument %q must be an address without quotes, such as terraform_data.a[\"key\"] or module.m, whose keys are plain text or numbers.", attr.Name)
		return address.Target{}, false
	}
	text, err := traversalText(t)
	var target address.Target
	if err == nil {
		target, err = address.ParseTarget(text)
	}
	if err != nil {
		d.fail(attr.Expr.Range().Ptr(), "Invalid address", "%s.", sentence(err))
		return address.Target{}, false
	}
	return target, true
}

func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// traversalText writes a traversal as an address is written.
func traversalText(t hcl.Traversal) (string, error) {
	var b strings.Builder
	for _, step := range t {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			key, err := KeyOf(s.Key)
			if err != nil {
				return "", err
			}
			b.WriteString(key.String())
		default:
			return "", fmt.Errorf("[*] stands for several objects; name one, or leave it out to name all")
		}
	}
	return b.String(), nil
}

// KeyOf is the instance key that a known value stands for.
func KeyOf(v cty.Value) (address.Key, error) {
	switch {
	case v.IsNull() || !v.IsKnown():
	case v.Type() == cty.String:
		return address.StringKey(v.AsString()), nil
	case v.Type() == cty.Number:
		n, acc := v.AsBigFloat().Int64()
		if acc == 0 && n >= 0 && n <= 1<<31-1 {
			return address.IntKey(int(n)), nil
		}
	}
	return address.Key{}, fmt.Errorf("an instance key is a text or a whole number from 0 on")
}

var (
	removedSchema          = newSchema([]string{"!from"}, map[string][]string{"lifecycle": nil, "provisioner": {"type"}, "connection": nil})
	removedLifecycleSchema = newSchema([]string{"destroy"}, nil)
)

func (d *decoder) removed(block *hcl.Block) {
	content, diags := removedSchema.all(block.Body)
	d.diags = append(d.diags, diags...)
	r := &Removed{Destroy: true, Range: block.DefRange}
	seen := false
	for _, b := range content.Blocks {
		if b.Type != "lifecycle" {
			d.fail(&b.DefRange, "Provisioners are not supported", "Blocks of type %q run commands that no plan can show. Destroy the object first, then remove it.", b.Type)
			continue
		}
		if seen {
			d.fail(&b.DefRange, "Duplicate lifecycle", "A removed block has one lifecycle block.")
		}
		seen = true
		inner, diags := removedLifecycleSchema.all(b.Body)
		d.diags = append(d.diags, diags...)
		r.Destroy = d.flag(inner.Attributes["destroy"], true)
	}
	from, ok := d.target(content.Attributes["from"])
	if !ok {
		return
	}
	r.From, r.FromRange = from, content.Attributes["from"].Expr.Range()
	switch {
	case from.Resource != nil && from.Resource.Mode == address.Data:
		d.fail(&r.FromRange, "Data source cannot be removed", "Nothing of a data source is ever destroyed. Remove its data block, and this one.")
	case from.String() != from.Keyless().String():
		d.fail(&r.FromRange, "Instance keys not allowed", "A removed block is about all instances. Write %s, or change count or for_each to remove some.", from.Keyless())
	default:
		d.module.Removed = append(d.module.Removed, r)
	}
}

// checkRefactorings finds blocks that contradict each other or what is
// declared.
func (d *decoder) checkRefactorings() {
	for _, r := range d.module.Removed {
		if what := d.stillDeclared(r.From); what != nil {
			d.fail(&r.Range, "Removed object still declared", "The block says that %s was removed, but it is declared at %s. Remove one of the two.", r.From, *what)
		}
	}
}

// stillDeclared says where something of the module itself is declared; what
// is in other modules is their business.
func (d *decoder) stillDeclared(t address.Target) *hcl.Range {
	switch {
	case t.Resource != nil && len(t.Steps) == 0:
		if r := d.module.Resources[ResourceName{t.Resource.Mode, t.Resource.Type, t.Resource.Name}]; r != nil {
			return &r.Range
		}
	case t.Resource == nil && len(t.Steps) == 1:
		if c := d.module.Calls[t.Steps[0].Name]; c != nil {
			return &c.Range
		}
	}
	return nil
}

// Extend returns the root module with the blocks of one more file, as if it
// had been there when the module was loaded.
func Extend(root *Module, files *Files, name string, content []byte) (*Module, hcl.Diagnostics) {
	files.addConfiguration(name, content)
	body, diags := syntax.Parse(name, content)
	if diags.HasErrors() {
		return root, diags
	}
	m := root.atPath(root.Path)
	d := &decoder{module: m}
	d.decode([]*file{{name: name, body: body}})
	return m, append(diags, d.diags...)
}
