package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
)

// died is the store of a run that played its script and was killed.
func died(t testing.TB, base []byte) *memory {
	t.Helper()
	m := newMemory()
	m.snapshot = base
	j := begin(t, open(t, m))
	for _, step := range script(t) {
		if err := step(j); err != nil {
			t.Fatal(err)
		}
	}
	in := Intent{
		ID: "last", Address: instance("last", address.StringKey("k")), Action: Create, DeposeTo: "ab", Planned: []byte(`{"name":null}`),
		Provider: testProvider, SchemaVersion: 3, Private: []byte{1}, Dependencies: []string{"a.b"}, CreateBeforeDestroy: true,
		Sensitive: []cty.Path{cty.GetAttrPath("name")}, Deposed: "cd",
	}
	if err := j.Intent(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j) // an intent is open: it stays
	return m
}

func TestIntentRoundTrip(t *testing.T) {
	f := open(t, died(t, nil))
	want := Intent{
		ID: "last", Address: instance("last", address.StringKey("k")), Action: Create, DeposeTo: "ab", Planned: []byte(`{"name":null}`),
		Provider: testProvider, SchemaVersion: 3, Private: []byte{1}, Dependencies: []string{"a.b"}, CreateBeforeDestroy: true,
		Sensitive: []cty.Path{cty.GetAttrPath("name")}, Deposed: "cd",
	}
	equal := cmp.Comparer(func(a, b cty.Path) bool { return a.Equals(b) })
	key := cmp.Comparer(func(a, b address.Key) bool { return a == b })
	if d := cmp.Diff([]Intent{want}, f.Open(), equal, key); d != "" {
		t.Error(d)
	}
}

// TestShownHidesInterrupted shows an object that an update, of which nobody knows
// how far it came, was to make sensitive.
func TestShownHidesInterrupted(t *testing.T) {
	m := newMemory()
	j := begin(t, open(t, m))
	addr := instance("a", address.Key{})
	o, err := NewObject(cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("x")}), testType, Meta{Provider: testProvider})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Result(t.Context(), Result{Changes: []Change{{Address: addr, Object: o}}}); err != nil {
		t.Fatal(err)
	}
	path := cty.GetAttrPath("name")
	if err := j.Intent(t.Context(), Intent{ID: "u", Address: addr, Action: Update, Provider: testProvider, Planned: o.JSON, Sensitive: []cty.Path{path}}); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	f := open(t, m)
	if got := f.StateForDisplay().Current(addr).Sensitive; len(got) != 1 || !got[0].Equals(path) {
		t.Errorf("sensitive is %v", got)
	}
	if got := f.State().Current(addr).Sensitive; len(got) != 0 {
		t.Errorf("the state itself was changed: %v", got)
	}
}

// TestJournalBytes damages each byte of a journal: nothing may be guessed.
func TestJournalBytes(t *testing.T) {
	m := died(t, readTestdata(t))
	for i := range m.journal {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			n := m.revive()
			n.journal = append([]byte{}, m.journal...)
			n.journal[i] ^= flip
			f, err := Open(t.Context(), n)
			var c *CorruptError
			if !errors.As(err, &c) || c.Path != "memory.journal" {
				t.Fatalf("byte %d ^ %02x: %v, error %v", i, flip, f, err)
			}
		}
	}
}

// TestJournalCut cuts a journal after each byte: what is whole counts.
func TestJournalCut(t *testing.T) {
	m := died(t, readTestdata(t))
	frames, _, serr := splitFrames(m.journal)
	if serr != nil {
		t.Fatal(serr)
	}
	whole := 1
	for i := frames[1].at - headLen; i < len(m.journal); i++ {
		for whole < len(frames) && i >= frames[whole].at+len(frames[whole].payload)+tailLen {
			whole++
		}
		n := m.revive()
		n.journal = m.journal[:i:i]
		f := open(t, n)
		if got := f.State().Seq(); got != uint64(whole-1) {
			t.Fatalf("cut at %d: %d records, want %d", i, got, whole-1)
		}
		torn := i > frames[whole-1].at+len(frames[whole-1].payload)+tailLen
		if (len(f.Notes()) > 0) != torn {
			t.Fatalf("cut at %d: notes %q", i, f.Notes())
		}
	}
}

func TestJournalErrors(t *testing.T) {
	base := readTestdata(t)
	join := func(frames ...[]byte) []byte { return append([]byte{}, []byte(strings.Join(toStrings(frames), ""))...) }
	m := died(t, base)
	head := m.journal[:headLen+len(firstPayload(t, m.journal))+tailLen]
	record := func(seq uint64, k kind, payload string) []byte { return appendFrame(nil, seq, k, []byte(payload)) }
	other := header{journalFormat, "other", 7, "", false}
	tests := map[string]struct {
		snapshot []byte
		journal  []byte
		want     string
	}{
		"lost journal":       {m.snapshot, nil, "memory is corrupt at byte 15: version 5 says that a journal belongs to it"},
		"empty journal":      {m.snapshot, []byte{}, "it ends within its first record"},
		"lost snapshot":      {nil, m.journal, "belongs to a snapshot of serial 7, and memory is not there"},
		"empty snapshot":     {[]byte{}, m.journal, "the file is empty"},
		"garbage":            {m.snapshot, join(m.journal, []byte("0123456789012345678901234567890")), "does not match its checksum"},
		"short garbage":      {m.snapshot, join(m.journal, []byte("0123456789")), "found something that is not record"},
		"other file":         {base, []byte(`{"version":4,"serial":1,"lineage":"x","resources":[]}`), "does not match its checksum"},
		"gap":                {m.snapshot, join(head, record(2, kindResult, `{}`)), "record 2 is in the place of record 1"},
		"no header":          {m.snapshot, record(0, kindResult, `{}`), "the first record is not a header"},
		"unknown kind":       {m.snapshot, join(head, record(1, 77, `{}`)), "of the unknown kind 77"},
		"unknown member":     {m.snapshot, join(head, record(1, kindResult, `{"odd":1}`)), `unknown member "odd"`},
		"no such intent":     {m.snapshot, join(head, record(1, kindResult, `{"intent":"x"}`)), `names the intent "x", which is not open`},
		"unknown action":     {m.snapshot, join(head, record(1, kindIntent, `{"id":"x","action":"odd"}`)), `the action "odd" is unknown`},
		"no address":         {m.snapshot, join(head, record(1, kindIntent, `{"id":"x","action":"create"}`)), "lacks an address"},
		"other lineage":      {base, appendFrame(nil, 0, kindHeader, other.encode()), `of lineage "other"`},
		"snapshot edited":    {[]byte(strings.Replace(string(m.snapshot), "gpu1", "gpu3", 1)), m.journal, "it was changed after the run began"},
		"snapshot older":     {[]byte(strings.Replace(string(base), `"serial": 7`, `"serial": 6`, 1)), m.journal, "has the older serial 6"},
		"snapshot newer":     {[]byte(strings.Replace(string(base), `"serial": 7`, `"serial": 8`, 1)), m.journal, "holds changes that memory, which has serial 8, does not have"},
		"snapshot newer, 5":  {[]byte(strings.Replace(string(m.snapshot), `"serial": 7`, `"serial": 8`, 1)), m.journal, "waits for a journal that follows serial 8"},
		"journal of a newer": {m.snapshot, appendFrame(nil, 0, kindHeader, header{3, "x", 7, "", false}.encode()), "format version 3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			m.snapshot, m.journal = tt.snapshot, tt.journal
			f, err := Open(t.Context(), m)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v, error %v\nwant %s", f, err, tt.want)
			}
			if len(m.log) > 0 {
				t.Errorf("it was written: %q", m.log)
			}
		})
	}
}

func toStrings(list [][]byte) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = string(list[i])
	}
	return out
}

func firstPayload(t *testing.T, journal []byte) []byte {
	frames, _, err := splitFrames(journal)
	if err != nil {
		t.Fatal(err)
	}
	return frames[0].payload
}

func TestNothingChanged(t *testing.T) {
	base := readTestdata(t)
	m := newMemory()
	m.snapshot = base
	f := open(t, m)
	j := begin(t, f)
	if !strings.Contains(string(m.snapshot), `"version": 5`) {
		t.Errorf("with an open journal the snapshot says %.20s", m.snapshot)
	}
	// A refresh that finds what was known, and a call that failed.
	for _, a := range f.State().Instances() {
		if o := f.State().Current(a); o != nil {
			if err := j.Result(t.Context(), Result{Changes: []Change{{Address: a, Object: RawObject([]byte(compact(o.JSON)), o.Meta)}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeJournal(t, j)
	if string(m.snapshot) != string(base) {
		t.Errorf("a refresh found what was known, and the snapshot changed:\n%s", cmp.Diff(string(base), string(m.snapshot)))
	}
	j = begin(t, open(t, m))
	a := instance("x", address.Key{})
	if err := j.Intent(t.Context(), Intent{ID: "1", Address: a, Action: Create}); err != nil {
		t.Fatal(err)
	}
	if err := j.Result(t.Context(), Result{Intent: "1", Err: "no"}); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	if string(m.snapshot) != string(base) || m.journal != nil {
		t.Errorf("nothing changed, and the snapshot did:\n%s", cmp.Diff(string(base), string(m.snapshot)))
	}
}

func TestBeginAgain(t *testing.T) {
	m := newMemory()
	f := open(t, m)
	lineage := f.State().Lineage()
	for i := range 3 {
		j := begin(t, f)
		if _, err := f.Begin(t.Context()); err == nil {
			t.Error("two journals at a time")
		}
		a := instance("x", address.IntKey(i))
		if err := j.Result(t.Context(), Result{Changes: []Change{{Address: a, Object: object(t, "x")}}}); err != nil {
			t.Fatal(err)
		}
		closeJournal(t, j)
		if err := j.Close(t.Context()); err == nil {
			t.Error("closed twice")
		}
		if err := j.Result(t.Context(), Result{}); err == nil {
			t.Error("a closed journal took a result")
		}
		for _, s := range []*State{f.State(), open(t, m).State()} {
			if s.Serial() != uint64(i+1) || s.Lineage() != lineage || len(s.Instances()) != i+1 {
				t.Errorf("run %d: serial %d, lineage %s, %d instances", i, s.Serial(), s.Lineage(), len(s.Instances()))
			}
		}
	}
	old, err := Decode("backup", m.backup)
	if err != nil || old.Serial() != 2 {
		t.Errorf("the backup has serial %d, %v", old.Serial(), err)
	}
}

// TestFull lets the disk be full for a while: nothing is lost.
func TestFull(t *testing.T) {
	m := newMemory()
	f := open(t, m)
	j := begin(t, f)
	a, b := instance("a", address.Key{}), instance("b", address.Key{})
	if err := j.Intent(t.Context(), Intent{ID: "1", Address: a, Action: Create, Durable: true}); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.steps = 0
	m.mu.Unlock()
	if err := j.Result(t.Context(), Result{Intent: "1", Changes: []Change{{Address: a, Object: object(t, "a")}}, Durable: true}); !errors.Is(err, errDead) {
		t.Errorf("result: %v", err)
	}
	if err := j.Intent(t.Context(), Intent{ID: "2", Address: b, Action: Create, Durable: true}); !errors.Is(err, errDead) {
		t.Errorf("intent: %v", err)
	}
	if err := j.Close(t.Context()); !errors.Is(err, errDead) {
		t.Errorf("close: %v", err)
	}
	if s, err := Decode("rescue", j.Rescue()); err != nil || s.Current(a) == nil {
		t.Errorf("rescue: %v", err)
	}
	m.steps = -1
	closeJournal(t, j)
	g := open(t, m)
	if s := g.State(); s.Current(a) == nil || len(g.Open()) > 0 || s.Serial() != 1 {
		t.Errorf("found %s", describeState(s, g.Open()))
	}
}

// bounded is a store on a disk that has so much room for a journal.
type bounded struct {
	*memory
	room int64
}

func (b bounded) Append(ctx context.Context, at int64, records []byte, durable bool) error {
	if at+int64(len(records)) > b.room {
		return fmt.Errorf("append to journal: %w", syscall.ENOSPC)
	}
	return b.memory.Append(ctx, at, records, durable)
}

// TestFilled fills a disk with what nobody waited for: all that it has room
// for is there for the next run, in whole records.
func TestFilled(t *testing.T) {
	for _, room := range []int64{900, 5000, 20_000} {
		m := newMemory()
		j := begin(t, open(t, bounded{m, room}))
		for i := range 200 {
			at := instance("a", address.IntKey(i))
			j.Result(t.Context(), Result{Changes: []Change{{Address: at, Object: object(t, "a")}}}) // fails sooner or later
		}
		if err := j.Close(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes: close: %v", room, err)
		}
		found := open(t, m).State()
		for i := range found.Instances() {
			if found.Current(instance("a", address.IntKey(i))) == nil {
				t.Errorf("%d bytes: number %d is missing", room, i)
			}
		}
		if free := room - int64(len(m.journal)); free < 0 || free > 600 || len(found.Instances()) == 0 {
			t.Errorf("%d bytes: %d objects, and %d bytes are free", room, len(found.Instances()), free)
		}
	}
}

func TestRefused(t *testing.T) {
	j := begin(t, open(t, newMemory()))
	defer closeJournal(t, j)
	a := instance("a", address.Key{})
	o := func(js string) *Object { return RawObject([]byte(js), Meta{Provider: "p"}) }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"JSON":           j.Result(ended, Result{Changes: []Change{{Address: a, Object: o(`{"a":`)}}}),
		"list":           j.Result(ended, Result{Changes: []Change{{Address: a, Object: o(`[]`)}}}),
		"null":           j.Result(ended, Result{Changes: []Change{{Address: a, Object: o(`null`)}}}),
		"provider":       j.Result(ended, Result{Changes: []Change{{Address: a, Object: RawObject([]byte(`{}`), Meta{})}}}),
		"address":        j.Result(ended, Result{Changes: []Change{{Address: address.Instance{}}}}),
		"unknown output": j.Result(ended, Result{Outputs: map[string]Output{"o": {Value: cty.UnknownVal(cty.String)}}}),
		"no output":      j.Result(ended, Result{Outputs: map[string]Output{"o": {}}}),
		"no intent":      j.Result(ended, Result{Intent: "x"}),
		"ended":          j.Intent(ended, Intent{ID: "1", Address: a, Action: Create}),
		"no id":          j.Intent(t.Context(), Intent{Address: a, Action: Create}),
		"no action":      j.Intent(t.Context(), Intent{ID: "1", Address: a}),
		"planned":        j.Intent(t.Context(), Intent{ID: "1", Address: a, Action: Create, Planned: []byte(`{`)}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if s := j.State(); s.Seq() != 0 {
		t.Errorf("something was recorded: %s", describeState(s, j.Open()))
	}
}

// TestConcurrent records from many goroutines while others read.
func TestConcurrent(t *testing.T) {
	const goroutines, each = 10, 50
	m := newMemory()
	f := open(t, m)
	j := begin(t, f)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				a := instance(fmt.Sprint("r", g), address.IntKey(i))
				id := a.String()
				if err := j.Intent(t.Context(), Intent{ID: id, Address: a, Action: Create, Durable: true}); err != nil {
					t.Error(err)
				}
				before := j.State()
				if err := j.Result(t.Context(), Result{Intent: id, Changes: []Change{{Address: a, Object: object(t, id)}}, Durable: i%2 == 0}); err != nil {
					t.Error(err)
				}
				if before.Current(a) != nil || j.State().Current(a) == nil {
					t.Errorf("%s: a state changed, or did not", a)
				}
				if n := len(j.State().Keys(a.Resource)); n != i+1 {
					t.Errorf("%s: %d keys", a, n)
				}
				if _, err := j.State().Current(a).Value(testType); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	closeJournal(t, j)
	t.Logf("%d records, %d appends, %d syncs", j.State().Seq(), m.appends, m.syncs)
	if n := len(open(t, m).State().Instances()); n != goroutines*each {
		t.Errorf("%d instances", n)
	}
}
