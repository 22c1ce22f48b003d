package packages

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Merge makes one Spec of several that have one owner, such as what people
// declare and what the container runtime needs. Everything that they disagree
// on is an error that names the reasons.
func Merge(specs ...Spec) (Spec, error) {
	var all Spec
	var wrong []error
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for i, s := range specs {
		if i == 0 {
			all.Owner = s.Owner
		}
		if s.Owner != all.Owner && s.Owner != "" {
			fail("specs of %s and %s cannot be one", all.Owner, s.Owner)
		}
		switch {
		case all.Proxy == nil:
			all.Proxy = s.Proxy
		case s.Proxy != nil && !reflect.DeepEqual(all.Proxy, s.Proxy):
			fail("apt's proxy is declared twice, and differently")
		}
		for _, name := range slices.Sorted(maps.Keys(s.Repositories)) {
			was, known := all.Repositories[name]
			r, err := was.merge(s.Repositories[name], known)
			if err != nil {
				fail("repository %s %w", name, err)
			}
			put(&all.Repositories, name, r)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Packages)) {
			p, err := all.Packages[name].merge(s.Packages[name])
			if err != nil {
				fail("package %s %w", name, err)
			}
			put(&all.Packages, name, p)
		}
		all.Absent, all.Allow = union(all.Absent, s.Absent), union(all.Allow, s.Allow)
	}
	for _, name := range all.Absent {
		if p, both := all.Packages[name]; both {
			fail("package %s is declared absent, but %s wants it", name, reasonText(p.Why))
		}
	}
	return all, errors.Join(wrong...)
}

func (r Repository) merge(o Repository, known bool) (Repository, error) {
	if !known {
		return o, nil
	}
	a, b := r, o
	a.Why, b.Why = "", ""
	if !reflect.DeepEqual(a, b) {
		return r, fmt.Errorf("is declared differently by %s and %s", reasonText(r.Why), reasonText(o.Why))
	}
	r.Why = reasons(r.Why, o.Why)
	return r, nil
}

func (p Package) merge(o Package) (Package, error) {
	if p.Version != "" && o.Version != "" && p.Version != o.Version {
		return p, fmt.Errorf("is wanted in version %s by %s and in %s by %s", p.Version, reasonText(p.Why), o.Version, reasonText(o.Why))
	}
	p.Version = cmp.Or(p.Version, o.Version)
	p.Hold, p.Exclude = p.Hold || o.Hold, p.Exclude || o.Exclude
	p.Why = reasons(p.Why, o.Why)
	return p, nil
}

func reasonText(why string) string {
	return cmp.Or(why, "the configuration")
}

func reasons(a, b string) string {
	if a == "" || b == "" || a == b {
		return a + strings.TrimPrefix(b, a)
	}
	return a + ", " + b
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

func put[V any](m *map[string]V, k string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[k] = v
}
