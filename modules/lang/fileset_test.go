package lang

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
)

// endless is a file system in which every folder has folders and files, however
// deep.
type endless struct{ files, read int }

func (e *endless) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

func (e *endless) Stat(string) (fs.FileInfo, error) {
	return fs.Stat(fstest.MapFS{"d": {Mode: fs.ModeDir}}, "d")
}

func (e *endless) ReadDir(string) ([]fs.DirEntry, error) {
	e.read++
	here := fstest.MapFS{"z1": {Mode: fs.ModeDir}, "z2": {Mode: fs.ModeDir}} // after the files: folders are entered in this order
	for i := range e.files {
		here[fmt.Sprintf("f%d", i)] = &fstest.MapFile{}
	}
	return fs.ReadDir(here, ".")
}

// TestFilesetEnds: a walk ends with the first file too many, and where nothing
// matches when it is interrupted.
func TestFilesetEnds(t *testing.T) {
	deep := &endless{files: 50}
	if _, err := (&walk{FS: deep}).match("**"); err == nil || !strings.Contains(err.Error(), "more than 100000 files match") {
		t.Errorf("too many files: %v", err)
	}
	if most := maxFileset/deep.files + 1; deep.read > 2*most {
		t.Errorf("%d folders were read, of which %d have files enough", deep.read, most)
	}
	stop := errors.New("interrupted")
	for _, pattern := range []string{"**/nowhere", "**", "*/*/**/{a,b}"} {
		deep = &endless{}
		asked := 0
		w := &walk{FS: deep, interrupted: func() error {
			if asked++; asked > 20 {
				return stop
			}
			return nil
		}}
		if _, err := w.match(pattern); !errors.Is(err, stop) {
			t.Errorf("%s: %v", pattern, err)
		}
		if deep.read > 20 {
			t.Errorf("%s: %d folders were read after the interrupt", pattern, deep.read-20)
		}
	}
}

// TestFilesetLinks: links are followed, and one that leads nowhere is an error
// where it matches.
func TestFilesetLinks(t *testing.T) {
	dir := t.TempDir()
	for name, target := range map[string]string{"file": "", "link": "file", "folder/x": "", "way": "folder", "lost": "nowhere"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil && target == "" {
			err = os.WriteFile(path, nil, 0o644)
		} else if err == nil {
			err = os.Symlink(target, path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	table := Functions(dir)
	for pattern, want := range map[string]string{"*": "error", "l?nk": "link", "{way,f*}": "file", "**/x": "folder/x way/x", "link": "link", "": "", ".": "", "way/../file": "file"} {
		v, diags := parse(t, fmt.Sprintf("join(\" \", fileset(\".\", %q))", pattern)).Value(&hcl.EvalContext{Functions: table})
		got := "error"
		if !diags.HasErrors() {
			got = v.AsString()
		}
		if got != want {
			t.Errorf("%q: %s %v, want %s", pattern, got, diags, want)
		}
	}
}
