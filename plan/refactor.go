package plan

// Moved reports whether the object was at another address before.
func (c *Change) Moved() bool { return c.Previous.Type != "" }

// Idle reports whether nothing happens to the object, not even in the state.
func (c *Change) Idle() bool { return c.Action == NoOp && !c.Moved() && c.Importing == "" }

// Imports returns how many objects are taken in.
func (p *Plan) Imports() int {
	n := 0
	for _, c := range p.Changes {
		if c.Importing != "" {
			n++
		}
	}
	return n
}
