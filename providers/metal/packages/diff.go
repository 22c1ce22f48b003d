package packages

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Diff returns the differences, fact by fact. Disruptions by packages that are
// not declared by name are in Foresee only.
func Diff(want Spec, have State) []host.Change {
	var all []host.Change
	if have.unfinished() {
		was := strings.Join(have.Broken, ", ")
		if was == "" {
			was = "cut off"
		}
		all = append(all, host.Change{Fact: "dpkg", Path: []string{"dpkg"}, Have: was, Want: "finished", Disruption: have.repairInterrupts(), Reloads: true})
	}
	return append(all, Table.Diff(want, have)...)
}

func diffPackages(want Spec, have State) []host.Change {
	var all []host.Change
	for _, name := range slices.Sorted(maps.Keys(want.Packages)) {
		w, p := want.Packages[name], have.Packages[name]
		if !p.IsInstalled() || !Matches(w.Version, p.Version) {
			c := host.Change{Fact: "package " + name, Path: []string{"packages", name, "version"}, Want: w.Version,
				Disruption: disruption(name, p.IsInstalled(), p.Scripts)}
			c.Reloads = c.Disruption > host.ReloadsSystemd
			if p.IsInstalled() {
				c.Have = p.Version
			}
			if c.Want == "" {
				c.Want = "any version"
			}
			all = append(all, c)
		}
		if held := p.IsInstalled() && p.Held; held != w.Hold {
			all = append(all, host.Change{Fact: "hold of " + name, Path: []string{"packages", name, "hold"},
				Have: strconv.FormatBool(held), Want: strconv.FormatBool(w.Hold)})
		}
	}
	for _, name := range slices.Sorted(slices.Values(want.Absent)) {
		if p := have.Packages[name]; p.IsInstalled() {
			d := disruption(name, true, p.Scripts)
			all = append(all, host.Change{Fact: "package " + name, Path: []string{"absent", name}, Have: p.Version,
				Disruption: d, Reloads: d > host.ReloadsSystemd})
		}
	}
	return all
}

// repairInterrupts is what finishing dpkg's work does: whatever the scripts of
// the packages do that it did not finish.
func (st State) repairInterrupts() host.Disruption {
	d := host.ReloadsSystemd
	for _, b := range st.Broken {
		name, _, _ := strings.Cut(b, " ")
		d = max(d, disruption(name, true, false))
	}
	return d
}

func diffRepository(name string, want Spec, have State) []host.Change {
	r := want.Repositories[name]
	path := func(field string) []string { return []string{"repositories", name, field} }
	var all []host.Change
	add := func(field, is, want string) {
		all = append(all, host.Change{Fact: "repository " + name + " " + field, Path: path(field), Have: is, Want: want})
	}
	file := sourcesFile(name)
	f, there := have.Files[file]
	if !there {
		add("uris", "", strings.Join(r.URIs, " "))
	} else {
		is := parsedRepository(f)
		for _, x := range []struct {
			field    string
			is, want []string
		}{{"uris", is.URIs, r.URIs}, {"suites", is.Suites, r.Suites}, {"components", is.Components, r.Components}, {"architectures", is.Architectures, r.Architectures}} {
			if !slices.Equal(x.is, x.want) {
				add(x.field, strings.Join(x.is, " "), strings.Join(x.want, " "))
			}
		}
		if c, differs := diffFile("repository "+name+" file", file, want.settings()[file], have); differs && len(all) == 0 {
			c.Path = path("file")
			all = append(all, c)
		}
	}
	key, there := have.Files[keyringFile(name)]
	is, wantPrints := "", prints(r.Fingerprints)
	if there {
		if is = r.trusted(key.Content, time.Now()); is == wantPrints && !key.isRegular() {
			is = "mode " + key.Mode + ", " + key.Owner
		}
	}
	if is != wantPrints {
		add("fingerprints", is, wantPrints)
	}
	return all
}

func parsedRepository(f File) source {
	if all := parseDeb822("", string(f.Content)); len(all) == 1 && !all[0].Disabled {
		return all[0]
	}
	return source{}
}

func (f File) isRegular() bool { return f.Mode == "644" && f.Owner == "root:root" }

func diffFile(fact, name, want string, have State) (host.Change, bool) {
	f, there := have.Files[name]
	c := host.Change{Fact: fact, Path: []string{"files", name}, Have: "none", Want: "as declared"}
	switch is := unsigned(string(f.Content)); {
	case !there:
	case is == unsigned(want) && f.isRegular():
		return c, false
	case is == unsigned(want):
		c.Have = "mode " + f.Mode + ", " + f.Owner
	default:
		c.Have = "otherwise"
	}
	return c, true
}

// unsigned is a sources file without who wrote it, which it said once.
func unsigned(content string) string {
	if line, rest, _ := strings.Cut(content, "\n"); strings.HasPrefix(line, "# Written by stoke") {
		return rest
	}
	return content
}

// prints renders fingerprints so that they can be compared.
func prints(all []string) string {
	var norm []string
	for _, f := range all {
		norm = append(norm, normalFingerprint(f))
	}
	slices.Sort(norm)
	return strings.Join(slices.Compact(norm), " ")
}

// Spec returns the observed packages as a Spec: equal to want where nothing
// differs. A version is the pattern itself where the installed one matches, and
// else the installed one.
func (st State) Spec(want Spec) Spec {
	is := want
	is.Packages, is.Repositories, is.Absent, is.Proxy = nil, nil, nil, nil
	for name, w := range want.Packages {
		p := st.Packages[name]
		if !p.IsInstalled() {
			continue
		}
		if !Matches(w.Version, p.Version) {
			w.Version = p.Version
		}
		w.Hold = p.Held
		if c := string(st.Files[excludeFile(want.Owner)].Content); c != want.exclude() {
			w.Exclude = strings.Contains(c, `"`+strings.NewReplacer("+", `\+`, ".", `\.`).Replace(name)+`$"`)
		}
		put(&is.Packages, name, w)
	}
	for name, w := range want.Repositories {
		f, there := st.Files[sourcesFile(name)]
		if !there {
			continue
		}
		s := parsedRepository(f)
		w.URIs, w.Suites, w.Components, w.Architectures = s.URIs, s.Suites, s.Components, s.Architectures
		if got := w.trusted(st.Files[keyringFile(name)].Content, time.Now()); got != prints(w.Fingerprints) {
			w.Fingerprints = strings.Fields(got)
		}
		put(&is.Repositories, name, w)
	}
	for _, name := range want.Absent {
		if !st.Packages[name].IsInstalled() {
			is.Absent = append(is.Absent, name)
		}
	}
	if string(st.Files[proxyFile(want.Owner)].Content) == want.proxy() {
		is.Proxy = want.Proxy
	}
	return is
}
