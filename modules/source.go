package modules

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// maxFileSize is the most that one file may have, in bytes. Parsed, a file
// takes some hundred times its size; programs write files of variables that
// have ten MiB.
const maxFileSize = 16 << 20

// Source is where configuration files come from.
type Source interface {
	// List returns the names of everything in a folder that is no folder
	// itself, in lexical order.
	List(dir string) ([]string, error)
	// Read returns the content of a file that has at most maxFileSize bytes.
	Read(name string) ([]byte, error)
}

// OnDisk is the file system. Relative names start from the working directory.
func OnDisk() Source { return disk{} }

// OnDiskWith is the file system with another folder than .terraform for what
// init installs.
func OnDiskWith(dataDir string) Source { return disk{data: dataDir} }

// InMemory is a set of files by the name under which they were read, such as
// a saved plan carries. It holds no other files.
func InMemory(files map[string][]byte) Source {
	m := memory{}
	for name, content := range files {
		m[filepath.Clean(name)] = content
	}
	return m
}

type disk struct{ data string }

func (disk) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (disk) Read(name string) ([]byte, error) {
	// Stat first: opening a FIFO would wait for its writer.
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if err := readable(info); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// It may have become another file since, and it may be growing.
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := readable(info); err != nil {
		return nil, err
	}
	return readBounded(f)
}

// readNamed reads a file that was named on the command line. It may be a pipe,
// such as a shell makes of <(command), or /dev/null.
func (d disk) readNamed(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() || info.IsDir() {
		return d.Read(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f)
}

func readBounded(f io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFileSize {
		return nil, errTooLarge
	}
	return content, nil
}

// readable refuses what is no regular file or too large for a configuration.
func readable(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return errors.New("it is a folder, not a file")
	case !mode.IsRegular():
		return fmt.Errorf("it is not a regular file (%s)", mode)
	case info.Size() > maxFileSize:
		return fmt.Errorf("it has %.1f MiB; %d MiB is the most for a file of configuration or values", float64(info.Size())/(1<<20), maxFileSize>>20)
	}
	return nil
}

var errTooLarge = fmt.Errorf("it has more than %d MiB, which is the most for a file of configuration or values", maxFileSize>>20)

type memory map[string][]byte

func (m memory) List(dir string) ([]string, error) {
	dir = filepath.Clean(dir)
	var names []string
	for name := range m {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	if len(names) == 0 && dir != "." {
		return nil, &fs.PathError{Op: "read", Path: dir, Err: fs.ErrNotExist}
	}
	sort.Strings(names)
	return names, nil
}

func (m memory) Read(name string) ([]byte, error) {
	content, ok := m[filepath.Clean(name)]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	if len(content) > maxFileSize {
		return nil, errTooLarge
	}
	return content, nil
}

// cause says why a file could not be read, without repeating its name.
func cause(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return strings.TrimSpace(err.Error())
}
