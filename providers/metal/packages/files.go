package packages

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Where what is ours goes. Nothing else under /etc/apt is ever written.
const (
	sourcesDir  = "/etc/apt/sources.list.d"
	keyringsDir = "/etc/apt/keyrings"
)

func sourcesFile(repository string) string { return sourcesDir + "/stoke-" + repository + ".sources" }
func keyringFile(repository string) string { return keyringsDir + "/stoke-" + repository + ".gpg" }
func pinFile(owner string) string          { return "/etc/apt/preferences.d/stoke-" + owner + ".pref" }
func proxyFile(owner string) string        { return "/etc/apt/apt.conf.d/95stoke-" + owner + "-proxy" }
func excludeFile(owner string) string      { return "/etc/apt/apt.conf.d/95stoke-" + owner + "-exclude" }

// settings are the files of a Spec, without the keyrings; an empty one is not
// needed.
func (s Spec) settings() map[string]string {
	files := map[string]string{
		pinFile(s.Owner): s.pins(), proxyFile(s.Owner): s.proxy(), excludeFile(s.Owner): s.exclude(),
	}
	for name, r := range s.Repositories {
		files[sourcesFile(name)] = r.render(keyringFile(name))
	}
	return files
}

// pinPriority is above every release and below 1001, from where apt downgrades by
// itself (apt_preferences(5)).
const pinPriority = 995

// pins keep apt's candidate within what is declared, whatever else there is:
// "apt upgrade" by hand takes the newest version of the pattern.
func (s Spec) pins() string {
	var b strings.Builder
	versions := maps.Clone(s.Pinned)
	for name, p := range s.Packages {
		if p.Version != "" {
			put(&versions, name, p.Version)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if b.Len() == 0 {
			fmt.Fprintf(&b, "Explanation: Written by stoke for %s; destroying that removes it.\n", s.Owner)
		} else {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "Package: %s\nPin: version %s\nPin-Priority: %d\n", name, versions[name], pinPriority)
	}
	return b.String()
}

// exclude keeps unattended-upgrades away: its list holds regular expressions
// that match from a name's beginning.
func (s Spec) exclude() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Packages)) {
		if !s.Packages[name].Exclude {
			continue
		}
		if b.Len() == 0 {
			fmt.Fprintf(&b, "// Written by stoke for %s; destroying that removes it.\n", s.Owner)
			b.WriteString("Unattended-Upgrade::Package-Blacklist {\n")
		}
		plain, _, _ := strings.Cut(name, ":")
		fmt.Fprintf(&b, "  \"%s$\";\n", strings.NewReplacer("+", `\+`, ".", `\.`).Replace(plain))
	}
	if b.Len() > 0 {
		b.WriteString("};\n")
	}
	return b.String()
}

// proxy is apt's own configuration. It supports neither suffixes nor networks,
// so that these are expanded for the known hosts; what we run gets them in its
// environment, too.
func (s Spec) proxy() string {
	p := s.Proxy
	if p == nil || p.HTTP == "" && p.HTTPS == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "// Written by stoke for %s; destroying that removes it.\n", s.Owner)
	direct := p.directHosts(s)
	for _, scheme := range []struct{ name, url string }{{"http", p.HTTP}, {"https", p.HTTPS}} {
		if scheme.url == "" {
			continue
		}
		fmt.Fprintf(&b, "Acquire::%s::Proxy \"%s\";\n", scheme.name, scheme.url)
		for _, host := range direct {
			fmt.Fprintf(&b, "Acquire::%s::Proxy::%s \"DIRECT\";\n", scheme.name, host)
		}
	}
	return b.String()
}

// directHosts returns the hosts that need no proxy: named ones, and hosts of
// the repositories that match a suffix or a network.
func (p Proxy) directHosts(s Spec) []string {
	var hosts []string
	for _, d := range p.Direct {
		if _, err := netip.ParsePrefix(d); err != nil && !strings.HasPrefix(d, ".") && !strings.HasPrefix(d, "*") && !strings.Contains(d, ":") {
			hosts = append(hosts, d)
		}
	}
	for _, r := range s.Repositories {
		for _, u := range append(slices.Clone(r.URIs), r.Key.URL) {
			if v, err := url.Parse(u); err == nil && v.Hostname() != "" && !strings.Contains(v.Hostname(), ":") && Excepted(p.Direct, v.Hostname()) {
				hosts = append(hosts, v.Hostname())
			}
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// Excepted reports whether no_proxy covers a network, an address or a name.
func Excepted(noProxy []string, network string) bool {
	want, err := netip.ParsePrefix(network)
	if addr, bad := netip.ParseAddr(network); bad == nil {
		want, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	return slices.ContainsFunc(noProxy, func(d string) bool {
		p, bad := netip.ParsePrefix(d)
		switch {
		case d == "*" || d == network:
			return true
		case err != nil:
			return strings.HasSuffix(network, "."+strings.TrimLeft(d, "*."))
		}
		return bad == nil && p.Bits() <= want.Bits() && p.Contains(want.Addr())
	})
}

// environment is the environment of apt: no questions, no locale that changes
// the parsed output, no automatic restarts of services.
func (s Spec) environment() []string {
	env := []string{"env", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "APT_LISTCHANGES_FRONTEND=none",
		"NEEDRESTART_SUSPEND=1", "NEEDRESTART_MODE=l", "UCF_FORCE_CONFFOLD=1"}
	if s.Proxy == nil {
		return env
	}
	for _, v := range []struct{ name, value string }{
		{"http_proxy", s.Proxy.HTTP}, {"https_proxy", s.Proxy.HTTPS}, {"no_proxy", strings.Join(s.Proxy.Direct, ",")},
	} {
		if v.value != "" {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}
