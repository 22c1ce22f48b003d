package code

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// put writes files into a new folder: a name that ends in / is a folder, a
// content that begins with -> a link, and a name that begins with * executable.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		mode := fs.FileMode(0o644)
		if rest, ok := strings.CutPrefix(name, "*"); ok {
			name, mode = rest, 0o755
		}
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(target, at)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(at, 0o755)
		} else {
			err = os.WriteFile(at, []byte(content), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, dir string) *Snapshot {
	t.Helper()
	s, err := Read(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(s *Snapshot) []string {
	var all []string
	for _, f := range s.Files {
		all = append(all, f.Name)
	}
	return all
}

func TestSnapshotIsOfNamesModesAndContents(t *testing.T) {
	files := map[string]string{"train.py": "print(1)\n", "*run.sh": "#!/bin/sh\n", "data/a.txt": "a", "latest": "->data/a.txt"}
	dir := put(t, files)
	s := read(t, dir)
	if diff := cmp.Diff([]string{"data/a.txt", "latest", "run.sh", "train.py"}, names(s)); diff != "" {
		t.Error(diff)
	}
	if s.Bytes() != 9+10+1 {
		t.Errorf("%d bytes", s.Bytes())
	}
	if again := read(t, put(t, files)); again.Hash() != s.Hash() {
		t.Error("the same files in another folder have another hash")
	}
	if err := os.Chtimes(filepath.Join(dir, "train.py"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "train.py"), 0o600); err != nil {
		t.Fatal(err)
	}
	if read(t, dir).Hash() != s.Hash() {
		t.Error("times or rights of others change the hash")
	}
	for name, change := range map[string]func(map[string]string){
		"content": func(m map[string]string) { m["train.py"] = "print(2)\n" },
		"name":    func(m map[string]string) { m["train2.py"] = m["train.py"]; delete(m, "train.py") },
		"mode":    func(m map[string]string) { m["*train.py"] = m["train.py"]; delete(m, "train.py") },
		"link":    func(m map[string]string) { m["latest"] = "->train.py" },
		"kind":    func(m map[string]string) { m["latest"] = "data/a.txt" },
	} {
		other := make(map[string]string)
		for k, v := range files {
			other[k] = v
		}
		change(other)
		if read(t, put(t, other)).Hash() == s.Hash() {
			t.Errorf("another %s has the same hash", name)
		}
	}
}

func TestHashIsStable(t *testing.T) {
	s := &Snapshot{Files: []File{{Name: "a", Sum: "00", Size: 1}, {Name: "b", Sum: "11", Executable: true}, {Name: "c", Link: "a"}}}
	const want = "81efdc462ba56302e6c3b57e816ed7e99ace1fb9179c2f9fb4cc2469604385c7"
	if got := s.Hash(); got != want {
		t.Errorf("the hash of states of earlier releases was %s, now it is %s", want, got)
	}
}

func TestDiff(t *testing.T) {
	older := read(t, put(t, map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"}))
	newer := read(t, put(t, map[string]string{"*a": "1", "b": "1", "c": "2", "e": "1"}))
	d := Diff(older, newer)
	if diff := cmp.Diff(Difference{Added: []string{"e"}, Changed: []string{"a", "c"}, Removed: []string{"d"}}, d); diff != "" {
		t.Error(diff)
	}
	if got := d.String(); got != "+ e, ~ a, ~ c, - d" {
		t.Error(got)
	}
	if !Diff(older, older).Empty() || Diff(nil, older).Empty() || len(Diff(older, nil).Removed) != 4 {
		t.Error("equal or missing snapshots")
	}
}

func TestIgnoredFiles(t *testing.T) {
	files := map[string]string{
		"train.py": "", "keep.tf": "", "main.tf": "", "terraform.tfstate": "", "terraform.tfstate.backup": "", ".git/HEAD": "",
		"__pycache__/train.pyc": "", "lib/__pycache__/x.pyc": "", "lib/a.py": "", "lib/a.log": "", "logs/x": "", "lib/logs/y": "",
		"out/1/a": "", "out/keep": "", "docs/a/b.md": "", "docs/c.md": "", "x{1}": "", "x1": "", "build": "", "lib/build/x": "", "a b ": "", "#n": "",
		"deep/one/two/three.bin": "", "deep/three.bin": "", "!odd": "", "z.c": "", "z.d": "", "z.e": "",
	}
	dir := put(t, files)
	rules := strings.Join([]string{"# logs", "*.log", "/logs/", "!keep.tf", "out/*", "!out/keep", "docs/**/*.md", "x{1}", "build/",
		`a b\ `, `\#n`, "deep/**/three.bin  ", `\!odd`, "z.[!c-d]\r", ""}, "\n")
	if err := os.WriteFile(filepath.Join(dir, ignoreFile), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{"build", "keep.tf", "lib/a.py", "lib/logs/y", "out/keep", "train.py", "x1", "z.c", "z.d"}
	if diff := cmp.Diff(want, names(read(t, dir))); diff != "" {
		t.Error(diff)
	}
}

func TestIgnorePatterns(t *testing.T) {
	for _, test := range []struct {
		line, name string
		folder     bool
		want       bool
	}{
		{"foo", "foo", false, true}, {"foo", "a/b/foo", false, true}, {"foo", "foobar", false, false},
		{"foo/", "foo", false, false}, {"foo/", "a/foo", true, true}, {"/foo", "a/foo", false, false},
		{"a/foo", "b/a/foo", false, false}, {"**/a/foo", "b/a/foo", false, true}, {"a/**", "a", true, false}, {"a/**", "a/b/c", false, true},
		{"*.txt", "a/b.txt", false, true}, {"a*c", "a/c", false, false}, {"?x", "/x", false, false}, {"a/**/b", "a/b", false, true},
	} {
		r, ok, err := parseRule(test.line)
		if err != nil || !ok {
			t.Fatalf("%s: %v", test.line, err)
		}
		if got := (ignore{r}).matches(test.name, test.folder); got != test.want {
			t.Errorf("%s matches %s: %v", test.line, test.name, got)
		}
	}
	_, err := parseIgnore("ok\n[a\n")
	if f := fault(t, err); f.Path != ignoreFile || !strings.Contains(f.What, "line 2") {
		t.Error(f)
	}
	_, err = parseIgnore("[[:alpha:]]x")
	fault(t, err)
}

// fault checks that an error has a path and advice for people, and returns it.
func fault(t *testing.T, err error) *Fault {
	t.Helper()
	var f *Fault
	if !errors.As(err, &f) {
		t.Fatalf("got %v instead of a fault", err)
	}
	if f.What == "" || f.Advice == "" {
		t.Errorf("%+v does not say what to do", f)
	}
	return f
}

func TestFoldersWithoutASnapshot(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		make  func(t *testing.T, dir string)
		path  string
		what  string
	}{
		{"link outside", map[string]string{"a/l": "->../../etc/passwd"}, nil, "a/l", "outside"},
		{"absolute link", map[string]string{"l": "->/etc/passwd"}, nil, "l", "absolute"},
		{"missing target outside", map[string]string{"l": "->../nothing"}, nil, "l", "outside"},
		{"link through a link", map[string]string{"s/x": "", "a/b/d": "->../../s", "a/b/l": "->d/../../x"}, nil, "a/b/l", "outside"},
		{"large file", map[string]string{"a": ""}, func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "a"), MaxBytes+1); err != nil {
				t.Fatal(err)
			}
		}, "", "64 MiB"},
		{"two large files", map[string]string{"a": "", "b": ""}, func(t *testing.T, dir string) {
			for _, name := range []string{"a", "b"} {
				if err := os.Truncate(filepath.Join(dir, name), MaxBytes/2+1); err != nil {
					t.Fatal(err)
				}
			}
		}, "", "64 MiB"},
		{"named pipe", map[string]string{"a": ""}, func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, "p"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "p", "named pipe"},
		{"socket", map[string]string{"a": ""}, func(t *testing.T, dir string) {
			l, err := net.Listen("unix", filepath.Join(dir, "s"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}, "s", "socket"},
		{"control character", map[string]string{"a\x1b[2J": ""}, nil, `"a\x1b[2J"`, "control character"},
		{"not UTF-8", map[string]string{"a\xff": ""}, nil, `"a\xff"`, "UTF-8"},
		{"only ignored files", map[string]string{"main.tf": "", "e/": ""}, nil, "", "no files"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := put(t, test.files)
			if test.make != nil {
				test.make(t, dir)
			}
			_, err := Read(context.Background(), dir)
			if f := fault(t, err); f.Path != test.path || !strings.Contains(f.What, test.what) {
				t.Errorf("got %v", f)
			}
			if strings.Contains(err.Error(), "\x1b") {
				t.Error("the message has an escape character")
			}
		})
	}
	_, err := Read(context.Background(), filepath.Join(t.TempDir(), "none"))
	fault(t, err)
	_, err = Read(context.Background(), filepath.Join(put(t, map[string]string{"f": ""}), "f"))
	fault(t, err)
}

func TestUnreadableFiles(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root can read all files")
	}
	for _, name := range []string{"a", "d/"} {
		dir := put(t, map[string]string{"b": "", name: ""})
		at := filepath.Join(dir, name)
		if err := os.Chmod(at, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(at, 0o700) })
		_, err := Read(context.Background(), dir)
		if f := fault(t, err); f.Path != strings.TrimSuffix(name, "/") {
			t.Error(f)
		}
	}
}

func TestLinksWithinTheFolderAreKept(t *testing.T) {
	dir := put(t, map[string]string{"a/b": "x", "l": "->a/../a/b", "dangling": "->gone", "loop": "->loop"})
	s := read(t, dir)
	into := filepath.Join(t.TempDir(), "code")
	if _, err := Unpack(context.Background(), bytes.NewReader(pack(t, s, dir)), into, s.Hash()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(into, "l")); err != nil || string(text) != "x" {
		t.Error(string(text), err)
	}
}

func pack(t *testing.T, s *Snapshot, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := s.Pack(context.Background(), dir, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPackAndUnpack(t *testing.T) {
	long := strings.Repeat("long/", 60) + "name.py"
	files := map[string]string{"train.py": "print(1)\n", "*bin/run": "#!/bin/sh\n", "ünï/ç": "é", long: "x", "l": "->train.py"}
	dir := put(t, files)
	s := read(t, dir)
	archive := pack(t, s, dir)
	if !bytes.Equal(archive, pack(t, s, put(t, files))) {
		t.Error("equal folders give different archives")
	}
	for in := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil || h.ModTime.Unix() != 0 || h.Uid != 0 || h.Uname != "" {
			t.Fatalf("%+v, %v", h, err)
		}
	}
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	parent := t.TempDir()
	into := filepath.Join(parent, "code")
	got, err := Unpack(context.Background(), bytes.NewReader(archive), into, s.Hash())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(s, read(t, into)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(into, "bin/run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Unpack(context.Background(), bytes.NewReader(archive), into, s.Hash()); err == nil {
		t.Error("an existing folder is overwritten")
	}
	_, err = Unpack(context.Background(), bytes.NewReader(archive), filepath.Join(parent, "other"), strings.Repeat("0", 64))
	fault(t, err)
	if _, err := Unpack(context.Background(), bytes.NewReader(archive[:len(archive)/2]), filepath.Join(parent, "other"), s.Hash()); err == nil {
		t.Error("half an archive is unpacked")
	}
	left, err := os.ReadDir(parent)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestEditedWhileItIsRead(t *testing.T) {
	files := map[string]string{"a.py": "1", "l": "->a.py", "*x": "1"}
	for name, edit := range map[string]func(dir string) error{
		"content": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a.py"), []byte("2"), 0o644) },
		"size":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "a.py"), []byte("12"), 0o644) },
		"gone":    func(dir string) error { return os.Remove(filepath.Join(dir, "a.py")) },
		"mode":    func(dir string) error { return os.Chmod(filepath.Join(dir, "x"), 0o644) },
		"link": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "l")), os.Symlink("x", filepath.Join(dir, "l")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := put(t, files)
			s := read(t, dir)
			if err := edit(dir); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := s.Pack(context.Background(), dir, &out)
			if f := fault(t, err); !f.Edited || f.Path == "" {
				t.Errorf("%+v", f)
			}
			if _, err := Unpack(context.Background(), &out, filepath.Join(t.TempDir(), "c"), s.Hash()); err == nil {
				t.Error("what was packed is accepted")
			}
		})
	}
}

// editing is a writer that changes a file when the first bytes of it arrive.
type editing struct{ edit func() }

func (e *editing) Write(p []byte) (int, error) {
	if e.edit != nil {
		e.edit()
		e.edit = nil
	}
	return len(p), nil
}

func TestEditedInTheMiddleOfAFile(t *testing.T) {
	dir := put(t, map[string]string{"a": "1"})
	for name, edit := range map[string]func() error{
		"append":  func() error { return os.WriteFile(filepath.Join(dir, "a"), []byte("123"), 0o644) },
		"rewrite": func() error { return os.Chtimes(filepath.Join(dir, "a"), time.Unix(5, 0), time.Unix(5, 0)) },
	} {
		f, err := os.Open(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		before, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		_, err = hashFile(context.Background(), &editing{func() {
			if err := edit(); err != nil {
				t.Error(err)
			}
		}}, f, "a", before)
		f.Close()
		if f := fault(t, err); !f.Edited {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Read(ctx, put(t, map[string]string{"a": ""})); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range MaxFiles + 1 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Read(context.Background(), dir)
	fault(t, err)
	if err := os.Remove(filepath.Join(dir, "0")); err != nil {
		t.Fatal(err)
	}
	if s := read(t, dir); len(s.Files) != MaxFiles {
		t.Error(len(s.Files))
	}
}
