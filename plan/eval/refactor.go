package eval

import "github.com/stokehq/stoke/modules/address"

// HasModule reports whether the configuration wants a module instance.
func (ev *Evaluator) HasModule(t *Task, addr address.Module) bool {
	return ev.moduleAt(t, addr) != nil
}
