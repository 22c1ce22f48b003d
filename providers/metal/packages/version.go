package packages

import (
	"slices"
	"strings"
)

// Compare orders two versions as dpkg does (Debian policy §5.6.12): negative
// when a is older.
func Compare(a, b string) int {
	ea, ua, ra := splitVersion(a)
	eb, ub, rb := splitVersion(b)
	if c := compareDigits(ea, eb); c != 0 {
		return c
	}
	if c := comparePart(ua, ub); c != 0 {
		return c
	}
	return comparePart(ra, rb)
}

func splitVersion(v string) (epoch, upstream, revision string) {
	if i := strings.IndexByte(v, ':'); i >= 0 {
		epoch, v = v[:i], v[i+1:]
	}
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		return epoch, v[:i], v[i+1:]
	}
	return epoch, v, ""
}

// comparePart compares alternating non-digit and digit runs (Debian policy
// 5.6.12).
func comparePart(a, b string) int {
	for a != "" || b != "" {
		for a != "" && !digit(a[0]) || b != "" && !digit(b[0]) {
			oa, ob := order(a), order(b)
			if oa != ob {
				return oa - ob
			}
			a, b = a[1:], b[1:] // equal orders that are not 0: both have a character
		}
		na, nb := digits(a), digits(b)
		if c := compareDigits(a[:na], b[:nb]); c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
	}
	return 0
}

// order is dpkg's: a tilde before the end, the end and digits before letters,
// letters before everything else.
func order(s string) int {
	switch {
	case s == "" || digit(s[0]):
		return 0
	case s[0] == '~':
		return -1
	case s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z':
		return int(s[0])
	}
	return int(s[0]) + 256
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func digits(s string) int {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return n
}

func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// Matches reports whether a version is one that a pattern means: any for "",
// "*" standing for any characters, and otherwise exactly that version.
func Matches(pattern, version string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == version
	}
	rest, ok := strings.CutPrefix(version, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, last)
}

func newest(pattern string, versions []string) string {
	best := ""
	for _, v := range versions {
		if Matches(pattern, v) && (best == "" || Compare(v, best) > 0) {
			best = v
		}
	}
	return best
}

func sortVersions(versions []string) []string {
	return slices.SortedFunc(slices.Values(versions), func(a, b string) int { return Compare(b, a) })
}
