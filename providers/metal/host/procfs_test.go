package host

import "testing"

func TestUnescaped(t *testing.T) {
	for in, want := range map[string]string{`/swap\040file`: "/swap file", `/a\`: `/a\`, `/a\9`: `/a\9`, `/a\999x`: `/a\999x`} {
		if got := Unescaped(in); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
}
