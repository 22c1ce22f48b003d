package packages

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Noted begins the keys of all notes of this package.
const Noted = "packages "

// Keys of the notes in a host.Record; its files are kept by host.Record itself.
const (
	notePackage    = "packages package "    // NAME: was
	noteRepository = "packages repository " // NAME: repositoryWas
	noteFile       = "packages file "       // PATH: true
	noteOwner      = "packages owner"       // string
	noteLists      = "packages lists"       // true: all of apt's lists were refreshed
	// noteAll is map[string]was, of records of before there was a note for each.
	noteAll = "packages was"
)

// priorPackage is a package before stoke first changed it, and as stoke left it.
type priorPackage struct {
	Version string `json:"version,omitempty"` // "" where it was not installed
	Config  bool   `json:"config,omitempty"`  // only its configuration files were there
	Held    bool   `json:"held,omitempty"`
	Auto    bool   `json:"auto,omitempty"`

	Now      string `json:"now,omitempty"`      // the version that stoke left, "" for none
	Open     bool   `json:"open,omitempty"`     // Now is not known yet: it is being changed
	Asked    bool   `json:"asked,omitempty"`    // it was declared once, not only a dependency
	Declared bool   `json:"declared,omitempty"` // it is declared
}

// untouched reports whether stoke left the package as it found it.
func (w priorPackage) untouched(p Installed) bool {
	return p.IsInstalled() && !w.Open && w.Now == w.Version && w.Now != p.Version
}

func recorded(rec *host.Record) (map[string]priorPackage, error) {
	all := map[string]priorPackage{}
	if _, err := rec.ReadNote(noteAll, &all); err != nil {
		return nil, err
	}
	for _, key := range rec.Keys(notePackage) {
		var w priorPackage
		if _, err := rec.ReadNote(key, &w); err != nil {
			return nil, err
		}
		all[strings.TrimPrefix(key, notePackage)] = w
	}
	return all, nil
}

func record(ctx context.Context, rec *host.Record, all map[string]priorPackage) error {
	is, drop := map[string]any{}, []string{noteAll}
	for name, w := range all {
		is[notePackage+name] = w
	}
	for _, key := range rec.Keys(notePackage) {
		if _, known := is[key]; !known {
			drop = append(drop, key)
		}
	}
	return rec.Replace(ctx, is, drop...)
}

func alter(ctx context.Context, rec *host.Record, do func(all map[string]priorPackage)) error {
	all, err := recorded(rec)
	if err != nil {
		return err
	}
	do(all)
	return record(ctx, rec, all)
}

// note writes down what there is of all that is declared for the first time, and
// that it is declared.
func (a *apply) note(ctx context.Context) error {
	if err := a.rec.Remember(ctx, noteOwner, a.want.Owner); err != nil {
		return err
	}
	err := alter(ctx, a.rec, func(all map[string]priorPackage) {
		for name, w := range all {
			w.Declared = w.Declared || a.want.declares(name)
			w.Asked = w.Asked || w.Declared
			all[name] = w
		}
	})
	if err != nil {
		return err
	}
	return Table.Note(ctx, a.rec, a.want, a.have)
}

func remember(ctx context.Context, rec *host.Record, have State, want Spec, names []string) error {
	return alter(ctx, rec, func(all map[string]priorPackage) {
		for _, name := range names {
			w, known := all[name]
			if !known {
				w = priorOf(have.Packages[name])
			}
			w.Declared = want.declares(name)
			w.Asked, w.Open = w.Asked || w.Declared, true
			all[name] = w
		}
	})
}

func noteLeft(ctx context.Context, rec *host.Record, have State) error {
	return alter(ctx, rec, func(all map[string]priorPackage) {
		for name, w := range all {
			if !w.Open {
				continue
			}
			w.Now, w.Open = "", false
			if p := have.Packages[name]; p.IsInstalled() {
				w.Now = p.Version
			}
			all[name] = w
		}
	})
}

// dependenciesOf are the packages that came in because others needed them: what becomes
// of them is for stoke's packages to say.
func dependenciesOf(rec *host.Record) ([]string, error) {
	return recordedPackages(rec, func(w priorPackage) bool { return w.Version == "" && !w.Asked })
}

// open are the packages that were being changed when it was last written down.
func open(rec *host.Record) ([]string, error) {
	return recordedPackages(rec, func(w priorPackage) bool { return w.Open })
}

func recordedPackages(rec *host.Record, are func(priorPackage) bool) ([]string, error) {
	all, err := recorded(rec)
	maps.DeleteFunc(all, func(_ string, w priorPackage) bool { return !are(w) })
	return slices.Collect(maps.Keys(all)), err
}
