package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

func newStore(t testing.TB, path string) *Store {
	t.Helper()
	s, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func instance(i int) address.Instance {
	return address.Resource{Type: "test_file", Name: "x"}.Instance(address.IntKey(i))
}

func change(i int, name string) state.Change {
	o := state.RawObject([]byte(`{"name":"`+name+`"}`), state.Meta{Provider: `provider["p"]`})
	return state.Change{Address: instance(i), Object: o}
}

// run adds one object to the state at path, in a run of its own.
func run(t testing.TB, s *Store, i int) error {
	t.Helper()
	f, err := state.Open(t.Context(), s)
	if err != nil {
		return err
	}
	j, err := f.Begin(t.Context())
	if err != nil {
		return err
	}
	id := fmt.Sprint("op", i)
	err = j.Intent(t.Context(), state.Intent{ID: id, Address: instance(i), Action: state.Create, Durable: true})
	if err == nil {
		err = j.Result(t.Context(), state.Result{Intent: id, Changes: []state.Change{change(i, id)}, Durable: true})
	}
	return errors.Join(err, j.Close(t.Context()))
}

func read(t testing.TB, path string) *state.State {
	t.Helper()
	f, err := state.Open(t.Context(), newStore(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return f.State()
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "terraform.tfstate")
	for i := range 3 {
		if err := run(t, newStore(t, path), i); err != nil {
			t.Fatal(err)
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
		if info, err := e.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", e.Name(), info.Mode(), err)
		}
	}
	if got := strings.Join(names, " "); got != "terraform.tfstate terraform.tfstate.backup" {
		t.Errorf("files: %s", got)
	}
	if s := read(t, path); s.Serial() != 3 || len(s.Instances()) != 3 {
		t.Errorf("serial %d, %v", s.Serial(), s.Instances())
	}
	if s := read(t, path+".backup"); s.Serial() != 2 || len(s.Instances()) != 2 {
		t.Errorf("backup: serial %d, %v", s.Serial(), s.Instances())
	}
}

// TestSteps lets each step that changes a file fail, as if the process had
// died before it, and the next process as well.
func TestSteps(t *testing.T) {
	for k := 0; ; k++ {
		path := filepath.Join(t.TempDir(), "terraform.tfstate")
		if err := run(t, newStore(t, path), 0); err != nil {
			t.Fatal(err)
		}
		s := newStore(t, path)
		die(s, k)
		err := run(t, s, 1)
		if err != nil && !errors.Is(err, errDied) {
			t.Fatalf("step %d: %v", k, err)
		}
		f, openErr := state.Open(t.Context(), newStore(t, path))
		if openErr != nil {
			t.Fatalf("step %d: %v", k, openErr)
		}
		st := f.State()
		if st.Current(instance(0)) == nil || st.Current(instance(1)) == nil && err == nil {
			t.Fatalf("step %d: %v is lost", k, st.Instances())
		}
		settled := newStore(t, path)
		if err := settle(t, settled); err != nil {
			t.Fatalf("step %d: %v", k, err)
		}
		if got := fmt.Sprint(read(t, path).Instances()); got != fmt.Sprint(st.Instances()) {
			t.Fatalf("step %d: %v became %s", k, st.Instances(), got)
		}
		if err == nil {
			if k < 12 {
				t.Errorf("a run has only %d steps", k)
			}
			return
		}
	}
}

var errDied = errors.New("died")

func die(s *Store, k int) {
	s.step = func(string) error {
		if k--; k < 0 {
			return errDied
		}
		return nil
	}
}

func settle(t testing.TB, s *Store) error {
	f, err := state.Open(t.Context(), s)
	if err != nil {
		return err
	}
	j, err := f.Begin(t.Context())
	if err != nil {
		return err
	}
	for _, in := range j.Open() {
		if err := j.Result(t.Context(), state.Result{Intent: in.ID, Err: "settled"}); err != nil {
			return err
		}
	}
	return j.Close(t.Context())
}

func TestLinks(t *testing.T) {
	dir, away := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "terraform.tfstate")
	target := filepath.Join(away, "real.tfstate")
	if err := os.Symlink(target, link); err != nil { // leads nowhere yet
		t.Fatal(err)
	}
	for i := range 2 {
		if err := run(t, newStore(t, link), i); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is now %v, %v", info.Mode(), err)
	}
	if s := read(t, target); len(s.Instances()) != 2 {
		t.Errorf("instances %v", s.Instances())
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if _, err := New(loop); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
}

// TestOddFiles puts things in the way that are no regular files.
func TestOddFiles(t *testing.T) {
	for _, suffix := range []string{"", ".journal", ".backup", "lock"} {
		for kind, odd := range map[string]func(path string) error{
			"folder": func(path string) error { return os.Mkdir(path, 0o700) },
			"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"link": func(path string) error {
				secret := path + "-secret"
				return errors.Join(os.WriteFile(secret, []byte("keep me"), 0o600), os.Symlink(secret, path))
			},
		} {
			t.Run(suffix+"/"+kind, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "terraform.tfstate")
				if suffix != "" {
					if err := run(t, newStore(t, path), 0); err != nil {
						t.Fatal(err)
					}
				}
				at := path + suffix
				if suffix == "lock" {
					at = filepath.Join(filepath.Dir(path), ".terraform.tfstate.lock.info")
				}
				if err := odd(at); err != nil {
					t.Fatal(err)
				}
				s := newStore(t, path)
				_, err := s.Lock(t.Context(), state.LockInfo{})
				if suffix != "lock" {
					err = run(t, s, 1)
				}
				if kind == "link" && (suffix == "" || suffix == ".backup") {
					if suffix == "" && err == nil {
						t.Error("a text was taken for a state")
					}
					return // followed
				}
				if err == nil || !strings.Contains(err.Error(), at) {
					t.Errorf("error %v does not name %s", err, at)
				}
				if b, err := os.ReadFile(at + "-secret"); kind == "link" && (err != nil || string(b) != "keep me") {
					t.Errorf("what the link leads to is now %q %v", b, err)
				}
			})
		}
	}
}

func TestConflict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	if err := run(t, newStore(t, path), 0); err != nil {
		t.Fatal(err)
	}
	f, err := state.Open(t.Context(), newStore(t, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t, newStore(t, path), 1); err != nil {
		t.Fatal(err)
	}
	_, err = f.Begin(t.Context())
	var c *state.ConflictError
	if !errors.As(err, &c) || c.Path != path {
		t.Errorf("begin: %v", err)
	}
	if s := read(t, path); len(s.Instances()) != 2 {
		t.Errorf("instances %v", s.Instances())
	}
}

// TestFull writes to a disk that is full.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	if err := run(t, newStore(t, path), 0); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t, path)
	s.step = func(name string) error {
		if strings.HasPrefix(name, "write") || strings.HasPrefix(name, "append") {
			return &fs.PathError{Op: "write", Path: strings.Fields(name)[1], Err: syscall.ENOSPC}
		}
		return nil
	}
	if err := run(t, s, 1); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Errorf("the state is now %q %v", after, err)
	}
	if err := run(t, newStore(t, path), 1); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

func TestLitter(t *testing.T) {
	dir := t.TempDir()
	litter := filepath.Join(dir, ".terraform.tfstate1234567")
	keep := filepath.Join(dir, ".terraform.tfstate.mine")
	for _, p := range []string{litter, keep} {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := newStore(t, filepath.Join(dir, "terraform.tfstate")).Lock(t.Context(), state.LockInfo{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if _, err := os.Stat(litter); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("litter: %v", err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
}
