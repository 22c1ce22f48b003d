package containerd

import (
	"slices"
	"strings"
)

// Lost are the lines of a configuration of somebody else that is to be replaced, as
// far as the new one does not have them: what they set is not set any more. Nothing
// is lost of a configuration that is stoke's own.
func Lost(want Spec, have Facts) []string {
	text, known := Rendered(want, have)
	if !known || !want.Config || have.Config == "" || have.Config == text || strings.HasPrefix(have.Config, "# Written by stoke") {
		return nil
	}
	kept := settings(text)
	return slices.DeleteFunc(settings(have.Config), func(line string) bool { return slices.Contains(kept, line) })
}

func settings(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && line[0] != '#' && line[0] != '[' && strings.Contains(line, "=") {
			all = append(all, line)
		}
	}
	return all
}
