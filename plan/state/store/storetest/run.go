package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

// Harness describes a store. Each test gets an empty place for one state.
type Harness struct {
	// Place makes an empty place and returns how a process opens it: each call
	// of that is another process.
	Place func(t testing.TB) (open func() state.Store)
	// Info says that the lock's message can be changed.
	Info bool
	// AnyUnlock says that the server cannot tell whether there was a lock to
	// be broken.
	AnyUnlock bool
	// Unconditional: the server has no conditional writes, so that only the lock
	// keeps other processes out.
	Unconditional bool
	// Unbreakable says that the lock of a living holder cannot be broken.
	Unbreakable bool
}

// Run checks everything that a store has to do while nothing goes wrong but
// what others do.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"empty": empty, "snapshot": snapshots, "journal": journals, "cut": cuts, "two writers": twoWriters,
		"run": wholeRun, "crash": crashed, "conflict": conflicts, "lock": locks, "unlock": unlocks,
		"contest": contest, "large": large,
	} {
		t.Run(name, func(t *testing.T) { test(t, h) })
	}
}

// Open opens a place as a process does, and closes it with the test.
func opened(t testing.TB, open func() state.Store) state.Store {
	t.Helper()
	s := open()
	if c, ok := s.(io.Closer); ok {
		t.Cleanup(func() { _ = c.Close() })
	}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func empty(t *testing.T, h Harness) {
	s, ctx := opened(t, h.Place(t)), t.Context()
	data, version, err := s.ReadSnapshot(ctx)
	if data != nil || version != "" || err != nil {
		t.Errorf("snapshot %q %q %v", data, version, err)
	}
	if log, err := s.ReadJournal(ctx); log != nil || err != nil {
		t.Errorf("journal %q %v", log, err)
	}
	if err := s.DropJournal(ctx); err != nil {
		t.Errorf("drop: %v", err)
	}
	if err := s.Append(ctx, 5, []byte("x"), true); err == nil {
		t.Error("appended to a journal that is not there")
	}
	if name, journal := s.Names(); name == "" || journal == "" || name == journal {
		t.Errorf("names %q %q", name, journal)
	}
}

func snapshots(t *testing.T, h Harness) {
	open, ctx := h.Place(t), t.Context()
	s := opened(t, open)
	one, two, three := state.New("l").Encode(1), state.New("l").Encode(2), state.New("l").Encode(3)
	v1, err := s.WriteSnapshot(ctx, one, "")
	must(t, err)
	conflict := func(what string, err error) {
		t.Helper()
		var c *state.ConflictError
		if !errors.As(err, &c) || c.Path == "" {
			t.Errorf("%s: got %v, want a conflict", what, err)
		}
	}
	_, err = s.WriteSnapshot(ctx, two, "")
	conflict("a second first one", err)
	_, err = opened(t, open).WriteSnapshot(ctx, two, "")
	conflict("another process's first one", err)
	v2, err := s.WriteSnapshot(ctx, two, v1)
	must(t, err)
	if v2 == v1 || v1 == "" {
		t.Errorf("versions %q %q", v1, v2)
	}
	other := opened(t, open)
	_, err = other.WriteSnapshot(ctx, three, v1)
	conflict("of an old version", err)
	data, version, err := other.ReadSnapshot(ctx)
	must(t, err)
	if string(data) != string(two) || version != v2 {
		t.Errorf("read %q as %q, want %q as %q", data, version, two, v2)
	}
	_, err = other.WriteSnapshot(ctx, three, version)
	must(t, err)
	_, err = s.WriteSnapshot(ctx, one, v2)
	conflict("after another process's", err)
}

func journals(t *testing.T, h Harness) {
	open, ctx := h.Place(t), t.Context()
	s := opened(t, open)
	_, err := s.WriteSnapshot(ctx, state.New("l").Encode(1), "")
	must(t, err)
	_, _, err = s.ReadSnapshot(ctx)
	must(t, err)
	var want string
	for round := range 2 {
		want = ""
		for i := range 12 {
			record := strings.Repeat(fmt.Sprintf("%d-%d|", round, i), 1+i*7)
			must(t, s.Append(ctx, int64(len(want)), []byte(record), i%3 > 0))
			want += record
		}
		must(t, s.Append(ctx, int64(len(want)), nil, true))
		for who, s := range map[string]state.Store{"its writer": s, "another process": opened(t, open)} {
			if got, err := s.ReadJournal(ctx); string(got) != want || err != nil {
				t.Fatalf("%s reads %q %v, want %q", who, got, err, want)
			}
		}
		if err := s.Append(ctx, int64(len(want)+1), []byte("x"), true); err == nil {
			t.Error("appended behind the end")
		}
		other := opened(t, open)
		if err := other.Append(ctx, 0, []byte("x"), true); err == nil {
			t.Error("began a journal where there was one")
		}
		must(t, s.DropJournal(ctx))
		if log, err := opened(t, open).ReadJournal(ctx); log != nil || err != nil {
			t.Errorf("after the drop: %q %v", log, err)
		}
	}
	data, _, err := opened(t, open).ReadSnapshot(ctx)
	if string(data) != string(state.New("l").Encode(1)) || err != nil {
		t.Errorf("the snapshot became %q %v", data, err)
	}
}

// cuts has another process go on in the middle of what there is.
func cuts(t *testing.T, h Harness) {
	ctx := t.Context()
	for cut := range 10 {
		open := h.Place(t)
		s := opened(t, open)
		must(t, s.Append(ctx, 0, []byte("abc"), true))
		must(t, s.Append(ctx, 3, []byte("defg"), true))
		must(t, s.Append(ctx, 7, []byte("hi"), true))
		if cut == 0 {
			continue // a journal begins once
		}
		other := opened(t, open)
		if log, err := other.ReadJournal(ctx); string(log) != "abcdefghi" || err != nil {
			t.Fatalf("read %q %v", log, err)
		}
		must(t, other.Append(ctx, int64(cut), []byte("XY"), true))
		must(t, other.Append(ctx, int64(cut+2), []byte("Z"), true))
		want := "abcdefghi"[:cut] + "XYZ"
		if log, err := opened(t, open).ReadJournal(ctx); string(log) != want || err != nil {
			t.Errorf("cut at %d: %q %v, want %q", cut, log, err, want)
		}
	}
}

// twoWriters has two processes append without a lock: what the first one
// wrote stays, whatever becomes of the second's.
func twoWriters(t *testing.T, h Harness) {
	if h.Unbreakable || h.Unconditional {
		t.Skip("only the lock keeps others out")
	}
	open, ctx := h.Place(t), t.Context()
	a, b := opened(t, open), opened(t, open)
	must(t, a.Append(ctx, 0, []byte("abc"), true))
	if _, err := b.ReadJournal(ctx); err != nil {
		t.Fatal(err)
	}
	must(t, a.Append(ctx, 3, []byte("def"), true))
	if err := b.Append(ctx, 3, []byte("xyz"), true); err == nil {
		t.Error("a journal was written over that had grown since it was read")
	}
	if log, err := opened(t, open).ReadJournal(ctx); string(log) != "abcdef" || err != nil {
		t.Errorf("journal %q %v", log, err)
	}
}

func instance(i int) address.Instance {
	return address.Resource{Type: "test_file", Name: "x"}.Instance(address.IntKey(i))
}

func change(i int, name string) state.Change {
	o := state.RawObject([]byte(`{"name":"`+name+`"}`), state.Meta{Provider: `provider["p"]`})
	return state.Change{Address: instance(i), Object: o}
}

// create adds one object: an intent and its result.
func create(ctx context.Context, j *state.Journal, i int) error {
	id := fmt.Sprint("op", i)
	if err := j.Intent(ctx, state.Intent{ID: id, Address: instance(i), Action: state.Create, Durable: true}); err != nil {
		return err
	}
	return j.Result(ctx, state.Result{Intent: id, Changes: []state.Change{change(i, id)}, Durable: true})
}

// addOne is a run that creates one object.
func addOne(ctx context.Context, s state.Store, i int) error {
	f, err := state.Open(ctx, s)
	if err != nil {
		return err
	}
	j, err := f.Begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(create(ctx, j, i), j.Close(ctx))
}

func wholeRun(t *testing.T, h Harness) {
	open, ctx := h.Place(t), t.Context()
	for i := range 3 {
		must(t, addOne(ctx, opened(t, open), i))
	}
	f, err := state.Open(ctx, opened(t, open))
	must(t, err)
	if st := f.State(); st.Serial() != 3 || len(st.Instances()) != 3 || f.Unfolded() {
		t.Errorf("serial %d, %v, unfolded %v", st.Serial(), st.Instances(), f.Unfolded())
	}
	j, err := f.Begin(ctx)
	must(t, err)
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			if err := create(ctx, j, 100+i); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	must(t, j.Close(ctx))
	if n := len(f.State().Instances()); n != 43 {
		t.Errorf("%d objects after 40 at once", n)
	}
}

// crashed leaves a run in the middle.
func crashed(t *testing.T, h Harness) {
	open, ctx := h.Place(t), t.Context()
	must(t, addOne(ctx, opened(t, open), 0))
	f, err := state.Open(ctx, opened(t, open))
	must(t, err)
	j, err := f.Begin(ctx)
	must(t, err)
	must(t, create(ctx, j, 1))
	must(t, j.Intent(ctx, state.Intent{ID: "left", Address: instance(2), Action: state.Create, Durable: true}))
	s := opened(t, open)
	if data, _, err := s.ReadSnapshot(ctx); err != nil {
		t.Fatal(err)
	} else if st, err := state.Decode("x", data); err != nil || !st.Unfolded() {
		t.Errorf("Terraform would take the snapshot: %v", err)
	}
	g, err := state.Open(ctx, s)
	must(t, err)
	if open := g.Open(); len(open) != 1 || open[0].ID != "left" || len(g.State().Instances()) != 2 {
		t.Fatalf("open %v, objects %v", open, g.State().Instances())
	}
	j, err = g.Begin(ctx)
	must(t, err)
	must(t, j.Result(ctx, state.Result{Intent: "left", Changes: []state.Change{change(2, "found")}, Durable: true}))
	must(t, j.Close(ctx))
	g, err = state.Open(ctx, opened(t, open))
	must(t, err)
	if len(g.State().Instances()) != 3 || g.Unfolded() || g.State().Serial() != 2 {
		t.Errorf("objects %v, serial %d", g.State().Instances(), g.State().Serial())
	}
}

func conflicts(t *testing.T, h Harness) {
	open, ctx := h.Place(t), t.Context()
	must(t, addOne(ctx, opened(t, open), 0))
	f, err := state.Open(ctx, opened(t, open))
	must(t, err)
	must(t, addOne(ctx, opened(t, open), 1))
	_, err = f.Begin(ctx)
	var c *state.ConflictError
	if !errors.As(err, &c) {
		t.Errorf("begin on an old state: %v", err)
	}
	g, err := state.Open(ctx, opened(t, open))
	must(t, err)
	if n := len(g.State().Instances()); n != 2 || len(g.Open()) > 0 {
		t.Errorf("%d objects, open %v", n, g.Open())
	}
	must(t, addOne(ctx, opened(t, open), 2))
}

// large keeps a state and records of several megabytes.
func large(t *testing.T, h Harness) {
	open, ctx := h.Place(t), t.Context()
	s := opened(t, open)
	big := strings.Repeat("0123456789abcdef", 3<<16) // 3 MiB that compress
	f, err := state.Open(ctx, s)
	must(t, err)
	j, err := f.Begin(ctx)
	must(t, err)
	must(t, j.Result(ctx, state.Result{Changes: []state.Change{change(0, big)}, Durable: true}))
	must(t, j.Close(ctx))
	g, err := state.Open(ctx, opened(t, open))
	must(t, err)
	if o := g.State().Current(instance(0)); o == nil || len(o.JSON) < len(big) {
		t.Error("the object is lost")
	}
}
