package code

import "strings"

// Fault is a reason why a folder has no snapshot, or an archive is rejected.
type Fault struct {
	Path   string // with slashes, below the folder; "" is the folder
	What   string // the problem, in a few words
	Advice string // what the user can do
	Edited bool   // the file changed while it was read: the same call may succeed later
}

func (f *Fault) Error() string {
	parts := []string{f.What}
	if f.Path != "" {
		parts = []string{f.Path + " " + f.What}
	}
	if f.Advice != "" {
		parts = append(parts, f.Advice)
	}
	return strings.Join(parts, ": ")
}

// ignoreAdvice is how a file is left out.
const ignoreAdvice = "or leave it out by a line in " + ignoreFile

func editedFault(name string) error {
	return &Fault{Path: name, What: "changed while it was read", Edited: true,
		Advice: "wait until the editor or the build has finished, then run the command again"}
}
