package view

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
)

// arrow is the symbol of an action as the legend and the header lines have
// it, three columns wide.
func (p *Printer) arrow(a plan.Action) string {
	switch a {
	case plan.Create:
		return p.paintText(green, "  +")
	case plan.Read:
		return p.paintText(cyan, " <=")
	case plan.Update:
		return p.paintText(yellow, "  ~")
	case plan.Delete:
		return p.paintText(red, "  -")
	case plan.DeleteThenCreate:
		return p.paintText(red, "-") + "/" + p.paintText(green, "+")
	case plan.CreateThenDelete:
		return p.paintText(green, "+") + "/" + p.paintText(red, "-")
	case plan.Forget:
		return p.paintText(red, "  .")
	}
	return "   "
}

// legend is what the symbol means.
func legend(a plan.Action) string {
	switch a {
	case plan.Create:
		return "create"
	case plan.Read:
		return "read (data sources)"
	case plan.Update:
		return "update in-place"
	case plan.Delete:
		return "destroy"
	case plan.DeleteThenCreate:
		return "destroy and then create replacement"
	case plan.CreateThenDelete:
		return "create replacement and then destroy"
	case plan.Forget:
		return "forget (the object stays)"
	}
	return "nothing"
}

// fate is the end of the sentence that begins with the object's address.
func (p *Printer) fate(c *plan.Change) string {
	switch {
	case c.Action == plan.Create:
		return "will be created"
	case c.Action == plan.Read:
		return "will be read during apply"
	case c.Action == plan.Update:
		return "will be updated in-place"
	case c.Action == plan.Delete:
		return "will be " + p.paintText(bold+red, "destroyed")
	case c.Action == plan.Forget:
		return "will no longer be managed by Stoke, but " + p.paintText(bold, "will not be destroyed")
	case c.Reason == plan.ReplaceTainted:
		return "is tainted, so it must be " + p.paintText(bold+red, "replaced")
	case c.Reason == plan.ReplaceByRequest:
		return "will be " + p.paintText(bold+red, "replaced") + ", as requested"
	case c.Reason == plan.ReplaceByTriggers:
		return "will be " + p.paintText(bold+red, "replaced") + " due to changes in replace_triggered_by"
	case c.Action.Replaces():
		return "must be " + p.paintText(bold+red, "replaced")
	}
	return "stays as it is"
}

// naming dresses a name (an address, an attribute's path, a key) in running
// text.
type naming func(string) string

func bare(name string) string { return name }

// changeReason returns the reason of a change where its action does not show it; ""
// where it does.
func changeReason(c *plan.Change, dress naming) string {
	key := c.Addr.Key
	if c.Deposed != "" && c.Action == plan.Delete {
		return "left over from a replacement that failed half-way"
	}
	switch c.Reason {
	case plan.ReplaceCannotUpdate:
		if names := pathList(c.Replace, dress); names != "" {
			return "because " + names + " cannot change in place"
		}
	case plan.DeleteNoResourceConfig:
		return "because " + dress(c.Addr.Resource.String()) + " is not in configuration"
	case plan.DeleteNoModule:
		return "because " + dress(string(c.Addr.Module)) + " is not in configuration"
	case plan.DeleteNoMoveTarget:
		return "because " + dress(c.Previous.String()) + " was moved to " + dress(c.Addr.String()) + ", which is not in configuration"
	case plan.DeleteCountIndex:
		return "because index " + dress(key.String()) + " is out of range for count"
	case plan.DeleteEachKey:
		return "because key " + dress(key.String()) + " is not in for_each map"
	case plan.DeleteWrongRepetition:
		return wrongRepetition(key)
	case plan.ReadConfigUnknown:
		return "config refers to values not yet known"
	case plan.ReadCheckNested:
		return "config will be reloaded to verify a check block"
	case plan.ReadDependencyPending:
		return "depends on a resource or a module with changes pending"
	}
	return ""
}

func wrongRepetition(key address.Key) string {
	if key.IsZero() {
		return "because resource uses count or for_each"
	}
	if _, ok := key.Int(); ok {
		return "because resource does not use count"
	}
	return "because resource does not use for_each"
}

// pathList names attributes: "a, b.c and d".
func pathList(paths []cty.Path, dress naming) string {
	const most = 4
	seen := make(map[string]bool)
	var names []string
	for _, path := range paths {
		if text := pathText(path); text != "" && !seen[text] {
			seen[text] = true
			names = append(names, dress(text))
		}
	}
	if len(names) > most {
		names = append(names[:most], counted(len(names)-most, "other"))
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// pathText writes a path as people write it: a.b[0].c["x y"].
func pathText(path cty.Path) string {
	var b strings.Builder
	for i, step := range path {
		switch s := step.(type) {
		case cty.GetAttrStep:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.Name)
		case cty.IndexStep:
			b.WriteString("[" + indexText(s.Key) + "]")
		}
	}
	return b.String()
}
