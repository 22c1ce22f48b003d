package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stokehq/stoke/runtime/code"
)

// The pauses between two tries to get the program's code.
const (
	firstFetch = 100 * time.Millisecond
	lastFetch  = 5 * time.Second
)

// snapshot is the folder that the program's code is kept in, as it was planned.
func (a *agent) snapshot() string {
	return filepath.Join(a.Folder, fmt.Sprintf("code-%.16s", a.Spec.Program.Code))
}

// prepare gets the program's code from the coordinator, once for all generations.
func (a *agent) prepare(ctx context.Context) error {
	hash := a.Spec.Program.Code
	if hash == "" {
		return nil
	}
	for pause := firstFetch; ; pause = min(2*pause, lastFetch) {
		err := a.fetch(ctx, hash)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if fault := new(code.Fault); errors.As(err, &fault) {
			return fmt.Errorf("get the code: %w", err) // of the run's folder, too
		}
		a.Log.Warn("the code is not here; asking again", "error", err, "in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fetch gets the code where it is not here, or is damaged.
func (a *agent) fetch(ctx context.Context, hash string) error {
	if s, err := code.Read(ctx, a.snapshot()); err == nil && s.Hash() == hash {
		return nil
	}
	if err := os.RemoveAll(a.snapshot()); err != nil {
		return err
	}
	body, err := a.API.Code(ctx, hash)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = code.Unpack(ctx, body, a.snapshot(), hash)
	return err
}

// placeCode restores the planned files in the program's folder. Other files, which
// the program has written, stay.
func (a *agent) placeCode(ctx context.Context) error {
	if a.Spec.Program.Code == "" {
		return nil
	}
	root := a.snapshot()
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("place code: %w", err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		if err := placeFile(path, filepath.Join(a.work(), name), d); err != nil {
			return fmt.Errorf("place code: %w", err)
		}
		return ctx.Err()
	})
}

// placeFile copies one file, link or folder to where the program finds it. An entry
// of another kind in its place is removed.
func placeFile(from, to string, d fs.DirEntry) error {
	is, err := os.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case d.IsDir() && is.IsDir():
		return nil
	default:
		if err := os.RemoveAll(to); err != nil {
			return err
		}
	}
	switch {
	case d.IsDir():
		return os.Mkdir(to, 0o700)
	case d.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	return copyFile(from, to)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
