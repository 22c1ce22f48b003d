package address

import (
	"cmp"
	"strings"
)

// Compare orders module instances by how deep they are, then call by call: by
// name, and by key as Key.Compare does.
func (m Module) Compare(o Module) int {
	if m == o {
		return 0
	}
	if c := cmp.Compare(m.depth(), o.depth()); c != 0 {
		return c
	}
	for m != "" && o != "" {
		a, b := "", ""
		a, m = m.first()
		b, o = o.first()
		if a != b {
			return compareCalls(a, b)
		}
	}
	return cmp.Compare(len(m), len(o))
}

// depth is how many calls lead to the module.
func (m Module) depth() (n int) {
	for m != "" {
		_, m = m.first()
		n++
	}
	return n
}

// first splits the first call, such as `module.a[0]`, from the rest.
func (m Module) first() (string, Module) {
	rest, _ := strings.CutPrefix(string(m), "module.")
	n, quoted := len(m)-len(rest), false
	for ; n < len(m); n++ {
		switch c := m[n]; {
		case quoted && c == '\\':
			n++
		case c == '"':
			quoted = !quoted
		case c == '.' && !quoted:
			return string(m[:n]), m[n+1:]
		}
	}
	return string(m), ""
}

// Caller splits off the last call: the module instance that it is in, and the
// call's name and key.
func (m Module) Caller() (Module, Step) {
	var caller Module
	for rest := m; ; {
		call, next := rest.first()
		if next == "" {
			steps := Module(call).Steps()
			if len(steps) == 0 {
				return "", Step{}
			}
			return caller, steps[0]
		}
		caller = m[:len(m)-len(next)-1]
		rest = next
	}
}

func compareCalls(a, b string) int {
	name, key, _ := strings.Cut(a, "[")
	other, otherKey, _ := strings.Cut(b, "[")
	if c := strings.Compare(name, other); c != 0 {
		return c
	}
	number := func(key string) bool { return key != "" && key[0] != '"' }
	if c := len(key) - len(otherKey); c != 0 && number(key) && number(otherKey) {
		return c // 2 is before 10
	}
	switch {
	case number(key) && !number(otherKey) && otherKey != "":
		return -1
	case number(otherKey) && !number(key) && key != "":
		return 1
	}
	return strings.Compare(key, otherKey)
}
