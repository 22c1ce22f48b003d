package program

import "fmt"

// markVariable is the environment variable of a Mark.
const markVariable = "STOKE_MARK"

// Mark names a run, a member of it or one generation of that member. Processes
// inherit it in their environment, so that also those are found that have left
// their process group.
type Mark struct {
	Run        string
	Member     string // its name; "": all members
	Generation int    // 0: all generations
}

func (m Member) mark() Mark {
	return Mark{m.Run, m.Name, m.Generation}
}

// String returns the value of the environment variable.
func (m Mark) String() string {
	text := m.Run + "/"
	if m.Member != "" {
		text += m.Member + "/"
		if m.Generation != 0 {
			text += fmt.Sprintf("%d/", m.Generation)
		}
	}
	return text
}
