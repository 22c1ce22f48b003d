package lang

import (
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// Mark is something that a value carries through every operation.
type Mark string

const (
	// Sensitive marks a value that no output shows.
	Sensitive Mark = "sensitive"
	// Ephemeral marks a value that is never stored.
	Ephemeral Mark = "ephemeral"
	// Excluded marks a value that came from something that a plan leaves out.
	// It is of use within the planning phase only.
	Excluded Mark = "excluded"
	// TypeName marks what the console's function type returns, which is shown
	// as it is and fits nowhere else.
	TypeName Mark = "type"
)

// GoString helps tests to print marks.
func (m Mark) GoString() string { return "lang.Mark(" + string(m) + ")" }

// Marked is where a value's marks of this package were: paths into it, the
// empty path for the value as a whole.
type Marked struct {
	Sensitive []cty.Path
	Ephemeral []cty.Path
}

// IsZero reports whether nothing was marked.
func (m Marked) IsZero() bool { return len(m.Sensitive) == 0 && len(m.Ephemeral) == 0 }

// Secret is what no output may show, whichever of the two it is.
func (m Marked) Secret() []cty.Path { return slices.Concat(m.Sensitive, m.Ephemeral) }

// Apply puts the marks back. Paths that v does not have are ignored.
func (m Marked) Apply(v cty.Value) cty.Value {
	if m.IsZero() {
		return v
	}
	// One kind after the other: a path that is given twice counts once.
	v = v.MarkWithPaths(markPaths(m.Sensitive, Sensitive))
	return v.MarkWithPaths(markPaths(m.Ephemeral, Ephemeral))
}

func markPaths(paths []cty.Path, m Mark) []cty.PathValueMarks {
	pvm := make([]cty.PathValueMarks, len(paths))
	for i, p := range paths {
		pvm[i] = cty.PathValueMarks{Path: p, Marks: cty.NewValueMarks(m)}
	}
	return pvm
}

// Unmark removes all marks from v, at any depth, and says where those of
// this package were. Other marks are returned as they are.
func Unmark(v cty.Value) (cty.Value, Marked, []cty.PathValueMarks) {
	if !v.ContainsMarked() {
		return v, Marked{}, nil
	}
	var marked Marked
	var others []cty.PathValueMarks
	plain, pvm := v.UnmarkDeepWithPaths()
	for _, at := range pvm {
		for mark := range at.Marks {
			switch mark {
			case Sensitive:
				marked.Sensitive = append(marked.Sensitive, at.Path)
			case Ephemeral:
				marked.Ephemeral = append(marked.Ephemeral, at.Path)
			case Excluded:
			default:
				others = append(others, cty.PathValueMarks{Path: at.Path, Marks: cty.NewValueMarks(mark)})
			}
		}
	}
	return plain, marked, others
}

// HasMark reports whether v or anything in it carries the mark.
func HasMark(v cty.Value, m Mark) bool { return v.HasMarkDeep(m) }

// RemoveMark removes one mark from v, at any depth.
func RemoveMark(v cty.Value, m Mark) cty.Value {
	if !v.HasMarkDeep(m) {
		return v
	}
	plain, pvm := v.UnmarkDeepWithPaths()
	kept := pvm[:0]
	for _, at := range pvm {
		delete(at.Marks, m)
		if len(at.Marks) > 0 {
			kept = append(kept, at)
		}
	}
	return plain.MarkWithPaths(kept)
}
