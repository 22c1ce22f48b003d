package containerd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// ArchiveDigest reads an archive to its end and returns what Image.Archive
// calls it.
func ArchiveDigest(open func() (io.ReadCloser, error)) (string, error) {
	r, err := open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checked passes an archive on and fails at its end if it is another than the
// one that was planned.
type checked struct {
	io.ReadCloser
	want string
	sum  hash.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.sum.Write(p[:n])
	if err == io.EOF && hex.EncodeToString(c.sum.Sum(nil)) != c.want {
		return n, ssh.Permanent{Err: errors.New("the archive differs from the planned one: plan again")}
	}
	return n, err
}

func (i Image) open() (io.ReadCloser, error) {
	if i.Open == nil {
		return nil, errors.New("its archive is not known")
	}
	r, err := i.Open()
	if err != nil {
		return nil, err
	}
	return &checked{ReadCloser: r, want: i.Archive, sum: sha256.New()}, nil
}

const ctrPath = `export LC_ALL=C PATH="$PATH:/usr/local/bin:/usr/sbin:/sbin"
digest() { ctr -n k8s.io images ls "name==$1" | awk -v ref="$1" '$1 == ref { print $3 }'; }
`

const importArchive = "# import images\n" + ctrPath + `ctr -n k8s.io images import - >&2`

// labelImages takes the digest of an archive and then references, each with
// "pinned" or nothing, and labels them as having come from it.
const labelImages = "# label images\n" + ctrPath + `a=$1; shift
while [ $# -ge 2 ]; do
	d=$(digest "$1")
	if [ -z "$d" ]; then
		echo "the archive has no image $1. There are:" >&2
		ctr -n k8s.io images ls -q >&2
		exit 1
	fi
	ctr -n k8s.io images label "$1" "dev.stoke.archive=$a@$d" "io.cri-containerd.pinned=$2" >/dev/null || exit 1
	shift 2
done`

// pinImage sets or clears the pin of reference $1: $2 is pinned or empty.
const pinImage = "# pin an image\n" + ctrPath + `ctr -n k8s.io images label "$1" "io.cri-containerd.pinned=$2" >/dev/null`

// applyImages imports each archive once, whatever declared images it has.
func applyImages(ctx context.Context, m host.Machine, rec *host.Record, want map[string]Image, have map[string]ImageFacts) error {
	was := map[string]any{}
	missing := map[string]bool{} // archives
	for ref, w := range want {
		h := have[ref]
		was[imageKey+ref] = h
		if h.Archive != w.Archive {
			missing[w.Archive] = true
		}
	}
	if err := rec.RememberAll(ctx, was); err != nil {
		return err
	}
	for _, archive := range slices.Sorted(maps.Keys(missing)) {
		if err := bring(ctx, m, archive, want, have); err != nil {
			return err
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(want)) {
		if w := want[ref]; !missing[w.Archive] && have[ref].Pinned != w.Pin {
			if _, err := host.Script(ctx, m, pinImage, ref, pinned(w.Pin)); err != nil {
				return fmt.Errorf("pin image %s: %w", ref, err)
			}
		}
	}
	return nil
}

// bring imports an archive and labels all declared images that are in it, since
// importing takes their labels away.
func bring(ctx context.Context, m host.Machine, archive string, want map[string]Image, have map[string]ImageFacts) error {
	var refs, replaced []string
	args := []string{archive}
	var image Image
	for _, ref := range slices.Sorted(maps.Keys(want)) {
		if want[ref].Archive == archive {
			refs, image = append(refs, ref), want[ref]
			args = append(args, ref, pinned(image.Pin))
			if h := have[ref]; h.Archive != "" && h.Archive != archive { // stoke brought it
				replaced = append(replaced, h.Digest)
			}
		}
	}
	names := strings.Join(refs, ", ")
	host.Step(ctx, "importing %s", names)
	cmd := host.Command{Args: []string{"sh", "-c", importArchive}, Open: image.open}
	if _, err := m.Run(ctx, cmd); err != nil {
		return fmt.Errorf("import %s: %w", names, err)
	}
	if _, err := host.Script(ctx, m, labelImages, args...); err != nil {
		return fmt.Errorf("import %s: %w", names, err)
	}
	if len(replaced) == 0 {
		return nil
	}
	return host.Do(ctx, m, "remove what "+names+" was before", dropNameless, replaced...)
}

// nameless removes what the kubelet's side calls the image of digest $1, its
// id, once it has no other name any more.
const nameless = `
nameless() {
	l=$(ctr -n k8s.io images ls | awk -v d="$1" '$3 == d { print $1 }')
	[ -z "$(printf '%s\n' "$l" | grep -v '^sha256:')" ] || return 0
	for r in $l; do ctr -n k8s.io images rm "$r" >/dev/null || return 1; done
}
`

const dropNameless = "# remove images without a name\n" + ctrPath + nameless + `for d in "$@"; do nameless "$d" || exit 1; done`

func pinned(pin bool) string {
	if pin {
		return "pinned"
	}
	return ""
}

func restoreImages(ctx context.Context, m host.Machine, rec *host.Record, want map[string]Image) ([]host.Outcome, error) {
	var outcomes []host.Outcome
	for _, note := range rec.Keys(imageKey) {
		ref := strings.TrimPrefix(note, imageKey)
		if _, still := want[ref]; still {
			continue
		}
		var was ImageFacts
		if _, err := rec.ReadNote(note, &was); err != nil {
			return outcomes, err
		}
		outcome, err := restoreImage(ctx, m, ref, was)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, outcome)
		if err := rec.Forget(ctx, note); err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

// dropImage removes image $1 when $2 is its digest or empty; otherwise it puts
// its labels back, $3 being the pin. It says what it did.
const dropImage = "# remove an image\n" + ctrPath + nameless + `[ -S /run/containerd/containerd.sock ] || { echo gone; exit 0; }
d=$(digest "$1")
if [ -z "$d" ]; then echo gone
elif [ -z "$2" ]; then
	ctr -n k8s.io images rm "$1" >/dev/null && nameless "$d" && echo removed
else
	ctr -n k8s.io images label "$1" dev.stoke.archive= "io.cri-containerd.pinned=$3" >/dev/null || exit 1
	if [ "$d" = "$2" ]; then echo restored; else echo other; fi
fi`

func restoreImage(ctx context.Context, m host.Machine, ref string, was ImageFacts) (host.Outcome, error) {
	out, err := host.Script(ctx, m, dropImage, ref, was.Digest, pinned(was.Pinned))
	if err != nil {
		return host.Outcome{}, fmt.Errorf("restore image %s: %w", ref, err)
	}
	outcome := host.Outcome{Fact: "image " + ref, Fate: host.Removed}
	switch strings.TrimSpace(string(out)) {
	case "restored":
		outcome.Fate = host.Restored
	case "other":
		outcome.Fate, outcome.Why = host.Left, "its previous image, "+was.Digest+", is no longer here"
	}
	return outcome, nil
}
