package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// The names of checkpoints, wherever they lie: the finished model's begins with
// FinalPrefix, all others with StepPrefix. With its ManifestFile a checkpoint
// exists.
const (
	StepPrefix   = "step-"
	FinalPrefix  = "final"
	ManifestFile = "manifest.json"
)

// The term is a part of names, so that nothing that a superseded coordinator
// has begun to write can land in the place of a later one's. Earlier versions
// named a checkpoint by its step alone, and the finished model "final". Of both
// kinds, names sort by age.

// StepName is the name of a checkpoint.
func StepName(step, term int64) string {
	return fmt.Sprintf("%s%012d-term-%06d", StepPrefix, step, term)
}

// FinalName is the name of the finished model.
func FinalName(term int64) string { return fmt.Sprintf("%s-term-%06d", FinalPrefix, term) }

// StepOf returns the step of a checkpoint's name; false if StepName did not
// make the name.
func StepOf(name string) (int64, bool) {
	rest, ok := strings.CutPrefix(name, StepPrefix)
	digits, _, _ := strings.Cut(rest, "-")
	step, err := strconv.ParseInt(digits, 10, 64)
	return step, ok && err == nil
}

// TermIn is the term in a name of StepName's or FinalName's; 0: there is none.
func TermIn(name string) int64 {
	if !strings.HasPrefix(name, StepPrefix) && !strings.HasPrefix(name, FinalPrefix) {
		return 0
	}
	_, digits, _ := strings.Cut(name, "-term-")
	term, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return term
}
