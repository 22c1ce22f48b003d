package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// makeFolder makes the folder of a file that is about to be made, with those
// above it, as Terraform does, so that they are still there after a crash.
func (s *Store) makeFolder(of string) error {
	dir := filepath.Dir(of)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil // if something else is wrong, opening the file will tell
	}
	if err := s.makeFolder(dir); err != nil {
		return err
	}
	if err := s.step("make " + dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make folder of the state: %w", err)
	}
	return s.syncDir(filepath.Dir(dir))
}
