package ssh

import (
	"os/exec"
	"strings"
	"testing"
)

// FuzzQuote has a real shell read back what was quoted.
func FuzzQuote(f *testing.F) {
	for _, arg := range []string{"", "plain", "a b", "it's", `"$HOME" $(id) `, "-n", "a\nb", "\\", "'", "''", "*", "~", "é", "\xff\xfe", "a=b", "!x", "#", "x\ty", ";rm"} {
		f.Add(arg)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		if len(arg) > 1000 {
			return
		}
		arg = strings.ReplaceAll(arg, "\x00", "")
		out, err := exec.Command("sh", "-c", QuoteAll("printf", "%s.", arg, arg+"'")).Output()
		if err != nil || string(out) != arg+"."+arg+"'." {
			t.Fatalf("%q came back as %q: %v", arg, out, err)
		}
	})
}

func TestQuoteAll(t *testing.T) {
	if got := QuoteAll("A=b", "x=y", "c d", "$e"); got != `'A=b' x=y 'c d' '$e'` {
		t.Error(got)
	}
}
