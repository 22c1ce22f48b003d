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
	r, err := release(ctx, m, rec, Spec{})
	if err != nil {
		return r.outcomes, err
	}
	var was serviceWas
	known, err := rec.Was(serviceKey, &was)
	if err != nil || !known {
		return r.outcomes, err
	}
	how := ""
	if r.reload {
		how = "reload"
	}
	if _, err := host.Script(ctx, m, putBack, how, fmt.Sprint(was.Enabled), fmt.Sprint(was.Active)); err != nil {
		return r.outcomes, fmt.Errorf("put containerd back: %w", err)
	}
	r.outcomes = append(r.outcomes, host.Outcome{Fact: "containerd", Fate: host.Restored})
	out, err := host.Script(ctx, m, `for d in /var/lib/containerd /etc/cni; do [ ! -d "$d" ] || echo "$d"; done`)
	if err != nil {
		return r.outcomes, err
	}
	for d := range strings.Lines(string(out)) {
		r.outcomes = append(r.outcomes, host.Outcome{Fact: strings.TrimSpace(d), Fate: host.Left, Why: "it is containerd's, with what containers left; remove it once nobody needs that"})
	}
	return r.outcomes, rec.Forget(ctx, serviceKey)
}

// putBack restarts the service with its former configuration, or leaves it
// stopped or disabled as it was.
const putBack = `export LC_ALL=C
[ "$1" != reload ] || systemctl daemon-reload
[ "$(systemctl show -p LoadState --value containerd.service)" = loaded ] || exit 0
[ "$2" = true ] || systemctl disable --no-reload --quiet containerd.service
if [ "$3" = true ]; then systemctl restart containerd.service; else systemctl stop containerd.service; fi
rm -f /run/stoke-containerd-restart`

type released struct {
	outcomes []host.Outcome
	reload   bool // a drop-in of the unit went
}

// release puts back what want does not declare any more.
func release(ctx context.Context, m host.Machine, rec *host.Record, want Spec) (released, error) {
	var r released
	images, err := restoreImages(ctx, m, rec, want.Images)
	r.outcomes = images
	failed := []error{err}
	keep := want.kept()
	for _, note := range rec.Keys(fileKey) {
		name := strings.TrimPrefix(note, fileKey)
		if _, still := keep[name]; still {
			continue
		}
		if name == proxyFile || name == ConfigFile {
			if _, err := host.Run(ctx, m, "touch", restartMark); err != nil {
				failed = append(failed, err)
				continue
			}
			r.reload = true
		}
		outcome, err := rec.RestoreFile(ctx, name)
		if err == nil {
			err = rec.Forget(ctx, note)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		r.outcomes = append(r.outcomes, outcome)
	}
	folders, err := rec.RemoveFolders(ctx, part, func(dir string) bool { return dir == DropIns && want.Config })
	r.outcomes = append(r.outcomes, folders...)
	return r, errors.Join(append(failed, err)...)
}

// Undoing is what Apply takes back because the record knows of it and want does
// not declare it; nil is all of it, as Restore.
func Undoing(rec *host.Record, want *Spec) []host.Change {
	restarts, reloads := len(rec.Keys(serviceKey)) > 0, len(rec.Keys(fileKey)) > 0
	var keep map[string]string
	images := map[string]Image{}
	if want != nil {
		restarts, reloads, keep, images = false, false, want.kept(), want.Images
	}
	var changes []host.Change
	for _, note := range rec.Keys(fileKey) {
		name := strings.TrimPrefix(note, fileKey)
		_, still := keep[name]
		switch {
		case still:
		case name != proxyFile && name != ConfigFile:
			changes = append(changes, host.Change{Fact: "file " + name + " becomes what it was before"})
		case want != nil:
			restarts, reloads = true, true
		}
	}
	for _, note := range rec.Keys(imageKey) {
		if ref := strings.TrimPrefix(note, imageKey); images[ref].Archive == "" {
			changes = append(changes, host.Change{Fact: "image " + ref + " becomes what it was before"})
		}
	}
	if restarts {
		changes = append(changes, host.Change{Fact: "containerd gets back what it had before", Disruption: host.RestartsContainer, Reloads: reloads})
	}
	return changes
}

// kept are the files that are stoke's while s is wanted.
func (s Spec) kept() map[string]string {
	keep := s.files()
	if s.Config {
		keep[ConfigFile] = ""
	}
	return keep
}
