package image

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// Contents lists the files of an image before they are read. Close it when the
// image is no longer used.
type Contents struct {
	spec    Spec
	wheels  []*wheel
	trainer []entry
	gpu     []entry // files of CUDA
	files   []entry
}

// Collect lists the files of an image and refuses, as *Mistake, those that
// cannot be in one.
func Collect(spec Spec) (*Contents, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	c := &Contents{spec: spec}
	if err := c.collect(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Contents) collect() (err error) {
	if c.trainer, err = tree("trainer", TrainerPath, c.spec.Trainer); err != nil {
		return err
	}
	if len(c.trainer) != 1 || c.trainer[0].kind != tar.TypeReg {
		return mistake("trainer", "", "The trainer is no program", "%s is a folder.", c.spec.Trainer)
	}
	c.trainer[0].mode = 0o755
	if err := CheckTrainer(c.spec.Trainer, c.spec.Platform); err != nil {
		return err
	}
	if err := c.collectGPU(); err != nil {
		return err
	}
	for _, to := range sortedKeys(c.spec.Files) {
		found, err := tree("files", to, c.spec.Files[to])
		if err != nil {
			return err
		}
		c.files = append(c.files, found...)
	}
	if c.spec.Wheels != "" {
		if c.wheels, err = openWheels(&c.spec); err != nil {
			return err
		}
	}
	return conflicts(c.all())
}

// all are the entries of all layers.
func (c *Contents) all() []entry {
	all := slices.Concat(c.trainer, c.gpu, c.files)
	for _, w := range c.wheels {
		all = append(all, w.entries...)
	}
	return all
}

// Close gives the files of wheels back.
func (c *Contents) Close() error {
	var failed []error
	for _, w := range c.wheels {
		failed = append(failed, w.file.Close())
	}
	return errors.Join(failed...)
}

// conflicts refuses two things at one path, and a file that another one needs
// as a folder.
func conflicts(all []entry) error {
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	at := make(map[string]*entry, len(all))
	for i := range all {
		e := &all[i]
		if other, taken := at[e.name]; taken {
			return duplicateError(e, other, e.name)
		}
		at[e.name] = e
	}
	for i := range all {
		for dir := path.Dir(all[i].name); dir != "."; dir = path.Dir(dir) {
			if other, taken := at[dir]; taken && other.kind != tar.TypeDir {
				return duplicateError(&all[i], other, dir)
			}
		}
	}
	return nil
}

func duplicateError(e, other *entry, name string) error {
	return mistake(e.of, e.key, "Two files at one path",
		"Both %s and %s would be /%s in the image. Take one of them out.", other.source(), e.source(), name)
}

func (e *entry) source() string {
	if e.inside != "" {
		return e.inside
	}
	return e.from
}

// Fingerprint is a cheap sign of what the image would be: the specification, and
// names, sizes and times of files. Equal fingerprints, equal images of one base,
// as far as file systems tell. base is the base's digest, "" for none.
func (c *Contents) Fingerprint(base string) (string, error) {
	h := sha256.New()
	text, err := json.Marshal(c.spec)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "1 %s %q\n", text, base) // 1: how images are put together
	for _, list := range [][]entry{c.trainer, c.gpu, c.files} {
		for i := range list {
			e := &list[i]
			fmt.Fprintf(h, "%q %q %c %o %q %s\n", e.name, e.from, e.kind, e.mode, e.link, e.stamp)
		}
	}
	for _, w := range c.wheels {
		fmt.Fprintf(h, "%q %s\n", w.path, w.stamp)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Sums reads everything once and returns what a plan shows: the path in the
// image, or the name of a wheel, and the hash of what lies there. Wheels are
// checked against their own lists of hashes.
func (c *Contents) Sums(ctx context.Context) (map[string]string, error) {
	sums := make(map[string]string, len(c.files)+len(c.wheels)+1)
	for _, list := range [][]entry{c.trainer, c.gpu, c.files} {
		for i := range list {
			e := &list[i]
			if err := e.hash(ctx); err != nil {
				return nil, err
			}
			sums["/"+e.name] = e.displayName()
		}
	}
	for _, w := range c.wheels {
		sum, err := w.verify(ctx)
		if err != nil {
			return nil, err
		}
		sums[w.name] = sum
	}
	return sums, nil
}

// displayName is what people see of an entry.
func (e *entry) displayName() string {
	switch {
	case e.kind == tar.TypeSymlink:
		return "link to " + e.link
	case e.kind == tar.TypeDir:
		return "empty folder"
	case e.mode&0o111 != 0:
		return "sha256:" + e.sum + " executable"
	}
	return "sha256:" + e.sum
}

// hash reads a file's content for its sum.
func (e *entry) hash(ctx context.Context) error {
	if e.kind != tar.TypeReg {
		return nil
	}
	h := sha256.New()
	n, err := e.copy(ctx, h)
	if err != nil {
		return err
	}
	if n != e.size {
		return e.changed()
	}
	e.sum = hex.EncodeToString(h.Sum(nil))
	return nil
}

// copy writes the content to w, a part at a time.
func (e *entry) copy(ctx context.Context, w io.Writer) (int64, error) {
	from, err := e.open()
	if err != nil {
		return 0, mistake(e.of, e.key, "File cannot be read", "%s: %s.", e.source(), plainError(err))
	}
	defer from.Close()
	// One byte more than there was: a file that grew is noticed, and one that
	// never ends is not followed.
	n, err := io.Copy(w, io.LimitReader(interruptible{ctx, from}, e.size+1))
	if err != nil && ctx.Err() == nil {
		return n, mistake(e.of, e.key, "File cannot be read", "%s: %s.", e.source(), plainError(err))
	}
	return n, err
}

func (e *entry) changed() error {
	return mistake(e.of, e.key, "File changes while it is read", "%s is being written to. Plan again when that is over.", e.source())
}

// interruptible is a reader that ends with a context.
type interruptible struct {
	ctx  context.Context
	from io.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
