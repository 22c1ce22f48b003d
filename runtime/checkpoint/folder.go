package checkpoint

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stokehq/stoke/runtime/durable"
)

// Folder is a place in the file system. What is written there survives a loss
// of power.
func Folder(path string) *Place { return &Place{storage: folder(path), address: path} }

type folder string

func (f folder) path(key string) string { return filepath.Join(string(f), filepath.FromSlash(key)) }

// scratch is how names begin that are not there yet: see durable.Create.
const scratch = "."

func (f folder) put(_ context.Context, key string) (object, error) {
	path := f.path(key)
	if err := f.makeFor(path); err != nil {
		return nil, err
	}
	file, err := durable.Create(path)
	if err != nil {
		return nil, err
	}
	return &draft{file, string(f)}, nil
}

// makeFor makes the folder of a checkpoint's file, and the place itself. The run's
// folder is around the place, and is never made here: a removed run stays removed.
func (f folder) makeFor(path string) error {
	for _, dir := range []string{string(f), filepath.Dir(path)} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// draft is a file that gets its name with commit. Its folder may be new, too.
type draft struct {
	*durable.File
	place string
}

func (d *draft) commit() error {
	if err := d.Commit(); err != nil {
		return err
	}
	return durable.SyncDir(d.place)
}

func (d *draft) abort() { d.Abort() }

func (f folder) claim(_ context.Context, key string) (bool, error) {
	path := f.path(key)
	if err := f.makeFor(path); err != nil {
		return false, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, errors.Join(file.Sync(), file.Close(), durable.SyncDir(filepath.Dir(path)), durable.SyncDir(string(f)))
}

func (f folder) open(_ context.Context, key string) (io.ReadCloser, int64, error) {
	file, err := os.Open(f.path(key))
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// list looks two levels deep; what is gone since it was listed is left out.
func (f folder) list(_ context.Context, prefix string) (map[string]int64, error) {
	found := make(map[string]int64)
	checkpoints, err := os.ReadDir(string(f))
	for _, c := range checkpoints {
		if !c.IsDir() || !strings.HasPrefix(c.Name()+"/", prefix[:min(len(prefix), len(c.Name())+1)]) {
			continue
		}
		parts, perr := os.ReadDir(filepath.Join(string(f), c.Name()))
		for _, p := range parts {
			info, ierr := p.Info()
			if key := c.Name() + "/" + p.Name(); ierr == nil && strings.HasPrefix(key, prefix) && !p.IsDir() {
				found[key] = info.Size()
			} else if !errors.Is(ierr, fs.ErrNotExist) {
				err = errors.Join(err, ierr)
			}
		}
		if !errors.Is(perr, fs.ErrNotExist) {
			err = errors.Join(err, perr)
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // the folder is not there yet
		err = nil
	}
	return found, err
}

func (f folder) remove(_ context.Context, key string) error {
	err := os.Remove(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	os.Remove(filepath.Dir(f.path(key))) // the checkpoint's folder, once it is empty
	return err
}

func (f folder) close() error { return nil }
