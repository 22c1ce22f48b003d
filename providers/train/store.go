package train

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/stokehq/stoke/runtime/run"
)

// store is the absolute path of the folder in which prepared datasets lie,
// each in a folder named by the hash of its records:
//
//	<hash>/train.rio, test.rio, manifest.json   what the trainer made
//	<hash>/owners/<id>                          one file per resource that made or shares it
//	.new-<id>                                   being made
//	.lock                                       held while owners change
//
// Equal records are stored once; the last owner removes them.
type store string

// datasetID names one owner; it follows from the operation that creates it.
func datasetID(operation string) string {
	if operation == "" {
		var b [8]byte
		rand.Read(b[:]) // never fails
		return "data-" + hex.EncodeToString(b[:])
	}
	sum := sha256.Sum256([]byte("stoke dataset of operation " + operation))
	return "data-" + hex.EncodeToString(sum[:8])
}

func validDatasetID(id string) bool {
	digits, ok := strings.CutPrefix(id, "data-")
	return ok && len(digits) == 16 && strings.Trim(digits, "0123456789abcdef") == ""
}

func (s store) folder(hash string) string { return filepath.Join(string(s), hashDigits(hash)) }

// uri names a prepared folder to experiments.
func uri(folder string) string {
	return (&url.URL{Scheme: "file", Path: folder}).String()
}

// datasetFolder is the folder that an experiment's `dataset` means: a file
// URI or an absolute path.
func datasetFolder(dataset string) (string, error) {
	path := dataset
	if strings.HasPrefix(dataset, "file:") {
		u, err := url.Parse(dataset)
		if err != nil || u.Host != "" && u.Host != "localhost" {
			return "", fmt.Errorf("%q is not the URI of a folder on this machine", dataset)
		}
		path = u.Path
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is neither a file: URI nor an absolute path", dataset)
	}
	return filepath.Clean(path), nil
}

// readManifest reads the manifest of a prepared folder.
func readManifest(folder string) (manifest, error) {
	var m manifest
	if err := run.ReadJSON(filepath.Join(folder, "manifest.json"), &m); err != nil {
		return manifest{}, err
	}
	if err := m.check(); err != nil {
		return manifest{}, fmt.Errorf("read %s: %w", folder, err)
	}
	return m, nil
}

// lock is held while owners change, between processes too: for moments only.
func (s store) lock(ctx context.Context) (*flock.Flock, error) {
	l := flock.New(filepath.Join(string(s), ".lock"), flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("lock datasets: %w", err)
	}
	return l, nil
}

const lockRetry = 20 * time.Millisecond

// share makes id one more owner of a dataset that lies in the store already;
// fs.ErrNotExist or errDamaged says that it has to be added.
func (s store) share(ctx context.Context, id, operation, hash string) (manifest, error) {
	if _, err := os.Lstat(s.folder(hash)); err != nil {
		return manifest{}, err
	}
	l, err := s.lock(ctx)
	if err != nil {
		return manifest{}, err
	}
	defer l.Unlock()
	m, err := s.owned(hash)
	if err != nil {
		return manifest{}, err
	}
	return m, s.mark(s.folder(hash), id, operation)
}

// add prepares the dataset with that hash and makes id its owner. fill writes
// the files to the folder that it is given and returns their manifest.
func (s store) add(ctx context.Context, id, operation, hash string, fill func(folder string) (manifest, error)) (manifest, error) {
	raw := filepath.Join(string(s), ".new-"+id)
	if err := os.RemoveAll(raw); err != nil { // left by a crash
		return manifest{}, fmt.Errorf("add dataset: %w", err)
	}
	defer os.RemoveAll(raw) // of no effect once renamed
	if err := os.MkdirAll(string(s), 0o700); err != nil {
		return manifest{}, fmt.Errorf("add dataset: %w", err)
	}
	m, err := fill(raw)
	if err != nil {
		return manifest{}, err
	}
	if m.Hash != hash {
		return manifest{}, errChanged
	}
	if err := os.MkdirAll(filepath.Join(raw, "owners"), 0o700); err != nil {
		return manifest{}, fmt.Errorf("add dataset: %w", err)
	}
	if err := s.mark(raw, id, operation); err != nil {
		return manifest{}, fmt.Errorf("add dataset: %w", err)
	}
	l, err := s.lock(ctx)
	if err != nil {
		return manifest{}, err
	}
	defer l.Unlock()
	if err := s.install(raw, id, operation, hash); err != nil {
		return manifest{}, fmt.Errorf("add dataset: %w", err)
	}
	return m, run.SyncDir(string(s))
}

// install gives a prepared folder its name. Somebody else may have been
// faster; a damaged dataset of ours makes way but keeps its owners.
func (s store) install(raw, id, operation, hash string) error {
	folder := s.folder(hash)
	_, err := s.owned(hash)
	switch {
	case err == nil:
		return s.mark(folder, id, operation)
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, errDamaged):
		owners, err := os.ReadDir(filepath.Join(folder, "owners"))
		if err != nil {
			return err
		}
		for _, o := range owners {
			if !validDatasetID(o.Name()) || o.Name() == id {
				continue
			}
			if err := s.mark(raw, o.Name(), ""); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	default:
		return err
	}
	return os.Rename(raw, folder)
}

// errDamaged says that a dataset of ours is no longer whole.
var errDamaged = errors.New("prepared dataset is damaged")

// errChanged says that what was prepared is not what was planned.
var errChanged = errors.New("the source has changed since it was planned")

// owned returns the manifest of a dataset that lies in the store, made by us
// and whole: fs.ErrNotExist, errDamaged, or that it is not ours.
func (s store) owned(hash string) (manifest, error) {
	folder := s.folder(hash)
	info, err := os.Lstat(folder)
	if err != nil {
		return manifest{}, err
	}
	owners, err := os.Lstat(filepath.Join(folder, "owners"))
	if !info.IsDir() || err != nil || !owners.IsDir() {
		return manifest{}, fmt.Errorf("%s was not made by stoke: move it away", folder)
	}
	m, err := readManifest(folder)
	if err != nil || m.Hash != hash {
		return manifest{}, fmt.Errorf("%s: %w", folder, errDamaged)
	}
	for _, name := range []string{"train.rio", "test.rio"} {
		if info, err := os.Lstat(filepath.Join(folder, name)); err != nil || !info.Mode().IsRegular() {
			return manifest{}, fmt.Errorf("%s: %w", filepath.Join(folder, name), errDamaged)
		}
	}
	return m, nil
}

func (s store) mark(folder, id, operation string) error {
	return run.WriteJSON(filepath.Join(folder, "owners", id), struct {
		Operation string `json:"operation"`
	}{operation})
}

// hasDataset reports whether id owns a dataset with that hash that is there, whole.
func (s store) hasDataset(id, hash string) (manifest, bool) {
	if !validDatasetID(id) || hashDigits(hash) == "" {
		return manifest{}, false
	}
	if _, err := os.Lstat(filepath.Join(s.folder(hash), "owners", id)); err != nil {
		return manifest{}, false
	}
	m, err := s.owned(hash)
	return m, err == nil
}

// find returns the hash of the dataset that id owns, and removes what a killed
// preparation left. It is asked after a crash only.
func (s store) find(id string) (hash string, err error) {
	root, err := os.OpenRoot(string(s))
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.RemoveAll(".new-" + id); err != nil {
		return "", err
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		hash := "sha256:" + e.Name()
		if _, ok := s.hasDataset(id, hash); ok {
			return hash, nil
		}
	}
	return "", fs.ErrNotExist
}

// remove ends id's ownership; with the last owner goes the dataset. A folder
// that does not carry id's mark is left alone.
func (s store) remove(ctx context.Context, id, hash string) error {
	if !validDatasetID(id) || hashDigits(hash) == "" {
		return fmt.Errorf("remove dataset: %q of %q was not made by stoke", hash, id)
	}
	if !filepath.IsAbs(string(s)) {
		return fmt.Errorf("remove dataset: folder %q is not absolute", string(s))
	}
	root, err := os.OpenRoot(string(s)) // nothing below leads out of it
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove dataset: %w", err)
	}
	defer root.Close()
	l, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock()
	digits := hashDigits(hash)
	owners, err := fs.ReadDir(root.FS(), digits+"/owners")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove dataset: %w", err)
	}
	ours := slices.ContainsFunc(owners, func(e fs.DirEntry) bool { return e.Name() == id })
	switch {
	case !ours:
		return nil
	case len(owners) > 1:
		err = root.Remove(filepath.Join(digits, "owners", id))
	default:
		// The mark goes last: whatever interrupts us can be taken up again.
		for _, name := range []string{"train.rio", "test.rio", "manifest.json"} {
			if err := root.RemoveAll(filepath.Join(digits, name)); err != nil {
				return fmt.Errorf("remove dataset: %w", err)
			}
		}
		err = root.RemoveAll(digits)
	}
	if err != nil {
		return fmt.Errorf("remove dataset: %w", err)
	}
	return run.SyncDir(string(s))
}

// stateFolder is a folder below $XDG_STATE_HOME/stoke, or what the user named
// instead; absolute.
func stateFolder(given, name string) (string, error) {
	if given != "" {
		path, err := expandHome(given)
		if err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	// XDG base directories: a relative value is to be ignored.
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "stoke", name), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "stoke", name), nil
}

func expandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok && path != "~" {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("~ is unknown: this user has no home folder")
	}
	return filepath.Join(home, rest), nil
}
