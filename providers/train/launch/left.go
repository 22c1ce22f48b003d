package launch

import (
	"fmt"
	"strings"
)

// LeftError reports that a run could not be removed completely, and what
// remains.
type LeftError struct {
	Err     error    // why
	Place   string   // the namespace
	Removed []string // as KIND NAME
	Left    []string // as KIND NAME
	Unseen  error    // why it cannot be told what is left; nil: it can
}

func (e *LeftError) Unwrap() error { return e.Err }

func (e *LeftError) Error() string {
	if e.Unseen != nil {
		return fmt.Sprintf("%v; the rest in the namespace %s is unknown: %v", e.Err, e.Place, e.Unseen)
	}
	return fmt.Sprintf("%v; in the namespace %s, removed: %s; left: %s", e.Err, e.Place, shortList(e.Removed), shortList(e.Left))
}

func shortList(all []string) string {
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}
