package packages

import (
	"testing"
)

// The signs are those of dpkg --compare-versions 1.21.
var compared = []struct {
	a, b string
	sign int
}{
	{"1.0", "1.0", 0}, {"1.0", "1.1", -1}, {"1.10", "1.9", 1}, {"1.0~rc1", "1.0", -1}, {"1.0~~", "1.0~", -1},
	{"1:0.9", "2.0", 1}, {"0:1.0", "1.0", 0}, {"1.0-1", "1.0-1.1", -1}, {"1.0-1", "1.0", 1}, {"1.0-0", "1.0", 0},
	{"1.36.3-1.1", "1.36.10-1.1", -1}, {"2.2.1-1~debian.12~bookworm", "2.2.1-1", -1}, {"1.6.20~ds1-1+deb12u3", "1.6.20~ds1-1+b1", 1},
	{"20.10.24+dfsg1-1+deb12u1+b6", "20.10.24", 1}, {"1.0a", "1.0+", -1}, {"1.0a", "1.0.1", -1}, {"1.0+b1", "1.0.1", -1},
	{"580.126.20-0ubuntu0.24.04.1", "580.126.09-0ubuntu1", 1}, {"01.002", "1.2", 0}, {"1.0-a-1", "1.0-b-1", -1}, {"1", "1.0", -1}, {"a", "1", 1}, {"~", "", -1},
	{"99999999999999999999999999.1", "99999999999999999999999999.2", -1},
}

func TestCompare(t *testing.T) {
	sign := func(n int) int { return max(-1, min(1, n)) }
	for _, c := range compared {
		if got := sign(Compare(c.a, c.b)); got != c.sign {
			t.Errorf("Compare(%q, %q) = %d, want %d", c.a, c.b, got, c.sign)
		}
		if got := sign(Compare(c.b, c.a)); got != -c.sign {
			t.Errorf("Compare(%q, %q) = %d, want %d", c.b, c.a, got, -c.sign)
		}
	}
}

func FuzzCompare(f *testing.F) {
	for _, c := range compared {
		f.Add(c.a, c.b)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if (Compare(a, b) < 0) != (Compare(b, a) > 0) || Compare(a, a) != 0 {
			t.Errorf("%q and %q have no order", a, b)
		}
	})
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, version string
		want             bool
	}{
		{"", "1", true}, {"1.36.3-*", "1.36.3-1.1", true}, {"1.36.3-*", "1.36.30-1.1", false}, {"2.2.*", "2.2.1-1~debian.12~bookworm", true},
		{"2.2.*", "2.20.1", false}, {"1.0", "1.0-1", false}, {"1.0-1", "1.0-1", true}, {"*", "x", true}, {"*-1", "1.0-1", true}, {"1*2*3", "1x2y3", true},
		{"1*2*3", "1x3", false}, {"1*1", "1", false}, {"a*bc*c", "abc", false}, {"a**c", "ac", true},
	} {
		if got := Matches(c.pattern, c.version); got != c.want {
			t.Errorf("Matches(%q, %q) = %v", c.pattern, c.version, got)
		}
	}
	if got := newest("1.36.*", []string{"1.36.9-1.1", "1.37.0-1.1", "1.36.10-1.1", "1.36.10~rc1"}); got != "1.36.10-1.1" {
		t.Errorf("newest is %q", got)
	}
}
