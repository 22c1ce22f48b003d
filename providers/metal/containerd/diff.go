package containerd

import (
	"maps"
	"slices"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Rendered is the config.toml that is wanted; known is false where it depends on
// the version that is to be installed yet.
func Rendered(want Spec, have Facts) (text string, known bool) {
	if !want.Config || have.Version == "" {
		return "", false
	}
	text, err := want.configFor(have.Version)
	return text, err == nil
}

// What Service says where all is well, and where only a restart is missing.
const (
	Running = "running and enabled"
	Stale   = "running, with a configuration that has been replaced since"
)

// Service is how the service is.
func (f Facts) Service() string {
	switch {
	case f.Version == "":
		return "not installed"
	case !f.Active:
		return "not running"
	case !f.Enabled:
		return "running, not enabled"
	case f.Stale:
		return Stale
	}
	return Running
}

// ProxyText is the service's drop-in for a proxy, "" for none.
func (s Spec) ProxyText() string { return s.files()[proxyFile] }

// ProxyText is the drop-in that the machine has.
func (f Facts) ProxyText() string { return f.Files[proxyFile] }

// MirrorText is the file that the machine has for a registry, "" for none.
func (f Facts) MirrorText(registry string) string { return f.Files[hostsFile(registry)] }

var endpoint = pattern.New(`(?m)^\s*\[host\.["'](.*)["']\]`)

// Endpoints are those that the machine's file for a registry names, in its order.
func (f Facts) Endpoints(registry string) []string {
	var urls []string
	for _, m := range endpoint.FindAllStringSubmatch(f.MirrorText(registry), -1) {
		urls = append(urls, m[1])
	}
	return urls
}

func diffService(want Spec, have Facts) []host.Change {
	if is := have.Service(); want.Config && is != Running && is != Stale {
		return []host.Change{{Fact: "containerd", Path: []string{"containerd_state", "service"}, Have: is, Want: Running}}
	}
	return nil
}

// diffFiles compares the configuration, the registries' files, which are read at
// every pull, and the proxy.
func diffFiles(want Spec, have Facts) []host.Change {
	var changes []host.Change
	add := func(fact, at, is, wants string, d host.Disruption) {
		changes = append(changes, host.Change{Fact: fact, Path: []string{"containerd_state", at}, Have: is, Want: wants, Disruption: d})
	}
	if text, known := Rendered(want, have); want.Config {
		switch {
		case have.Version == "":
			add("containerd's configuration", "config", "", "a file for the version that gets installed", host.None) // nothing runs in it yet
		case known && text != have.Config:
			add("containerd's configuration", "config", have.Config, text, restarts(have))
		case have.Active && have.Stale:
			add("containerd's configuration", "config", Stale, Running, host.RestartsContainer)
		}
	}
	files := want.files()
	for _, registry := range keys(want.Mirrors) {
		if name := hostsFile(registry); have.Files[name] != files[name] {
			changes = append(changes, host.Change{Fact: "mirror of " + registry, Path: []string{"containerd", "registry_mirrors", registry}, Have: have.Files[name], Want: files[name]})
		}
	}
	if want.Proxy != nil && have.Files[proxyFile] != files[proxyFile] {
		add("containerd's proxy", "proxy", have.Files[proxyFile], files[proxyFile], max(host.ReloadsSystemd, restarts(have)))
	}
	return changes
}

func restarts(have Facts) host.Disruption {
	if have.Active {
		return host.RestartsContainer
	}
	return host.None
}

// RestartEffects says who is concerned besides pods where containerd restarts.
func RestartEffects(have Facts, changes []host.Change) []string {
	if host.Greatest(changes) < host.RestartsContainer {
		return nil
	}
	var notes []string
	units := slices.Clone(have.Along)
	slices.Sort(units)
	for _, unit := range slices.Compact(units) {
		notes = append(notes, unit+" restarts with containerd")
	}
	if have.Docker && !slices.Contains(units, "docker.service") {
		notes = append(notes, "Docker loses containerd while it restarts, and connects again; its containers go on")
	}
	return notes
}

func diffImages(want map[string]Image, have map[string]ImageFacts, unseen bool) []host.Change {
	var changes []host.Change
	for _, ref := range keys(want) {
		w, h, at := want[ref], have[ref], []string{"images", ref}
		c := host.Change{Fact: "image " + ref, Path: at, Want: "archive sha256:" + w.Archive}
		switch {
		case unseen:
			c.Have = "not known while containerd does not run"
		case h.Archive != "":
			c.Have = "archive sha256:" + h.Archive
		case h.Digest != "":
			c.Have = "another image, " + h.Digest
		}
		if c.Have != c.Want {
			changes = append(changes, c)
		}
		if h.Digest != "" && h.Pinned != w.Pin {
			changes = append(changes, host.Change{Fact: "pin of image " + ref, Path: append(at, "pin"), Have: pin(h.Pinned), Want: pin(w.Pin)})
		}
	}
	return changes
}

func pin(p bool) string {
	if p {
		return "pinned"
	}
	return "not pinned"
}

func keys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
