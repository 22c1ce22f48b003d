package packages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// State is what apt and dpkg have on a machine, as far as a Spec asks.
type State struct {
	OS           string // ID in os-release, which says what manages packages
	Architecture string
	Packages     map[string]Installed // by name, or name:architecture for a foreign one
	Broken       []string             // packages that dpkg has not finished, with how far it came
	Interrupted  bool                 // dpkg was cut off in the middle of writing its database
	Files        map[string]File      // existing files of stoke
	Sources      []source             // of apt, all of them, ours too
	Locks        []Lock
	Owners       map[string][]string // of repositories of ours: the kinds of the records that know of them
}

// Installed is the observed state of one package.
type Installed struct {
	Status    byte // status of dpkg: i for installed, c for only configuration files, 0 for absent
	Version   string
	Held      bool
	Auto      bool // installed because another package needs it
	Scripts   bool // its maintainer scripts, installed or in apt's cache, call systemd
	Candidate string
	Versions  []string // that can be had, newest first
	Preferred string   // a version that foreign preferences put above all declared ones
}

// unfinished reports whether dpkg has work left from before.
func (st State) unfinished() bool { return len(st.Broken) > 0 || st.Interrupted }

// UnsupportedError: the machine has no supported package manager.
type UnsupportedError struct{ OS string }

func (e UnsupportedError) Error() string {
	return fmt.Sprintf("stoke prepares Ubuntu 22.04 and 24.04 and Debian 12 and 13, this is %q: install one of those, or leave packages to whatever manages them there", e.OS)
}

// IsInstalled reports whether the package is installed, in whatever condition.
func (p Installed) IsInstalled() bool { return p.Status != 0 && p.Status != 'c' && p.Status != 'n' }

// File is a file of ours.
type File struct {
	Mode, Owner string // such as 644 and root:root
	Content     []byte
}

// Lock names the holder of one of apt's locks.
type Lock struct {
	File    string
	PID     int
	Command string
}

func (l Lock) String() string {
	name, _, _ := strings.Cut(l.Command, "\n")
	if name == "" {
		name = "a process"
	}
	return fmt.Sprintf("%s (process %d, %s)", name, l.PID, l.File)
}

// locksScript lists who holds apt's locks, as the kernel knows it.
const locksScript = `
locks() {
  for f in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock /var/cache/apt/archives/lock; do
    [ -e "$f" ] || continue
    i=$(stat -c %i "$f")
    awk -v i="$i" '{ n = split($6, d, ":"); if ($2 == "POSIX" && d[n] == i) print $5 }' /proc/locks |
    while read -r p; do
      [ "$p" != "$$" ] || continue
      printf 'lock\t%s\t%s\t%s\n' "$f" "$p" "$(tr '\000\t\n' '   ' 2>/dev/null <"/proc/$p/cmdline" | head -c 80)"
    done
  done
}
`

// systemdScript reports whether the maintainer scripts of a package call systemd: of
// the installed package, or of an archive in apt's cache.
const systemdScript = `
systemd() {
  p=${1%%:*}
  cat /var/lib/dpkg/info/"$p".p* /var/lib/dpkg/info/"$p":*.p* 2>/dev/null | grep -qE 'deb-systemd-|systemctl' && return
  for d in /var/cache/stoke-*/"$p"_*.deb; do
    if [ -e "$d" ] && dpkg-deb --ctrl-tarfile "$d" 2>/dev/null | tar -xO 2>/dev/null | grep -qaE 'deb-systemd-|systemctl'; then return; fi
  done
  return 1
}
`

// observeScript prints a line for each fact, which begins with its kind. $1
// holds the packages' names, $2 onwards our files.
const observeScript = "# observe packages\n" + locksScript + systemdScript + `
export LC_ALL=C
printf 'os\t%s\n' "$(. /etc/os-release 2>/dev/null; printf %s "$ID")"
command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || { echo end; exit 0; }
printf 'apt\t%s\n' "$(dpkg --print-architecture)"
names=$1; shift
pick='BEGIN { n = split(names, a, " "); for (i = 1; i <= n; i++) { split(a[i], b, ":"); want[b[1]] = 1 } }'
dpkg-query -W -f '${db:Status-Abbrev}\t${db:Status-Eflag}\t${Package}\t${Architecture}\t${Version}\n' 2>/dev/null |
  awk -F '\t' -v names="$names" "$pick"' $3 in want || $2 != "ok" || substr($1, 2, 1) !~ /[icn]/ { print "pkg\t" $0 }'
[ ! -r /var/lib/apt/extended_states ] ||
  awk -v names="$names" "$pick"' $1 == "Package:" { p = $2 } $1 == "Architecture:" { arch = $2 }
    $1 == "Auto-Installed:" && $2 == 1 && p in want { print "auto\t" p "\t" arch }' /var/lib/apt/extended_states
for f in /var/lib/dpkg/updates/[0-9]*; do [ ! -e "$f" ] || { echo interrupted; break; }; done
for n in $names; do ! systemd "$n" || printf 'scripts\t%s\n' "$n"; done
[ -z "$names" ] || apt-cache policy $names 2>/dev/null | awk '{ print "policy\t" $0 }'
for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
  [ -f "$f" ] && printf 'source\t%s\t%s\n' "$f" "$(head -c 262144 -- "$f" | base64 -w0)"
done
for f; do
  [ -f "$f" ] && printf 'file\t%s\t%s\t%s\n' "$f" "$(stat -Lc '%a %U:%G' -- "$f")" "$(head -c 1048577 -- "$f" | base64 -w0)"
done
for r in /var/lib/stoke/*/record.json; do
  [ -f "$r" ] || continue
  k=${r%/*}
  sed -n 's|^ *"file /etc/apt/sources.list.d/stoke-\([a-z0-9-]*\)\.sources":.*|\1|p' "$r" | while read -r n; do printf 'owner\t%s\t%s\n' "$n" "${k##*/}"; done
done
locks
echo end`

// Observe looks at what the Spec speaks of, in one round trip.
func Observe(ctx context.Context, m host.Machine, want Spec) (State, error) {
	return observe(ctx, m, want, nil)
}

func observe(ctx context.Context, m host.Machine, want Spec, more []string) (State, error) {
	if err := want.Validate(); err != nil {
		return State{}, err
	}
	files := slices.Sorted(maps.Keys(want.settings()))
	for name := range want.Repositories {
		files = append(files, keyringFile(name))
	}
	slices.Sort(files)
	names := union(want.names(), more)
	r := &reader{names: names, st: State{Packages: map[string]Installed{}, Files: map[string]File{}}}
	if err := host.Look(ctx, m, "the packages", observeScript, r.lines(), append([]string{strings.Join(names, " ")}, files...)...); err != nil {
		return r.st, err
	}
	if err := r.finish(); err != nil {
		return r.st, fmt.Errorf("look at the packages: %w", err)
	}
	return r.st, nil
}

type reader struct {
	st     State
	names  []string
	policy strings.Builder
}

func (r *reader) lines() host.Lines {
	st := &r.st
	set := func(key string, change func(*Installed)) {
		if slices.Contains(r.names, key) {
			p := st.Packages[key]
			change(&p)
			st.Packages[key] = p
		}
	}
	return host.Lines{
		"os":          host.Fields(1, host.Text(&st.OS)),
		"apt":         host.Fields(1, host.Text(&st.Architecture)),
		"pkg":         host.Fields(5, func(f []string) error { return st.addPackage(f, set) }),
		"auto":        host.Fields(2, func(f []string) error { set(st.key(f[0], f[1]), func(p *Installed) { p.Auto = true }); return nil }),
		"scripts":     host.Fields(1, func(f []string) error { set(f[0], func(p *Installed) { p.Scripts = true }); return nil }),
		"interrupted": host.Fields(0, func([]string) error { st.Interrupted = true; return nil }),
		"policy":      host.Fields(0, func(f []string) error { r.policy.WriteString(f[0] + "\n"); return nil }),
		"source":      host.Data(2, func(f []string) error { st.Sources = append(st.Sources, parseSources(f[0], f[1])...); return nil }),
		"file": host.Data(3, func(f []string) error {
			mode, owner, _ := strings.Cut(f[1], " ")
			st.Files[f[0]] = File{Mode: mode, Owner: owner, Content: []byte(f[2])}
			return nil
		}),
		"owner": host.Fields(2, func(f []string) error {
			put(&st.Owners, f[0], append(st.Owners[f[0]], f[1]))
			return nil
		}),
		"lock": host.Fields(3, st.addLock),
	}
}

func (r *reader) finish() error {
	if os := r.st.OS; os != "debian" && os != "ubuntu" {
		return UnsupportedError{OS: os}
	}
	if r.st.Architecture == "" {
		return fmt.Errorf("apt-get or dpkg-query is missing, or does not say the machine's architecture")
	}
	versions, err := parsePolicy(r.policy.String())
	for _, name := range r.names {
		p := r.st.Packages[name]
		p.Candidate, p.Versions, p.Preferred = versions[name].Candidate, versions[name].Versions, versions[name].preferred
		r.st.Packages[name] = p
	}
	return err
}

func (st State) key(name, arch string) string {
	if arch == "all" || arch == st.Architecture || arch == "" {
		return name
	}
	return name + ":" + arch
}

// addPackage reads status, error flag, name, architecture and version.
func (st *State) addPackage(f []string, set func(string, func(*Installed))) error {
	if len(f[0]) < 2 || f[2] == "" {
		return fmt.Errorf("%.80q cannot be read", f)
	}
	key, status := st.key(f[2], f[3]), f[0][1]
	if words := map[byte]string{'H': "half-installed", 'U': "unpacked", 'F': "half-configured", 'W': "awaits triggers", 't': "has triggers pending"}; words[status] != "" {
		st.Broken = append(st.Broken, key+" ("+words[status]+")")
	} else if f[1] != "ok" {
		st.Broken = append(st.Broken, key+" (has to be installed again)")
	}
	set(key, func(p *Installed) { p.Status, p.Version, p.Held = status, f[4], f[0][0] == 'h' })
	return nil
}

func (st *State) addLock(f []string) error {
	pid, err := strconv.Atoi(f[1])
	if err != nil {
		return fmt.Errorf("%s is held by %q", f[0], f[1])
	}
	st.Locks = append(st.Locks, Lock{File: f[0], PID: pid, Command: strings.TrimSpace(f[2])})
	return nil
}
