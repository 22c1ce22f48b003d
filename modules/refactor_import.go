package modules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stokehq/stoke/modules/address"
)

// Import is an import block: stoke adopts an existing object.
type Import struct {
	To       ImportAddress
	ID       hcl.Expression
	ForEach  hcl.Expression // nil: once
	Provider *ProviderRef   // nil: that of the resource
	Range    hcl.Range
	ToRange  hcl.Range
}

// ImportAddress is the address of a resource instance whose keys may be
// expressions in terms of each.
type ImportAddress struct {
	Target address.Target // without keys
	// Keys of the module steps and, last, of the instance; nil where there is
	// none.
	Keys []hcl.Expression
}

var importSchema = newSchema([]string{"!to", "!id", "provider", "for_each"}, nil)

func (d *decoder) importBlock(block *hcl.Block) {
	content, diags := importSchema.all(block.Body)
	d.diags = append(d.diags, diags...)
	if diags.HasErrors() {
		return
	}
	to := content.Attributes["to"]
	i := &Import{ID: content.Attributes["id"].Expr, Range: block.DefRange, ToRange: to.Expr.Range()}
	if attr := content.Attributes["for_each"]; attr != nil {
		i.ForEach = attr.Expr
	}
	if attr := content.Attributes["provider"]; attr != nil {
		ref, ok := d.providerRef(attr.Expr)
		if !ok {
			return
		}
		i.Provider = &ref
	}
	expr, ok := d.unquoted(to.Expr)
	if !ok {
		return
	}
	var err error
	if i.To, err = importAddress(expr); err != nil {
		d.fail(&i.ToRange, "Invalid import address", "%s.", sentence(err))
		return
	}
	if i.To.Target.Resource.Mode == address.Data {
		d.fail(&i.ToRange, "Invalid import address", "Only managed resources can be imported; a data source is read anyway.")
		return
	}
	d.module.Imports = append(d.module.Imports, i)
}

// importAddress takes an address apart whose keys are any expressions.
func importAddress(expr hcl.Expression) (ImportAddress, error) {
	var names []string
	var keys []hcl.Expression // beside the name before them
	var walk func(expr hcl.Expression) error
	add := func(t hcl.Traversal) error {
		for _, step := range t {
			switch s := step.(type) {
			case hcl.TraverseRoot:
				names, keys = append(names, s.Name), append(keys, nil)
			case hcl.TraverseAttr:
				names, keys = append(names, s.Name), append(keys, nil)
			case hcl.TraverseIndex:
				if keys[len(keys)-1] != nil {
					return fmt.Errorf("the name %q has two keys", names[len(names)-1])
				}
				keys[len(keys)-1] = hcl.StaticExpr(s.Key, s.SrcRange)
			default:
				return fmt.Errorf("[*] stands for several objects; use for_each and a key for each")
			}
		}
		return nil
	}
	walk = func(expr hcl.Expression) error {
		if t, diags := hcl.AbsTraversalForExpr(expr); !diags.HasErrors() {
			return add(t)
		}
		switch e := expr.(type) {
		case *hclsyntax.RelativeTraversalExpr:
			if err := walk(e.Source); err != nil {
				return err
			}
			return add(e.Traversal)
		case *hclsyntax.IndexExpr:
			if err := walk(e.Collection); err != nil {
				return err
			}
			if keys[len(keys)-1] != nil {
				return fmt.Errorf("the name %q has two keys", names[len(names)-1])
			}
			keys[len(keys)-1] = e.Key
			return nil
		}
		return fmt.Errorf("the address of one object is needed, such as terraform_data.a or terraform_data.a[each.key]")
	}
	if err := walk(expr); err != nil {
		return ImportAddress{}, err
	}
	target, err := address.ParseTarget(strings.Join(names, "."))
	if err != nil {
		return ImportAddress{}, err
	}
	if target.Resource == nil {
		return ImportAddress{}, fmt.Errorf("this is a module; the address of a resource is needed, such as %s.TYPE.NAME", target)
	}
	return ImportAddress{Target: target, Keys: keysInPlace(target, names, keys)}, checkKeyPlaces(target, keys)
}

// keysInPlace picks the keys that follow module names and the resource's name.
func keysInPlace(t address.Target, names []string, keys []hcl.Expression) []hcl.Expression {
	var out []hcl.Expression
	for i := range t.Steps {
		out = append(out, keys[2*i+1])
	}
	return append(out, keys[len(names)-1])
}

func checkKeyPlaces(t address.Target, keys []hcl.Expression) error {
	allowed := []int{len(keys) - 1}
	for i := range t.Steps {
		allowed = append(allowed, 2*i+1)
	}
	for i, key := range keys {
		if key != nil && !slices.Contains(allowed, i) {
			return fmt.Errorf("a key follows the name of a module or of a resource")
		}
	}
	return nil
}

// checkNoImports reports import blocks outside of the root module, the only one
// that may have them.
func (l *loader) checkNoImports(call *Call) {
	for _, i := range call.Module.Imports {
		l.fail(&i.Range, "Import block outside the root module", "Only the root module can import. Move the block there; its address then begins with module.%s.", call.Name)
	}
}

// checkImports finds import blocks that contradict what is declared, whatever
// its values. The root module is loaded with all that it calls. A resource
// that is nowhere may still be generated, if it is the root module's own.
func (l *loader) checkImports(root *Module) {
	broken := l.diags.HasErrors() // what is missing may be what could not be read
	for _, i := range root.Imports {
		m, to := root, i.To.Target
		for n, step := range to.Steps {
			call := m.Calls[step.Name]
			if m = nil; call == nil {
				break
			}
			l.checkImportKey(i, n, call.Count, call.ForEach)
			if m = call.Module; m == nil {
				break
			}
		}
		var r *Resource
		if m != nil {
			r = m.Resources[ResourceName{to.Resource.Mode, to.Resource.Type, to.Resource.Name}]
		}
		switch {
		case r != nil:
			l.checkImportKey(i, len(to.Steps), r.Count, r.ForEach)
			if i.Provider != nil {
				l.fail(&i.Provider.Range, "Import with its own provider",
					"The argument \"provider\" serves imports whose configuration is generated. %s is declared at %s: name the provider there.", to, r.Range)
			}
		case len(to.Steps) > 0 && !broken:
			l.fail(&i.ToRange, "Import target is not configured", "The configuration does not have %s. Every imported object needs its resource block.", to)
		}
	}
}

// checkImportKey compares whether there is a key, the n-th of the address,
// with whether there has to be one.
func (l *loader) checkImportKey(i *Import, n int, count, forEach hcl.Expression) {
	repeated := count != nil || forEach != nil
	switch key := i.To.Keys[n]; {
	case key == nil && repeated:
		l.fail(&i.ToRange, "Invalid import address", "The resource or module %s has count or for_each: add the key of "+
			"the instance, such as [0] or [\"key\"].", i.To.Target)
	case key != nil && !repeated:
		l.fail(&i.ToRange, "Invalid import address", "The resource or module %s has neither count nor for_each, and "+
			"so no instance with a key. Leave the key out.", i.To.Target)
	}
}
