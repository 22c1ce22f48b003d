package containerd

import (
	"slices"
	"strings"
)

// Lost are the lines of a configuration of somebody else that is to be replaced, as
// far as the new one does not have them: what they set is not set any more. Nothing
// is lost of a configuration that is stoke's own. A containerd that is to come
// may have either form of it.
func Lost(want Spec, have Facts) []string {
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
