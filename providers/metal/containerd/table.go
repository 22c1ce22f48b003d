package containerd

import (
	"github.com/stokehq/stoke/providers/metal/host"
)

// Table is what this package looks after.
var Table = host.Table[Spec, Facts]{
	{
		Key:   serviceKey,
		Names: host.One[Spec, Facts](func(w Spec) bool { return w.Config }),
		Wanted: func(rec *host.Record, want Spec, _ string) bool {
			var was serviceWas
			_, err := rec.ReadNote(serviceKey, &was)
			return want.Config || err == nil && was.Enabled && was.Active
		},
		Was: func(_ Spec, have Facts, _ string) any {
			if have.Version == "" {
				return nil
			}
			return serviceWas{Enabled: have.Enabled, Active: have.Active}
		},
		Diff: diffService,
		Back: func(rec *host.Record, _ string) host.Change {
			var was serviceWas
			_, err := rec.ReadNote(serviceKey, &was)
			c := restoreChange(len(rec.Keys(fileKey)) > 0)
			c.Drains = err == nil && !was.Active // it stops
			return c
		},
	},
	{ // whether it was another one, so that giving it back changes something
		Key: fileKey,
		Names: func(want Spec, have Facts) []string {
			all := want.files()
			if want.Config {
				all[ConfigFile] = ""
			}
			return keys(all)
		},
		Wanted: func(rec *host.Record, want Spec, name string) bool { return want.Owns(name) || !replaced(rec, name) },
		Was: func(want Spec, have Facts, name string) any {
			if name != ConfigFile {
				return have.Files[name] != want.files()[name]
			}
			text, known := Rendered(want, have)
			if !known {
				return nil
			}
			return have.Config != text
		},
		Files: func(name string) []string { return []string{name} },
		Diff:  diffFiles,
		Back: func(rec *host.Record, name string) host.Change {
			if name == proxyFile || name == ConfigFile {
				return restoreChange(true)
			}
			return host.Becomes("file")(rec, name)
		},
	},
	{
		Key:   imageKey,
		Names: func(want Spec, _ Facts) []string { return keys(want.Images) },
		Was: func(_ Spec, have Facts, ref string) any {
			if !have.Seen {
				return nil
			}
			return have.Images[ref]
		},
		Diff: func(want Spec, have Facts) []host.Change {
			unseen := !have.Seen && have.Version != "" && want.Config // the service must run before it can list images
			return diffImages(want.Images, have.Images, unseen)
		},
		Back: host.Becomes("image"),
	},
}

func restoreChange(reloads bool) host.Change {
	return host.Change{Fact: "containerd gets back what it had before", Disruption: host.RestartsContainer, Reloads: reloads}
}

// replaced reports whether a file is another one than there was before.
func replaced(rec *host.Record, name string) bool {
	was := false
	known, err := rec.ReadNote(fileKey+name, &was)
	return known && (was || err != nil)
}
