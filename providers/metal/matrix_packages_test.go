package metal

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/stokehq/stoke/providers/metal/packages"
)

// archive is an apt repository that the matrix declares.
type archive struct{ url, key, fingerprint string }

// packagesSamples need a real apt, with the packages stoke-demo, stoke-held and
// stoke-absent.
func packagesSamples(a archive) sampled {
	const packageRead = `dpkg-query -W -f '${db:Status-Abbrev}' %[1]s 2>/dev/null; :`
	const packageWrite = `export DEBIAN_FRONTEND=noninteractive
		case $1 in -) v=purge ;; *) v=install ;; esac; apt-get -qq -y --allow-change-held-packages $v %[1]s >&2
		case $1 in held) apt-mark -qq hold %[1]s >&2 ;; free) apt-mark -qq unhold %[1]s >&2 ;; esac`
	const fileWrite = `if [ "$1" = - ]; then rm -f %[1]s; else printf '%%s' "$1" >%[1]s; fi`
	const exclude, pins, source, keyring = "/etc/apt/apt.conf.d/95stoke-host-exclude", "/etc/apt/preferences.d/stoke-host.pref",
		"/etc/apt/sources.list.d/stoke-matrix.sources", "/etc/apt/keyrings/stoke-matrix.gpg"
	return sampled{keys: packages.Table.Keys(), samples: []sample{
		{key: "packages package stoke-demo", path: []string{"packages", "stoke-demo"}, value: map[string]any{}, names: []string{"package stoke-demo"},
			read: fmt.Sprintf(packageRead, "stoke-demo"), write: fmt.Sprintf(packageWrite, "stoke-demo"), right: "there", before: "-", drift: "-", apt: true},
		{key: "packages package stoke-absent", path: []string{"absent_packages"}, value: []any{"stoke-absent"}, names: []string{"package stoke-absent"},
			read: fmt.Sprintf(packageRead, "stoke-absent"), write: fmt.Sprintf(packageWrite, "stoke-absent"), right: "-", before: "there", drift: "there", apt: true},
		{key: "packages package stoke-held", path: []string{"packages", "stoke-held"}, value: map[string]any{"version": "1.0", "hold": true},
			names: []string{"hold of stoke-held", "package stoke-held"},
			read:  fmt.Sprintf(packageRead, "stoke-held"), write: fmt.Sprintf(packageWrite, "stoke-held"), right: "held", before: "free", drift: "free", apt: true},
		{key: "packages file " + exclude, with: true, names: []string{"exclusion from unattended-upgrades"},
			read: "cat " + exclude + " 2>/dev/null; :", write: fmt.Sprintf(fileWrite, exclude),
			right:  "// Written by stoke for host; destroying that removes it.\nUnattended-Upgrade::Package-Blacklist {\n  \"stoke-held$\";\n};\n",
			before: "-", drift: "// another\n", apt: true},
		{key: "packages file " + pins, with: true, names: []string{"version pins"},
			read: "cat " + pins + " 2>/dev/null; :", write: fmt.Sprintf(fileWrite, pins),
			right:  "Explanation: Written by stoke for host; destroying that removes it.\nPackage: stoke-held\nPin: version 1.0\nPin-Priority: 995\n",
			before: "Package: stoke-held\nPin: version 0.9\nPin-Priority: 300\n", drift: "-", apt: true},
		{key: "packages repository matrix", path: []string{"apt_repositories", "matrix"},
			value: map[string]any{"uris": []any{a.url}, "suites": []any{"/"}, "key": a.key, "key_fingerprints": []any{a.fingerprint}}, names: []string{"repository matrix"},
			read: fmt.Sprintf("cat %s 2>/dev/null; base64 -w0 %s 2>/dev/null; :", source, keyring),
			write: fmt.Sprintf(`if [ "$1" = - ]; then rm -f %[1]s %[2]s; else printf '%%s' "$1" >%[1]s; echo '%[3]s' | base64 -d >%[2]s; fi`,
				source, keyring, dearmored(a.key)),
			right:  "# Written by stoke; destroying all that declares it removes it.\nTypes: deb\nURIs: " + a.url + "\nSuites: /\nSigned-By: " + keyring + "\n",
			before: "-", drift: "Types: deb\nURIs: " + a.url + "other/\nSuites: /\nSigned-By: " + keyring + "\n", apt: true},
	}}
}

// dearmored is an armored key's own content, in base64 (RFC 9580 §6.2).
func dearmored(armored string) string {
	_, body, _ := strings.Cut(strings.ReplaceAll(armored, "\r", ""), "\n\n")
	var b strings.Builder
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "=") || strings.HasPrefix(line, "-") {
			break
		}
		b.WriteString(strings.TrimSpace(line))
	}
	if _, err := base64.StdEncoding.DecodeString(b.String()); err != nil {
		return ""
	}
	return b.String()
}
