package system

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Spec is what is declared of a machine's operating system. Whatever is empty
// is not managed.
type Spec struct {
	Hostname string            // in lower case; a fully qualified name is one too
	SwapOff  bool              // no swap, now and after a reboot
	Modules  []string          // kernel modules, loaded now and at boot
	Sysctl   map[string]string // now and at boot
	Time     *Time
	Timezone string          // such as Europe/Berlin
	Files    map[string]File // by absolute path
}

// Time is how the clock is kept right.
type Time struct {
	Service string   // one of TimeServices; "" for the one that is installed
	Servers []string // names or addresses; empty leaves the distribution's
}

// File is a file with all that it holds.
type File struct {
	// Content is what the file is to hold. It is not needed to look at a file,
	// where Digest and Salt are enough.
	Content []byte
	// Digest is Digest(Salt, Content). A sensitive file needs a salt, because
	// the digest is kept and content may be guessed from one without.
	Digest, Salt string
	Sensitive    bool
	Mode         fs.FileMode // permission bits
	Owner, Group string      // names or numbers
}

// MaxFile is how large a file may be, in bytes.
const MaxFile = 16 << 20

// Digest is the hexadecimal SHA-256 of the salt's text followed by content.
func Digest(salt string, content []byte) string {
	h := sha256.New()
	h.Write([]byte(salt))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// Salt is a salt for a sensitive file on a machine. It is the same whenever it
// is asked for, because a plan that is made again has to be the same, and
// another for every machine and path, so that equal secrets do not look equal.
func Salt(machine, file string) string {
	sum := sha256.Sum256([]byte("stoke file\x00" + machine + "\x00" + file))
	return base32.StdEncoding.EncodeToString(sum[:])[:26]
}

var (
	label    = pattern.New(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	module   = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,55}$`)
	key      = pattern.New(`^[A-Za-z0-9_-]+([./][A-Za-z0-9_:@.-]+)+$`)
	server   = pattern.New(`^[A-Za-z0-9.:-]{1,253}$`)
	zone     = pattern.New(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`)
	userName = pattern.New(`^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,31}\$?$`)
	hexSHA   = pattern.New(`^[0-9a-f]{64}$`)
)

// Validate says everything that is wrong with the declaration.
func (s Spec) Validate() error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if s.Hostname != "" {
		wrong = append(wrong, ValidHostname(s.Hostname))
	}
	for _, m := range s.Modules {
		if !module.MatchString(m) {
			add("kernel module %q: a name is letters, digits, - and _", m)
		}
	}
	for _, k := range keys(s.Sysctl) {
		if _, err := sysctlPath(k); err != nil {
			add("sysctl %q: %w", k, err)
		}
		if v := s.Sysctl[k]; normalise(v) == "" || strings.ContainsAny(v, "\n\r\x00") || len(v) > 4096 {
			add("sysctl %s: the value is one line with something in it", k)
		}
	}
	if t := s.Time; t != nil {
		if t.Service != "" && !slices.Contains(TimeServices, t.Service) {
			add("time service %q: it is one of %s", t.Service, strings.Join(TimeServices, ", "))
		}
		for _, n := range t.Servers {
			if !server.MatchString(n) || strings.HasPrefix(n, "-") {
				add("time server %q is neither a name nor an address", n)
			}
		}
	}
	if s.Timezone != "" && !zone.MatchString(s.Timezone) {
		add("time zone %q: it is called as under /usr/share/zoneinfo, such as Europe/Berlin", s.Timezone)
	}
	for _, name := range keys(s.Files) {
		if err := s.Files[name].validate(name); err != nil {
			add("file %q: %w", name, err)
		}
	}
	return errors.Join(append(wrong, s.overlaps()...)...)
}

// overlaps are files that a fact beside them writes, too, and would not leave
// as they are declared.
func (s Spec) overlaps() []error {
	var wrong []error
	if f, both := s.Files["/etc/hosts"]; both && s.Hostname != "" && (f.Sensitive || !hostsHold(string(f.Content), s.Hostname)) {
		wrong = append(wrong, fmt.Errorf("file \"/etc/hosts\": hostname needs a line such as %q in it", ownAddress+" "+s.Hostname))
	}
	if _, both := s.Files["/etc/timezone"]; both && s.Timezone != "" {
		wrong = append(wrong, errors.New(`file "/etc/timezone": timezone writes it`))
	}
	return wrong
}

// ValidHostname checks a host name by RFC 1123, in lower case because that is
// what Kubernetes calls a node, and with the 64 bytes that Linux has for it.
func ValidHostname(name string) error {
	for _, l := range strings.Split(name, ".") {
		if !label.MatchString(l) {
			return fmt.Errorf("host name %q: each part is 1 to 63 lower-case letters, digits and hyphens, with no hyphen at its ends (RFC 1123)", name)
		}
	}
	if len(name) > 64 {
		return fmt.Errorf("host name %q has %d characters, Linux takes 64", name, len(name))
	}
	if strings.Trim(name, "0123456789.") == "" {
		return fmt.Errorf("host name %q would be read as an address", name)
	}
	if first, _, _ := strings.Cut(name, "."); first == "localhost" {
		return fmt.Errorf("host name %q means every machine itself, and systemd ignores it", name)
	}
	return nil
}

// kept are paths of special files and folders, and files that another fact
// writes.
var kept = []string{"/proc", "/sys", "/dev", "/run", "/var/run", "/tmp", host.Root, "/etc/fstab", "/etc/hostname",
	sysctlFile, modulesFile, timesyncdFile, chronyFile, cloudFile, "/etc/localtime"}

// owners are the users and groups that files name, as questions of look.
func (s Spec) owners() [][2]string {
	asked := map[[2]string]bool{}
	for _, f := range s.Files {
		for _, q := range [][2]string{{"passwd", f.Owner}, {"group", f.Group}} {
			if q[1] != "root" && strings.Trim(q[1], "0123456789") != "" {
				asked[q] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(asked), func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
}

func (f File) validate(name string) error {
	switch {
	case !path.IsAbs(name) || path.Clean(name) != name || name == "/":
		return errors.New("the path is absolute and has no . or .. or // in it")
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(name) > 4000:
		return errors.New("the path holds characters that no path should")
	case f.Mode&^fs.ModePerm != 0:
		return fmt.Errorf("mode %#o: only permission bits can be set", uint32(f.Mode))
	case !userName.MatchString(f.Owner) || !userName.MatchString(f.Group):
		return fmt.Errorf("owner %q and group %q have to be names or numbers", f.Owner, f.Group)
	case len(f.Content) > MaxFile:
		return fmt.Errorf("it has %d bytes, which is more than %d", len(f.Content), MaxFile)
	case !hexSHA.MatchString(f.Digest):
		return errors.New("its content is not known")
	case f.Sensitive && f.Salt == "":
		return errors.New("a sensitive file needs a salt")
	}
	for _, k := range kept {
		if name == k || strings.HasPrefix(name, k+"/") {
			return fmt.Errorf("%s is not for files", k)
		}
	}
	return nil
}
