package containerd

import (
	"slices"
	"strings"
)

// LostLines returns the lines of a foreign configuration that the new one lacks: their
// settings no longer apply. A configuration written by stoke loses nothing. A
// containerd that is not installed yet may use either form of the configuration.
func LostLines(want Spec, have Facts) []string {
	versions := []string{have.Version}
	if have.Version == "" {
		versions = []string{"1.7", "2.2"}
	}
	var kept []string
	for _, v := range versions {
		text, known := Rendered(want, Facts{Version: v})
		if !known || have.Config == "" || have.Config == text || strings.HasPrefix(have.Config, "# Written by stoke") {
			return nil
		}
		kept = append(kept, settings(text)...)
	}
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
