package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/stokehq/stoke/runtime/run"
)

// Archive is a tarball of one image: an OCI layout, which containerd, podman
// and skopeo read, with the manifest.json that `docker load` needs for the same
// blobs. The writer's name is in the index, outside of the image.
type Archive string

// markKey is the annotation of the index with the owner's id.
const markKey = "dev.stoke.image.id"

// refKey names the image in an OCI layout; containerd wants all of the name
// under a key of its own.
const (
	refKey        = "org.opencontainers.image.ref.name"
	containerdKey = "io.containerd.image.name"
)

// Label is what an archive says of itself.
type Label struct {
	Owner  string // id of the resource that wrote it
	Digest string // of the image's manifest
	Tag    string // name by which the image is loaded
}

// ErrForeign: the file was not written by stoke.
var ErrForeign = errors.New("not written by stoke")

// ErrDamaged says that an archive of ours is not as it was written.
var ErrDamaged = errors.New("damaged")

// blob is one part of an image.
type blob struct {
	digest v1.Hash
	size   int64
	open   func() (io.ReadCloser, error)
}

// Write writes the image under a name beside the archive's and then gives it the
// name: a reader or a crash sees all of it or nothing. What a killed Write of
// the same owner has left is replaced.
func (a Archive) Write(ctx context.Context, img v1.Image, label Label, progress func(done, total int64)) (err error) {
	raw := a.raw(label.Owner)
	f, err := os.OpenFile(raw, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(raw))
		}
	}()
	if err := writeArchive(ctx, f, img, label, progress); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	if err := os.Rename(raw, string(a)); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return run.SyncDir(filepath.Dir(string(a)))
}

func (a Archive) raw(owner string) string {
	return filepath.Join(filepath.Dir(string(a)), "."+filepath.Base(string(a))+"."+owner+".new")
}

func writeArchive(ctx context.Context, to io.Writer, img v1.Image, label Label, progress func(done, total int64)) error {
	blobs, head, err := parts(img, label)
	if err != nil {
		return err
	}
	var done, total int64
	for _, b := range blobs {
		total += b.size
	}
	w := tar.NewWriter(to)
	for _, h := range head { // first: Label need not read the layers
		if err := writeFile(w, h.name, int64(len(h.content)), bytes.NewReader(h.content)); err != nil {
			return err
		}
	}
	written := make(map[v1.Hash]bool, len(blobs))
	for _, b := range blobs {
		if written[b.digest] {
			continue
		}
		written[b.digest] = true
		if err := b.write(ctx, w); err != nil {
			return err
		}
		if done += b.size; progress != nil {
			progress(done, total)
		}
	}
	return w.Close()
}

func (b blob) write(ctx context.Context, w *tar.Writer) error {
	from, err := b.open()
	if err != nil {
		return err
	}
	defer from.Close()
	sum := sha256.New()
	if err := writeFile(w, blobName(b.digest), b.size, io.TeeReader(interruptible{ctx, from}, sum)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != b.digest.Hex {
		return fmt.Errorf("blob %s has other content: %w", b.digest, ErrDamaged)
	}
	return nil
}

func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

func writeFile(w *tar.Writer, name string, size int64, from io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: epoch}); err != nil {
		return err
	}
	if _, err := io.Copy(w, from); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// document is one of the small files at an archive's beginning.
type document struct {
	name    string
	content []byte
}

// parts lists what an archive consists of.
func parts(img v1.Image, label Label) (blobs []blob, head []document, err error) {
	m, err := img.Manifest()
	if err != nil {
		return nil, nil, err
	}
	manifest, err := img.RawManifest()
	if err != nil {
		return nil, nil, err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return nil, nil, err
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, nil, err
	}
	given := func(h v1.Hash, content []byte) blob {
		return blob{h, int64(len(content)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
	}
	blobs = []blob{given(digest, manifest), given(m.Config.Digest, config)}
	layers, err := img.Layers()
	if err != nil {
		return nil, nil, err
	}
	loaded := dockerEntry{Config: blobName(m.Config.Digest), RepoTags: []string{label.Tag}}
	for i, l := range layers {
		blobs = append(blobs, blob{m.Layers[i].Digest, m.Layers[i].Size, l.Compressed})
		loaded.Layers = append(loaded.Layers, blobName(m.Layers[i].Digest))
	}
	head, err = documents(m.MediaType, digest, int64(len(manifest)), label, loaded)
	return blobs, head, err
}

// dockerEntry is one image in the list that `docker load` reads.
type dockerEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func documents(kind types.MediaType, digest v1.Hash, size int64, label Label, loaded dockerEntry) ([]document, error) {
	tag := label.Tag[strings.LastIndex(label.Tag, ":")+1:]
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex,
		Manifests: []v1.Descriptor{{MediaType: kind, Digest: digest, Size: size,
			Annotations: map[string]string{refKey: tag, containerdKey: label.Tag}}},
		Annotations: map[string]string{markKey: label.Owner}}
	var head []document
	for _, d := range []struct {
		name  string
		value any
	}{{"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}}, {"index.json", index}, {"manifest.json", []dockerEntry{loaded}}} {
		text, err := json.Marshal(d.value)
		if err != nil {
			return nil, err
		}
		head = append(head, document{d.name, text})
	}
	return head, nil
}

// Label reads who wrote the archive and which image it holds: fs.ErrNotExist,
// or ErrForeign for a file that is none of ours.
func (a Archive) Label() (Label, error) {
	f, err := os.Open(string(a))
	if err != nil {
		return Label{}, err
	}
	defer f.Close()
	label, err := readLabel(tar.NewReader(f))
	if err != nil {
		return Label{}, fmt.Errorf("%s: %w", a, ErrForeign)
	}
	return label, nil
}

// readLabel reads up to the index, which is the second file.
func readLabel(r *tar.Reader) (Label, error) {
	for _, want := range []string{"oci-layout", "index.json"} {
		h, err := r.Next()
		if err != nil {
			return Label{}, err
		}
		if h.Name != want || h.Size > 1<<20 {
			return Label{}, ErrForeign
		}
	}
	var index v1.IndexManifest
	if err := json.NewDecoder(io.LimitReader(r, 1<<20)).Decode(&index); err != nil {
		return Label{}, err
	}
	owner := index.Annotations[markKey]
	if owner == "" || len(index.Manifests) != 1 {
		return Label{}, ErrForeign
	}
	of := index.Manifests[0]
	return Label{Owner: owner, Digest: of.Digest.String(), Tag: of.Annotations[containerdKey]}, nil
}

// Verify reads all of an archive of ours: ErrDamaged where a blob is not what its
// name says, or something is missing.
func (a Archive) Verify(ctx context.Context) error {
	label, err := a.Label()
	if err != nil {
		return err
	}
	f, err := os.Open(string(a))
	if err != nil {
		return err
	}
	defer f.Close()
	r := tar.NewReader(interruptible{ctx, f})
	there := make(map[string]bool)
	var listed []dockerEntry
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = checkMember(r, h, &listed)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w: %w", a, ErrDamaged, err)
		}
		there[h.Name] = true
	}
	if len(listed) != 1 {
		return fmt.Errorf("%s: %w: it lists %d images", a, ErrDamaged, len(listed))
	}
	for _, name := range append(listed[0].Layers, listed[0].Config, "blobs/"+strings.Replace(label.Digest, ":", "/", 1)) {
		if !there[name] {
			return fmt.Errorf("%s: %w: %s is missing", a, ErrDamaged, name)
		}
	}
	return nil
}

func checkMember(r io.Reader, h *tar.Header, listed *[]dockerEntry) error {
	digits, isBlob := strings.CutPrefix(h.Name, "blobs/sha256/")
	switch {
	case isBlob:
		sum := sha256.New()
		if _, err := io.Copy(sum, r); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) != digits {
			return fmt.Errorf("blob %s has other content", digits)
		}
	case h.Name == "manifest.json":
		return json.NewDecoder(io.LimitReader(r, 1<<20)).Decode(listed)
	}
	return nil
}

// Remove deletes the archive where its owner wrote it, and what a killed Write
// has left. A file that is not the owner's is left alone.
func (a Archive) Remove(owner string) error {
	if err := a.Clean(owner); err != nil {
		return err
	}
	label, err := a.Label()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrForeign):
		return nil
	case err != nil:
		return err
	case label.Owner != owner:
		return nil
	}
	if err := os.Remove(string(a)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return run.SyncDir(filepath.Dir(string(a)))
}

// Clean removes what a killed Write of the owner has left.
func (a Archive) Clean(owner string) error {
	if err := os.Remove(a.raw(owner)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
