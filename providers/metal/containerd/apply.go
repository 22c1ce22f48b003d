package containerd

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Notes in the record.
const (
	serviceKey = "containerd service"
	fileKey    = "containerd file "
	imageKey   = "containerd image "
	part       = "containerd" // whose folders they are
)

type serviceWas struct{ Enabled, Active bool }

// candidateFile is where a new configuration is tested before containerd gets
// it.
const candidateFile = "/etc/containerd/config.toml.stoke-new"

// takeConfig has containerd read the candidate $1, which replaces $2 only if it
// does.
const takeConfig = `# take a configuration of containerd that it can read
export LC_ALL=C PATH="$PATH:/usr/local/bin:/usr/sbin:/sbin"
if ! out=$(containerd --config "$1" config dump 2>&1 >/dev/null); then
	echo "containerd does not take the configuration:" >&2
	printf '%s\n' "$out" >&2
	rm -f -- "$1"
	exit 1
fi
: >/run/stoke-containerd-restart
mv -f -- "$1" "$2"`

// restart makes the service use the present files, and reports why it does not
// stay up. $1 = reload makes systemd read its units first, $2 = restart or
// start.
const restart = `# restart containerd
set -e
[ "$1" != reload ] || systemctl daemon-reload
[ "$(systemctl is-enabled containerd.service 2>/dev/null)" = enabled ] || systemctl enable --no-reload --quiet containerd.service
systemctl "$2" containerd.service || { journalctl -u containerd.service -n 15 --no-pager -o cat >&2; exit 1; }
n=0
until timeout 5 ctr version >/dev/null 2>&1; do
	n=$((n + 1))
	if [ $n -ge 30 ] || ! systemctl is-active --quiet containerd.service; then
		echo "containerd does not answer:" >&2
		journalctl -u containerd.service -n 15 --no-pager -o cat >&2
		exit 1
	fi
	sleep 1
done
rm -f /run/stoke-containerd-restart`

// Apply makes the runtime as it is declared, and puts back what was declared
// once and is no more. It restarts containerd where Diff says so.
func Apply(ctx context.Context, m host.Machine, rec *host.Record, want Spec, have Facts) error {
	released, err := release(ctx, m, rec, want)
	if err != nil {
		return err
	}
	host.ReportLeft(ctx, released.outcomes)
	if released.service && !want.empty() { // images are asked of what runs now
		if have, err = Observe(ctx, m, want); err != nil {
			return err
		}
	}
	if err := Table.Note(ctx, rec, want, have); err != nil {
		return err
	}
	changes, reload := Table.Diff(want, have), released.reload && !released.service
	if len(changes) == 0 && !reload {
		return nil
	}
	if have.Version == "" && !want.empty() {
		return errors.New("containerd is not installed: declare its package, containerd.io from Docker's repository or the distribution's containerd")
	}
	if err := applyFiles(ctx, m, rec, want.files(), have.Files); err != nil {
		return err
	}
	if want.Config {
		if err := applyConfig(ctx, m, rec, want, have); err != nil {
			return err
		}
	}
	if err := applyService(ctx, m, rec, want, have, changes, reload); err != nil {
		return err
	}
	if len(want.Images) > 0 && !have.Seen {
		if have, err = Observe(ctx, m, want); err != nil {
			return err
		}
		if !have.Seen {
			return errors.New("containerd does not say which images it has: look at the service with systemctl status containerd")
		}
	}
	return applyImages(ctx, m, rec, want.Images, have.Images)
}

func applyFiles(ctx context.Context, m host.Machine, rec *host.Record, want, have map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have[name] == want[name] {
			continue
		}
		if name == proxyFile { // before it is there: it takes a restart
			if _, err := host.Run(ctx, m, "touch", restartMark); err != nil {
				return err
			}
		}
		if err := write(ctx, m, rec, name, name, want[name]); err != nil {
			return err
		}
	}
	return nil
}

// write keeps a file and writes another in its stead, or beside it where at is
// another place.
func write(ctx context.Context, m host.Machine, rec *host.Record, name, at, text string) error {
	if !replaced(rec, name) {
		if err := rec.Set(ctx, fileKey+name, true); err != nil {
			return err
		}
	}
	if err := rec.KeepFile(ctx, name); err != nil {
		return err
	}
	if err := rec.MakeFolder(ctx, part, path.Dir(name)); err != nil {
		return err
	}
	return m.Put(ctx, ssh.File{Path: at, Content: []byte(text), Mode: 0o644, Owner: "root:root"})
}

func applyConfig(ctx context.Context, m host.Machine, rec *host.Record, want Spec, have Facts) error {
	text, err := want.configFor(have.Version)
	if err != nil || text == have.Config {
		return err
	}
	host.Step(ctx, "writing containerd's configuration")
	if err := rec.MakeFolder(ctx, part, DropIns); err != nil {
		return err
	}
	if err := write(ctx, m, rec, ConfigFile, candidateFile, text); err != nil {
		return err
	}
	return host.Do(ctx, m, "check containerd's configuration", takeConfig, candidateFile, ConfigFile)
}

func applyService(ctx context.Context, m host.Machine, rec *host.Record, want Spec, have Facts, changes []host.Change, reload bool) error {
	touched := reload || have.Stale
	for _, c := range changes {
		what := c.Path[len(c.Path)-1]
		touched = touched || what == "config" || what == "proxy"
		reload = reload || what == "proxy"
	}
	if !want.Config && !touched || !touched && have.Active && have.Enabled {
		return nil
	}
	verb, how := "start", ""
	if touched {
		verb = "restart"
	}
	if reload || have.Stale {
		how = "reload"
	}
	host.Step(ctx, "%sing containerd", verb)
	return host.Do(ctx, m, ""+verb+" containerd", restart, how, verb)
}
