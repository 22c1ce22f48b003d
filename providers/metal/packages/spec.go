package packages

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Spec is what apt is to have on a machine.
type Spec struct {
	// Owner is the kind of the host.Record, such as "host". It names the files
	// that belong to this Spec: letters, digits and dashes.
	Owner        string
	Proxy        *Proxy // nil: as it is
	Repositories map[string]Repository
	Packages     map[string]Package // by name, or by name:architecture for a foreign one
	Absent       []string           // packages that must not be there
	// Pinned are the versions that apt prefers for other packages, by pattern of
	// their names, such as "*nvidia*": for packages that have such a version.
	Pinned map[string]string
	// Allow are packages that apt may upgrade, downgrade or remove where
	// what is declared needs that.
	Allow []string
	// Patience is for how long apt's lock is waited for; 0: 5 minutes.
	Patience time.Duration
	// Limit is what Apply may interrupt, as it was planned; nil: anything, which
	// is right where nothing runs on the machine yet.
	Limit *host.Disruption
}

// Proxy is what apt downloads through.
type Proxy struct {
	HTTP, HTTPS string   // URLs; "" for none
	Direct      []string // NO_PROXY: host names, .suffixes, addresses, networks
}

// Repository is where packages come from.
type Repository struct {
	URIs []string
	// Suites are names such as "bookworm", or one flat path that ends in "/".
	Suites        []string
	Components    []string // none for a flat path
	Architectures []string // none: the machine's
	Key           Key
	// Fingerprints are those of all primary keys that Key may hold: 40 or 64
	// hexadecimal digits.
	Fingerprints []string
	Why          string // who wants it, for messages
}

// Key is where a repository's key is: downloaded by the machine, or given.
type Key struct {
	URL    string
	Inline string // armored
}

// Package is one package that must be there.
type Package struct {
	// Version is an exact version, a pattern with "*", or "" for any: the
	// candidate where it is not installed, and whatever is installed otherwise.
	Version string
	Hold    bool // neither apt nor people change its version without asking
	// Exclude keeps unattended-upgrades away from it as well.
	Exclude bool
	Why     string // who wants it, for messages
}

var (
	ownerName   = pattern.New(`^[a-z0-9][a-z0-9-]{0,40}$`)
	packageName = pattern.New(`^[a-z0-9][a-z0-9+.-]{1,120}(:[a-z0-9-]{2,20})?$`)
	packageGlob = pattern.New(`^[a-z0-9*][a-z0-9*+.-]{1,120}$`)
	// versionGlob is Debian policy §5.6.12 and an asterisk.
	versionGlob = pattern.New(`^[A-Za-z0-9.+:~*-]{1,200}$`)
	suiteName   = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._:/~+-]{0,120}$`)
	wordName    = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._:/+-]{0,80}$`)
	fingerprint = pattern.New(`^([0-9A-F]{40}|[0-9A-F]{64})$`)
)

// Validate says everything that is wrong with a Spec.
func (s Spec) Validate() error {
	var all []error
	add := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if !ownerName.MatchString(s.Owner) {
		add("owner %q: want lower case letters, digits and dashes", s.Owner)
	}
	if s.Proxy != nil {
		all = append(all, s.Proxy.validate()...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Repositories)) {
		if !ownerName.MatchString(name) {
			add("repository %q: its name must be lower case letters, digits and dashes", name)
		}
		for _, err := range s.Repositories[name].validate() {
			add("repository %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Packages)) {
		if !packageName.MatchString(name) {
			add("package %q is not a name of a Debian package", name)
		}
		if v := s.Packages[name].Version; v != "" && !versionGlob.MatchString(v) {
			add(`package %s: version %q is neither a version nor a pattern such as "1.36.3-*"`, name, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Pinned)) {
		if v := s.Pinned[name]; !packageGlob.MatchString(name) || !versionGlob.MatchString(v) {
			add("pin of %q to %q: want a pattern of names and one of versions", name, v)
		}
	}
	for _, name := range slices.Concat(s.Absent, s.Allow) {
		if !packageName.MatchString(name) {
			add("package %q is not a name of a Debian package", name)
		}
	}
	for _, name := range s.Absent {
		if _, both := s.Packages[name]; both {
			add("package %s is declared to be there and to be absent", name)
		}
	}
	return errors.Join(all...)
}

func (p Proxy) validate() []error {
	var all []error
	for _, u := range []string{p.HTTP, p.HTTPS} {
		if u == "" {
			continue
		}
		v, err := url.Parse(u)
		switch {
		case err != nil || (v.Scheme != "http" && v.Scheme != "https" && v.Scheme != "socks5h") || v.Host == "" || unquotable(u):
			all = append(all, errors.New("apt's proxy must be a URL such as http://proxy.example.org:3128"))
		case v.User != nil:
			all = append(all, fmt.Errorf("apt's proxy %s: a user or password would be readable by all users of the "+
				"machine: put it into a file /etc/apt/auth.conf.d/proxy.conf of mode 0600 (apt_auth.conf(5))", WithoutUser(u)))
		}
	}
	for _, d := range p.Direct {
		if d == "" || unquotable(d) || strings.ContainsAny(d, ", ") {
			all = append(all, fmt.Errorf("no_proxy entry %q is not a host, suffix, address or network", d))
		}
	}
	return all
}

func (r Repository) validate() []error {
	var all []error
	add := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if len(r.URIs) == 0 {
		add("it has no URI")
	}
	for _, u := range r.URIs {
		if err := validURI(u, true); err != nil {
			all = append(all, err)
		}
	}
	if len(r.Suites) == 0 {
		add(`it has no suite: a name such as "bookworm", or a flat path such as "/"`)
	}
	for _, s := range r.Suites {
		flat := strings.HasSuffix(s, "/")
		switch {
		case !suiteName.MatchString(s) && s != "/" && s != "./":
			add("suite %q is neither a name nor a flat path that ends in a slash", s)
		case flat && len(r.Components) > 0:
			add("the flat path %q has no components", s)
		case !flat && len(r.Components) == 0:
			add("suite %s needs components, such as main", s)
		}
	}
	for _, w := range slices.Concat(r.Components, r.Architectures) {
		if !wordName.MatchString(w) {
			add("%q is neither a component nor an architecture", w)
		}
	}
	if (r.Key.URL == "") == (r.Key.Inline == "") {
		add("its key is either a URL or armored text")
	} else if r.Key.URL != "" {
		if err := validURI(r.Key.URL, false); err != nil {
			all = append(all, fmt.Errorf("key: %w", err))
		}
	}
	if len(r.Fingerprints) == 0 {
		add("the fingerprint of its key is required: gpg --show-keys shows it")
	}
	for _, f := range r.Fingerprints {
		if !fingerprint.MatchString(normalFingerprint(f)) {
			add("fingerprint %q: want the 40 or 64 hexadecimal digits of the whole fingerprint, not a key id", f)
		}
	}
	return all
}

// validURI takes what apt's methods do. Passwords would be readable by
// everybody on the machine.
func validURI(s string, deb bool) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || unquotable(s) || strings.ContainsAny(s, "[]"):
		return fmt.Errorf("URI %q cannot be read", WithoutUser(s))
	case u.User != nil:
		return fmt.Errorf("URI %s: a user or password would be readable by all users of the machine: put it into a "+
			"file /etc/apt/auth.conf.d/NAME.conf of mode 0600 (apt_auth.conf(5))", WithoutUser(s))
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return nil
	case (u.Scheme == "file" || u.Scheme == "copy" && deb) && strings.HasPrefix(u.Path, "/"):
		return nil
	}
	return fmt.Errorf("URI %q: want http, https or file", WithoutUser(s))
}

// WithoutUser is a URL for messages, which show no token and no password even of
// one that cannot be read.
func WithoutUser(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s
	}
	if scheme, _, ok := strings.Cut(s, "://"); ok && len(scheme) < at {
		return scheme + "://…" + s[at:]
	}
	return "…" + s[at:]
}

// unquotable reports characters that apt's configuration files cannot hold.
func unquotable(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '\\' || r == 0x7f || r == ';' || r == '{' || r == '}'
	})
}

// normalFingerprint takes spaces, colons and case out of a fingerprint.
func normalFingerprint(f string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", ":", "").Replace(strings.TrimPrefix(f, "0x")))
}

func (s Spec) patience() time.Duration {
	return cmp.Or(s.Patience, 5*time.Minute)
}

func (s Spec) names() []string {
	names := append(slices.Collect(maps.Keys(s.Packages)), s.Absent...)
	slices.Sort(names)
	return slices.Compact(names)
}
