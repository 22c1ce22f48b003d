package packages

import (
	"context"
	"errors"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Unavailable is a declared package that apt has no version for.
type Unavailable struct {
	Package string
	Why     string // a sentence, with the versions that there are
}

// offeredScript asks apt for its offers with new lists, and leaves the machine's
// lists as they are: it works on a copy, with a configuration without hooks. $1
// are the packages' names; then comes the environment.
const offeredScript = `# read what repositories offer
d=$(mktemp -d /var/tmp/stoke-lists.XXXXXXXX) || exit
trap 'rm -rf -- "$d"' EXIT; trap 'exit 143' HUP INT TERM
chmod 755 "$d" && cp -a /var/lib/apt/lists "$d/lists" && mkdir -p "$d/lists/partial" || exit
names=$1; shift
{ apt-config dump | grep -v '^APT::Update::P[a-z]*-Invoke'
  printf '%s\n' 'Dir::Etc::parts "/dev/null";' 'Dir::Etc::main "/dev/null";' "Dir::State::Lists \"$d/lists\";" \
    'Dir::Cache::pkgcache "";' 'Dir::Cache::srcpkgcache "";' 'APT::Update::Error-Mode "any";' 'Acquire::Retries "1";'
} >"$d/conf"
out=$(timeout 100 "$@" APT_CONFIG="$d/conf" apt-get update -q 2>&1); status=$?
printf '%s\n' "$out" | awk '{ gsub("\t", " "); print "update\t" $0 }'
"$@" APT_CONFIG="$d/conf" apt-cache policy $names 2>/dev/null | awk '{ print "policy\t" $0 }'
printf 'status\t%s\nend\n' "$status"`

// missing handles packages without a version in apt: a new repository or new
// lists may bring them.
func (f *Forecast) missing(ctx context.Context, m host.Machine, want Spec, without []Unavailable, pending []string, have State) {
	if len(pending) > 0 {
		f.doubt(without, "the machine does not have repository "+strings.Join(pending, ", ")+" yet: apply adds it and asks apt again")
		return
	}
	var names []string
	for _, u := range without {
		names = append(names, u.Package)
	}
	var o aptOutput
	err := host.Look(ctx, m, "apt's lists", offeredScript, o.lines(), append([]string{strings.Join(names, " ")}, want.environment()...)...)
	open, versions, bad := o.finish()
	if err = errors.Join(err, bad); err != nil {
		f.doubt(without, "apt's lists on the machine may be old, and new ones cannot be had ("+firstLine(err)+"): apply asks apt again")
		return
	}
	var none []Unavailable
	for _, name := range names {
		p, now := have.Packages[name], versions[name]
		p.Versions = union(now.Versions, p.Versions)
		if v := newest(want.Packages[name].Version, p.Versions); v != "" {
			f.Notes = append(f.Notes, "apt's lists on the machine are old, new ones have "+name+" "+v+": apply refreshes them and asks apt again")
			continue
		}
		p.Versions = sortVersions(p.Versions)
		none = append(none, have.missing(name, want.Packages[name].Version, p.Versions))
	}
	if open != "" {
		f.doubt(none, open+": apply asks apt again")
		return
	}
	f.Missing = none
}

func (f *Forecast) doubt(without []Unavailable, why string) {
	for _, u := range without {
		f.Doubtful = append(f.Doubtful, Unavailable{u.Package, u.Why + "; " + why})
	}
}

type aptOutput struct{ update, policy, status string }

func (o *aptOutput) lines() host.Lines {
	add := func(to *string) func([]string) error {
		return func(f []string) error { *to += f[0] + "\n"; return nil }
	}
	return host.Lines{"update": host.Fields(1, add(&o.update)), "policy": host.Fields(0, add(&o.policy)), "status": host.Fields(1, host.Text(&o.status)).ExactlyOnce()}
}

func (o *aptOutput) finish() (open string, versions map[string]Offer, err error) {
	if problems := parseUpdate(o.update); len(problems) > 0 {
		open = (&UpdateError{Problems: problems}).Error()
	} else if o.status != "0" {
		open = "apt-get update ended with status " + o.status
	}
	versions, err = parsePolicy(o.policy)
	return open, versions, err
}
