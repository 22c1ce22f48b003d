package spec

import (
	"path"
	"path/filepath"
)

// InitFrom names the parameters that a run begins from: a safetensors file, or the
// folder of a finished run or of a checkpoint. The hash is their identity: they
// may move. The zero value means initial values that the seed draws.
type InitFrom struct {
	Path string `json:"path,omitempty"` // absolute
	Hash string `json:"hash,omitempty"`
	Skip JSON   `json:"skip,omitempty"` // patterns of variables that begin with values that the seed draws
}

// Patterns returns the patterns of Skip, as path.Match takes them; ok is false where
// they are not patterns.
func (f InitFrom) Patterns() (list []string, ok bool) {
	if f.Skip.decode(&list) != nil {
		return nil, false
	}
	for _, p := range list {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return nil, false
		}
	}
	return list, true
}

// EvaluatesOnly reports whether the run makes no update.
func (s *Spec) EvaluatesOnly() bool { return !s.HasProgram() && s.Epochs == 0 }

// validateInitFrom checks where the run begins, and that only a run with other
// parameters makes no update.
func (s *Spec) validateInitFrom(c *checks) {
	f := s.InitFrom
	least := 1
	if f.Path != "" {
		least = 0
	}
	if s.Epochs == 0 && least == 1 {
		c.add("epochs", "A run without epochs evaluates only", "Set init_from to the model that it evaluates, or epochs to 1 or more.")
	} else {
		c.checkRange("epochs", s.Epochs, least, maxNumber)
	}
	if f.Path != "" && !filepath.IsAbs(f.Path) {
		c.add("init_from.path", "Path of the model is not absolute", "Give a safetensors file, or the folder of a run; it is %q.", f.Path)
	}
	if (f.Path == "") != (f.Hash == "") {
		c.add("init_from.hash", "Hash of the model does not fit", "Give path and hash of the model, or none of them.")
	}
	switch _, ok := f.Patterns(); {
	case !ok:
		c.add("init_from.skip", "Not a pattern of names",
			"Give patterns of variables, for example [\"output/*\"]: * is anything but a slash.")
	case f.Skip != "" && f.Path == "":
		c.add("init_from.skip", "Nothing to begin from", "Set init_from, or leave init_skip out.")
	}
}
