package syntax

import (
	"strings"
	"testing"
)

func TestDepth(t *testing.T) {
	const n = 200_000
	r := strings.Repeat
	cases := []struct {
		name  string
		check func([]byte) error
		text  string
		deep  bool
	}{
		{"json brackets", CheckJSONDepth, r("[", n), true},
		{"json objects", CheckJSONDepth, r(`{"a":`, n), true},
		{"json text", CheckJSONDepth, `["` + r("[", n) + `"]`, false},
		{"json flat", CheckJSONDepth, "[" + r("[],", n) + "[]]", false},
		{"json closers in text", CheckJSONDepth, r(`["]",`, n), true},
		{"yaml brackets", CheckYAMLDepth, r("[", n), true},
		{"yaml lists", CheckYAMLDepth, r("- ", n), true},
		{"yaml keys", CheckYAMLDepth, r("? ", n), true},
		{"yaml indentation", CheckYAMLDepth, r(" ", n) + "a", true},
		{"yaml quotes", CheckYAMLDepth, r("- \"[[[\"\n- '[[['' [['\n- it's [a]\n# [[[\n", n/100), false},
		{"yaml closers in text", CheckYAMLDepth, r(`["]",`, n), true},
		{"yaml flat", CheckYAMLDepth, r("- a: [1, {b: 2}]\n  c: - -\n", n/10), false},
	}
	for _, c := range cases {
		if err := c.check([]byte(c.text)); (err != nil) != c.deep {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
