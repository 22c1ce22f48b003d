package durable

import (
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// File is being written. Nobody sees it under its name before Commit, nor ever
// when it is aborted.
type File struct {
	*renameio.PendingFile
	path string
}

// Create begins a file of mode 0600 in a folder that is there. Until Commit it
// has a name there that begins with a dot.
func Create(path string) (*File, error) {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return nil, err
	}
	return &File{f, path}, nil
}

// Commit gives the file its name, in place of one that has it, and closes it.
// Only the first call of Commit and Abort has an effect.
func (f *File) Commit() error {
	if err := f.CloseAtomicallyReplace(); err != nil {
		f.Abort()
		return err
	}
	return SyncDir(filepath.Dir(f.path))
}

// Abort removes what was written.
func (f *File) Abort() { f.Cleanup() } // what cannot be removed begins with a dot

// Write replaces a file so that a reader, or a crash at any moment, sees the old
// or the new content.
func Write(path string, data []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.PendingFile.Write(data); err != nil {
		return err
	}
	return f.Commit()
}

// SyncDir makes the names in a folder durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
