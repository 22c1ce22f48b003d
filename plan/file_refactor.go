package plan

import (
	"errors"

	"github.com/stokehq/stoke/modules/address"
)

type fileMove struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func (d *decoder) move(f *fileMove) Move {
	from, err := address.ParseInstance(f.From)
	to, err2 := address.ParseInstance(f.To)
	d.fail(errors.Join(err, err2))
	return Move{from, to}
}

// fileRefactoring is the part of a change that tells of an object's new
// address and of how it came in.
type fileRefactoring struct {
	Previous  string `json:"previous,omitempty"`
	Importing string `json:"importing,omitempty"`
	Generated string `json:"generated_config,omitempty"`
}

func refactoringOf(c *Change) fileRefactoring {
	f := fileRefactoring{Importing: c.Importing, Generated: c.Generated}
	if c.Moved() {
		f.Previous = c.Previous.String()
	}
	return f
}

func (d *decoder) refactoring(f fileRefactoring, c *Change) *Change {
	if f.Previous != "" {
		var err error
		c.Previous, err = address.ParseInstance(f.Previous)
		d.fail(err)
	}
	c.Importing, c.Generated = f.Importing, f.Generated
	return c
}
