package containerd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Restore puts back all that stoke changed, and has containerd run with that
// where it is still installed.
func Restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	_, known := rec.ReadNote(serviceKey, new(serviceWas))
	r, err := release(ctx, m, rec, Spec{})
	if err != nil || known != nil || !r.service {
		return r.outcomes, errors.Join(err, known)
	}
	out, err := host.Script(ctx, m, `for d in /var/lib/containerd /etc/cni; do [ ! -d "$d" ] || echo "$d"; done`)
	for d := range strings.Lines(string(out)) {
		r.outcomes = append(r.outcomes, host.Outcome{Fact: strings.TrimSpace(d), Fate: host.Left, Why: "it belongs to " +
			"containerd, with leftovers of containers; remove it once it is not needed"})
	}
	return r.outcomes, err
}

// putBack has the service run with its former configuration, or leaves it
// stopped or disabled as it was. $1 = reload is for another configuration.
const putBack = `# give back the service of containerd
export LC_ALL=C
[ ! -e /run/stoke-containerd-restart ] || set -- reload "$2" "$3" # a run that was cut off has given files back
[ "$1" != reload ] || systemctl daemon-reload
[ "$(systemctl show -p LoadState --value containerd.service)" = loaded ] || exit 0
[ "$2" = true ] || systemctl disable --no-reload --quiet containerd.service
v=start; [ "$1" != reload ] || v=restart
if [ "$3" = true ]; then systemctl $v containerd.service; else systemctl stop containerd.service; fi
rm -f /run/stoke-containerd-restart`

type released struct {
	outcomes []host.Outcome
	reload   bool // it has another configuration
	service  bool // the service is as before
}

func release(ctx context.Context, m host.Machine, rec *host.Record, want Spec) (released, error) {
	var r released
	images, err := restoreImages(ctx, m, rec, want.Images)
	r.outcomes = images
	failed := []error{err}
	for _, note := range rec.Keys(fileKey) {
		name := strings.TrimPrefix(note, fileKey)
		if want.Owns(name) {
			continue
		}
		if replaced(rec, name) && (name == proxyFile || name == ConfigFile) {
			if _, err := host.Run(ctx, m, "touch", restartMark); err != nil {
				failed = append(failed, err)
				continue
			}
			r.reload = true
		}
		given, err := rec.GiveBack(ctx, note, name)
		r.outcomes, failed = append(r.outcomes, given...), append(failed, err)
	}
	folders, err := rec.RemoveFolders(ctx, part, func(dir string) bool { return dir == DropIns && want.Config })
	r.outcomes = append(r.outcomes, folders...)
	failed = append(failed, err)
	var was serviceWas
	if known, err := rec.ReadNote(serviceKey, &was); err != nil || !known || want.Config || errors.Join(failed...) != nil {
		return r, errors.Join(append(failed, err)...)
	}
	how := ""
	if r.reload {
		how = "reload"
	}
	if _, err := host.Script(ctx, m, putBack, how, fmt.Sprint(was.Enabled), fmt.Sprint(was.Active)); err != nil {
		return r, fmt.Errorf("put containerd back: %w", err)
	}
	r.outcomes, r.service = append(r.outcomes, host.Outcome{Fact: "containerd", Fate: host.Restored}), true
	return r, rec.Forget(ctx, serviceKey)
}
