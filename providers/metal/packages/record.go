package packages

import (
	"context"
	"maps"
	"slices"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Keys of the notes in a host.Record; its files are kept by host.Record itself.
const (
	noteWas   = "packages was"   // map[string]was
	noteOwner = "packages owner" // string
	noteOS    = "packages os"    // string: whose tool it was
	noteLists = "packages lists" // true: all of apt's lists were refreshed
)

// was is a package before stoke first changed it, and as stoke left it.
type was struct {
	Version string `json:"version,omitempty"` // "" where it was not installed
	Config  bool   `json:"config,omitempty"`  // only its configuration files were there
	Held    bool   `json:"held,omitempty"`
	Auto    bool   `json:"auto,omitempty"`

	Now      string `json:"now,omitempty"`      // the version that stoke left, "" for none
	Open     bool   `json:"open,omitempty"`     // Now is not known yet: it is being changed
	Asked    bool   `json:"asked,omitempty"`    // it was declared at some time, and is no mere dependency
	Declared bool   `json:"declared,omitempty"` // it is declared
}

// untouched tells that a package is there as somebody else left it: stoke found
// it as it was before.
func (w was) untouched(p Installed) bool {
	return p.There() && !w.Open && w.Now == w.Version && w.Now != p.Version
}

func recorded(rec *host.Record) (map[string]was, error) {
	all := map[string]was{}
	_, err := rec.Was(noteWas, &all)
	return all, err
}

// remember writes down how packages are before they change. have speaks of all
// of them.
func remember(ctx context.Context, rec *host.Record, have State, want Spec, names []string) error {
	all, err := recorded(rec)
	if err != nil {
		return err
	}
	before := maps.Clone(all)
	for _, name := range names {
		w, known := all[name]
		if p := have.Packages[name]; !known {
			w = was{Config: p.Status == 'c', Held: p.Held, Auto: p.Auto}
			if p.There() {
				w.Version = p.Version
			}
		}
		_, w.Declared = want.Packages[name]
		w.Declared = w.Declared || slices.Contains(want.Absent, name)
		w.Asked, w.Open = w.Asked || w.Declared, true
		all[name] = w
	}
	if maps.Equal(before, all) {
		return nil
	}
	return rec.Set(ctx, noteWas, all)
}

// note writes down the declared packages as they are when they are declared for
// the first time, whether they are to change or not: what somebody does to them
// later is no state of before.
func note(ctx context.Context, rec *host.Record, have State, want Spec) error {
	all, err := recorded(rec)
	if err != nil {
		return err
	}
	first := slices.DeleteFunc(slices.Collect(maps.Keys(want.Packages)), func(name string) bool { return !have.Packages[name].There() })
	first = slices.DeleteFunc(append(first, want.Absent...), func(name string) bool { _, known := all[name]; return known })
	return remember(ctx, rec, have, want, first)
}

// brought are the packages that came in because others needed them: what becomes
// of them is for stoke's packages to say.
func brought(rec *host.Record) ([]string, error) {
	all, err := recorded(rec)
	var names []string
	for name, w := range all {
		if w.Version == "" && !w.Asked {
			names = append(names, name)
		}
	}
	return names, err
}

// open are the packages that were being changed when it was last written down.
func open(rec *host.Record) ([]string, error) {
	all, err := recorded(rec)
	var names []string
	for name, w := range all {
		if w.Open {
			names = append(names, name)
		}
	}
	return names, err
}

// left writes down how stoke left the packages that were being changed.
func left(ctx context.Context, rec *host.Record, have State) error {
	all, err := recorded(rec)
	if err != nil {
		return err
	}
	before := maps.Clone(all)
	for name, w := range all {
		if !w.Open {
			continue
		}
		w.Now, w.Open = "", false
		if p := have.Packages[name]; p.There() {
			w.Now = p.Version
		}
		all[name] = w
	}
	if maps.Equal(before, all) {
		return nil
	}
	return rec.Set(ctx, noteWas, all)
}
