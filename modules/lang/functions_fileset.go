package lang

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxFileset bounds what fileset returns.
const maxFileset = 100_000

func (f folder) fileset(interrupted func() error) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: "path", Type: cty.String, AllowMarked: true},
			{Name: "pattern", Type: cty.String, AllowMarked: true},
		},
		Type:         function.StaticReturnType(cty.Set(cty.String)),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path, marks := args[0].Unmark()
			pattern, patternMarks := args[1].Unmark()
			dir, err := f.resolve(path.AsString())
			if err != nil {
				return cty.NilVal, fileError(args[0], err)
			}
			names, err := glob(dir, pattern.AsString(), interrupted)
			if err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			if len(names) == 0 {
				return cty.SetValEmpty(cty.String).WithMarks(marks, patternMarks), nil
			}
			return cty.SetVal(names).WithMarks(marks, patternMarks), nil
		},
	})
}

// glob returns the regular files below dir that match, relative to it and
// with slashes.
func glob(dir, pattern string, interrupted func() error) ([]cty.Value, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, errors.New("it is no valid pattern")
	}
	base, rest := doublestar.SplitPattern(filepath.ToSlash(filepath.Join(escapePattern(dir), pattern)))
	if rest == "" || rest == "." || rest == ".." {
		return nil, nil // a folder
	}
	w := &walk{FS: os.DirFS(base), interrupted: interrupted}
	matches, err := w.match(rest)
	if err != nil {
		return nil, err
	}
	names := make([]cty.Value, len(matches))
	for i, match := range matches {
		name, err := filepath.Rel(dir, filepath.FromSlash(path.Join(base, match)))
		if err != nil {
			return nil, err
		}
		names[i] = cty.StringVal(filepath.ToSlash(name))
	}
	return names, nil
}

// walk looks for files. It ends when there are too many, and when interrupted,
// which is nil or asked in each folder, returns an error.
type walk struct {
	fs.FS
	interrupted func() error
	ended       error // why no folder is read any more
}

// ReadDir is fs.ReadDir until the walk is interrupted. The matcher takes errors
// for folders that cannot be read, and passes over those.
func (w *walk) ReadDir(name string) ([]fs.DirEntry, error) {
	if w.ended == nil && w.interrupted != nil {
		w.ended = w.interrupted()
	}
	if w.ended != nil {
		return nil, w.ended
	}
	return fs.ReadDir(w.FS, name)
}

// Stat follows links.
func (w *walk) Stat(name string) (fs.FileInfo, error) { return fs.Stat(w.FS, name) }

// match returns the regular files that match the pattern.
func (w *walk) match(pattern string) ([]string, error) {
	var found []string
	err := doublestar.GlobWalk(w, pattern, func(name string, entry fs.DirEntry) error {
		if w.ended != nil {
			return w.ended
		}
		kind := entry.Type()
		if kind&fs.ModeSymlink != 0 {
			info, err := w.Stat(name)
			if err != nil {
				return fmt.Errorf("%q matches, but leads to nothing that can be read", name)
			}
			kind = info.Mode().Type()
		}
		if !kind.IsRegular() {
			return nil
		}
		if len(found) == maxFileset {
			return fmt.Errorf("more than %d files match", maxFileset)
		}
		found = append(found, name)
		return nil
	})
	if err == nil {
		err = w.ended
	}
	return found, err
}

func escapePattern(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`).Replace(path)
}
