package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/durable"
)

// cacheLimit is how many bytes of compiled programs are kept.
const cacheLimit = 1 << 30

// cache keeps compiled programs as files, shared by all processes of a user.
type cache struct {
	dir   string
	limit int64
}

// magic begins a file of the cache, and a sum of the program follows.
const magic = "stoke compiled program 1\n"

// key names a program that was compiled for one machine: all that decides what
// the compiler makes of it.
func key(machine, text string, flags map[string]any) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s%d %s", len(machine), machine, len(text), text)
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		fmt.Fprintf(h, "%q %T %q\n", name, flags[name], fmt.Sprint(flags[name]))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (c cache) file(key string) string { return filepath.Join(c.dir, key+".xla") }

// read returns a program, or nothing where the cache has none. A damaged file is
// removed, and is an error.
func (c cache) read(key string) ([]byte, error) {
	path := c.file(key)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if ok && len(rest) >= sha256.Size {
		if sum := sha256.Sum256(rest[sha256.Size:]); bytes.Equal(sum[:], rest[:sha256.Size]) {
			now := time.Now() // the oldest use is removed first
			return rest[sha256.Size:], os.Chtimes(path, now, now)
		}
	}
	return nil, errors.Join(fmt.Errorf("%s is damaged, and is removed", path), os.Remove(path))
}

// write keeps a program, and removes the least recently used programs while all
// are larger than the limit.
func (c cache) write(key string, program []byte) error {
	if int64(len(program)) > c.limit {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	if err := durable.Write(c.file(key), slices.Concat([]byte(magic), sum[:], program)); err != nil {
		return err
	}
	return c.prune()
}

// isProgram reports whether a file has the name of a compiled program: its key, and
// what durable.Write adds while the file is written.
func isProgram(name string) bool {
	key, _, ok := strings.Cut(name, ".xla")
	_, err := hex.DecodeString(key)
	return ok && err == nil && len(key) == hex.EncodedLen(sha256.Size)
}

// prune removes programs of the cache, never other files of its folder.
func (c cache) prune() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	var size int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // another process removed it
		}
		name, unfinished := strings.CutPrefix(e.Name(), ".")
		switch {
		case !isProgram(name): // the folder may have other files
		case !unfinished:
			files = append(files, info)
			size += info.Size()
		case time.Since(info.ModTime()) > time.Hour: // of a process that was killed while it wrote
			err = os.Remove(filepath.Join(c.dir, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files {
		if size <= c.limit {
			break
		}
		if err := os.Remove(filepath.Join(c.dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		size -= f.Size()
	}
	return nil
}
