package packages

import (
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Table is what this package looks after. Repositories and settings are given back
// by what is noted of them; of packages apt says what can go, see Undoing.
var Table = host.Table[Spec, State]{
	{
		Key:   noteRepository,
		Names: func(want Spec, _ State) []string { return slices.Sorted(maps.Keys(want.Repositories)) },
		Was: func(want Spec, have State, name string) any {
			return repositoryWas{Joined: len(have.otherOwners(name, want.Owner)) > 0}
		},
		Files: func(name string) []string { return []string{sourcesFile(name), keyringFile(name)} },
		Diff: func(want Spec, have State) []host.Change {
			var all []host.Change
			for _, name := range slices.Sorted(maps.Keys(want.Repositories)) {
				all = append(all, diffRepository(name, want, have)...)
			}
			return all
		},
		Back: func(rec *host.Record, name string) host.Change {
			return becomes(rec, "repository "+name, sourcesFile(name), "repositories", name)
		},
	},
	{
		Key:   noteFile,
		Names: func(want Spec, _ State) []string { return want.files() },
		Was:   func(Spec, State, string) any { return true },
		Files: func(name string) []string { return []string{name} },
		Diff: func(want Spec, have State) []host.Change {
			var all []host.Change
			for _, name := range want.files() {
				if c, differs := diffFile(fact(name), name, want.settings()[name], have); differs {
					all = append(all, c)
				}
			}
			return all
		},
		Back: func(rec *host.Record, name string) host.Change {
			return becomes(rec, fact(name), name, "files", name)
		},
	},
	{
		Key:   notePackage,
		Names: func(want Spec, _ State) []string { return want.names() },
		// Which packages go is for apt to say: Undoing asks it.
		Wanted: func(*host.Record, Spec, string) bool { return true },
		Was: func(want Spec, have State, name string) any {
			p := have.Packages[name]
			if _, comes := want.Packages[name]; comes && !p.IsInstalled() {
				return nil // it is noted when it comes, with all that comes with it
			}
			w := priorOf(p)
			w.Open, w.Asked, w.Declared = true, true, true
			return w
		},
		Diff: diffPackages,
		Back: host.Becomes("package"),
	},
}

type repositoryWas struct {
	// Joined: another owner on the machine had it, so that what was there before is
	// for that one to give back.
	Joined bool `json:"joined,omitempty"`
}

// becomes is a file of ours that goes, or gets its former content back.
func becomes(rec *host.Record, what, file string, path ...string) host.Change {
	is, become := "is", "becomes"
	if strings.HasSuffix(what, "pins") {
		is, become = "are", "become"
	}
	if rec.KeptAbsent(file) {
		return host.Change{Fact: what + " " + is + " removed", Path: path}
	}
	return host.Change{Fact: what + " " + become + " what there was before", Path: path}
}

func priorOf(p Installed) priorPackage {
	w := priorPackage{Config: p.Status == 'c', Held: p.Held, Auto: p.Auto}
	if p.IsInstalled() {
		w.Version = p.Version
	}
	return w
}

// files are the settings that a Spec needs, but for repositories.
func (s Spec) files() []string {
	var all []string
	settings := s.settings()
	for _, name := range []string{proxyFile(s.Owner), pinFile(s.Owner), excludeFile(s.Owner)} {
		if settings[name] != "" {
			all = append(all, name)
		}
	}
	return all
}

func fact(file string) string {
	switch {
	case strings.HasSuffix(file, "-proxy"):
		return "apt's proxy"
	case strings.HasSuffix(file, ".pref"):
		return "version pins"
	}
	return "exclusion from unattended-upgrades"
}

// otherOwners are the owners on the machine that have a repository, too, by the kinds of
// their records.
func (st State) otherOwners(repository, owner string) []string {
	return slices.DeleteFunc(slices.Clone(st.Owners[repository]), func(o string) bool { return o == owner })
}
