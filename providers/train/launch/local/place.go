package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// Place is the absolute path of the folder in which runs lie.
type Place string

// mark says whose a run's folder is.
type mark struct {
	ID        string `json:"id"`
	Operation string `json:"operation"`
}

const (
	markFile     = "operation.json"
	launchedFile = "launched.json"
)

// ErrNotOurs says that a folder does not carry the mark of the run.
var ErrNotOurs = errors.New("folder does not carry the run's mark")

// Folder is where the run of that id lies, whether it exists or not.
func (p Place) Folder(id string) run.Folder {
	return run.Folder(filepath.Join(string(p), id))
}

// Create makes the folder of a new run, marked and complete with its code, or
// nothing.
func (p Place) Create(ctx context.Context, id, operation string, s spec.Spec, c launch.Code) (run.Folder, error) {
	if err := p.check(id); err != nil {
		return "", fmt.Errorf("create run: %w", err)
	}
	if err := os.MkdirAll(string(p), 0o700); err != nil {
		return "", fmt.Errorf("create run: %w", err)
	}
	if _, err := os.Lstat(string(p.Folder(id))); err == nil {
		return "", fmt.Errorf("create run: %s exists already", p.Folder(id))
	}
	raw := filepath.Join(string(p), raw(id))
	if err := os.RemoveAll(raw); err != nil { // left by a crash
		return "", fmt.Errorf("create run: %w", err)
	}
	if err := p.fill(ctx, raw, id, operation, s, c); err != nil {
		os.RemoveAll(raw)
		return "", fmt.Errorf("create run: %w", err)
	}
	return p.Folder(id), nil
}

// fill makes the folder under its raw name, then gives it its own.
func (p Place) fill(ctx context.Context, raw, id, operation string, s spec.Spec, c launch.Code) error {
	if err := os.Mkdir(raw, 0o700); err != nil {
		return err
	}
	if err := run.WriteJSON(filepath.Join(raw, markFile), mark{id, operation}); err != nil {
		return err
	}
	if err := writeCode(ctx, run.Folder(raw), c); err != nil {
		return err
	}
	if err := os.Rename(raw, string(p.Folder(id))); err != nil {
		return err
	}
	if err := p.Folder(id).Create(s); err != nil {
		return errors.Join(err, p.Remove(id))
	}
	return run.SyncDir(string(p))
}

// writeCode writes the archive of a program's code, unless it is there already.
func writeCode(ctx context.Context, f run.Folder, c launch.Code) error {
	if c.Snapshot == nil {
		return nil
	}
	path := f.Code(c.Snapshot.Hash())
	if _, err := os.Lstat(path); err == nil { // whole, as no other is
		return nil
	}
	return run.WriteFrom(path, func(to io.Writer) error { return c.Snapshot.Pack(ctx, c.Folder, to) })
}

func raw(id string) string { return ".new-" + id }

// Find returns the folder of the run if it is there and carries its mark;
// otherwise fs.ErrNotExist or ErrNotOurs.
func (p Place) Find(id string) (run.Folder, error) {
	if err := p.check(id); err != nil {
		return "", fmt.Errorf("find run: %w", err)
	}
	info, err := os.Lstat(string(p.Folder(id)))
	switch {
	case err != nil:
		return "", fmt.Errorf("find run: %w", err)
	case !info.IsDir(): // a link to a folder is none of ours either
		return "", fmt.Errorf("find run: %s: %w", p.Folder(id), ErrNotOurs)
	}
	var m mark
	if err := run.ReadJSON(filepath.Join(string(p.Folder(id)), markFile), &m); err != nil || m.ID != id {
		return "", fmt.Errorf("find run: %s: %w", p.Folder(id), ErrNotOurs)
	}
	return p.Folder(id), nil
}

// List returns the ids of the runs, sorted; none where the folder does not exist.
func (p Place) List() (ids []string, err error) {
	entries, err := os.ReadDir(string(p))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() && launch.ValidID(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, err
}

// Remove removes the run's folder with everything in it. A missing folder is
// not an error; a folder without the run's mark is ErrNotOurs.
func (p Place) Remove(id string) error {
	_, err := p.Find(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	// Within an os.Root no name and no link leads out of the place.
	root, err := os.OpenRoot(string(p))
	if err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	defer root.Close()
	// The mark goes last: whatever interrupts us can be taken up again.
	entries, err := fs.ReadDir(root.FS(), id)
	if err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	for _, e := range entries {
		if e.Name() == markFile {
			continue
		}
		if err := root.RemoveAll(filepath.Join(id, e.Name())); err != nil {
			return fmt.Errorf("remove run: %w", err)
		}
	}
	if err := root.RemoveAll(id); err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	return run.SyncDir(string(p))
}

// Sweep removes what a create that was killed left under the run's raw name.
func (p Place) Sweep(id string) error {
	if err := p.check(id); err != nil {
		return fmt.Errorf("sweep run: %w", err)
	}
	root, err := os.OpenRoot(string(p))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep run: %w", err)
	}
	defer root.Close()
	return root.RemoveAll(raw(id))
}

func (p Place) check(id string) error {
	if !filepath.IsAbs(string(p)) {
		return fmt.Errorf("folder of runs %q is not absolute", string(p))
	}
	if !launch.ValidID(id) {
		return fmt.Errorf("%q is not the name of a run", id)
	}
	return nil
}
