package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func openLog(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// fill begins a term and adds records of ten positions each.
func fill(t *testing.T, l *Log, term, from, to int64) {
	t.Helper()
	if err := l.Begin(term, from); err != nil {
		t.Fatal(err)
	}
	for step := from; step < to; step++ {
		if err := l.Add(Record{Epoch: int(step / 100), Start: step * 10, End: step*10 + 10, Skipped: step%3 == 0}); err != nil {
			t.Fatal(err)
		}
	}
}

func collect(l *Log, from, to int64) (all []Record, err error) {
	for r, e := range l.Records(from, to) {
		if e != nil {
			return all, e
		}
		all = append(all, r)
	}
	return all, nil
}

func TestLogHasTheValidRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ledger")
	l := openLog(t, dir)
	if step, ok := l.End(); ok || step != 0 {
		t.Errorf("an empty ledger ends at %d, %v", step, ok)
	}
	fill(t, l, 1, 0, 50)
	fill(t, l, 3, 20, 30) // back behind the first term's records
	fill(t, l, 4, 30, 30)
	fill(t, l, 7, 25, 9000)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	again := openLog(t, dir)
	if step, ok := again.End(); !ok || step != 9000 {
		t.Errorf("it ends at %d, %v", step, ok)
	}
	all, err := collect(again, 0, 9000)
	if err != nil || len(all) != 9000 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	for i, r := range all {
		step := int64(i)
		want := Record{Step: step + 1, Term: 7, Epoch: i / 100, Start: step * 10, End: step*10 + 10, Skipped: i%3 == 0}
		if i < 20 {
			want.Term = 1
		} else if i < 25 {
			want.Term = 3
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Fatalf("record %d: %s", i, diff)
		}
	}
	if some, err := collect(again, 24, 26); err != nil || len(some) != 2 || some[0].Term != 3 || some[1].Term != 7 {
		t.Errorf("in the middle: %+v, %v", some, err)
	}
	if _, err := collect(again, 8999, 9001); !errors.Is(err, ErrUnreadable) {
		t.Errorf("behind the end: %v", err)
	}
	if err := again.Add(Record{End: 1}); err == nil {
		t.Error("an earlier term's segment was written to")
	}
	if err := again.Begin(7, 25); err == nil {
		t.Error("a term was begun twice")
	}
}

// What is damaged is only missing where it is asked for.
func TestLogWithDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ledger")
	l := openLog(t, dir)
	fill(t, l, 1, 0, 2000)
	l.Close()
	path := filepath.Join(dir, "term-1-from-0")
	data, err := os.ReadFile(path)
	if err != nil || len(data) != 2000*recordBytes {
		t.Fatal(len(data), err)
	}
	clear(data[100*recordBytes:][:4096])
	copy(data[1000*recordBytes:], data[999*recordBytes:1000*recordBytes])
	if err := os.WriteFile(path, data[:len(data)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	again := openLog(t, dir)
	if step, _ := again.End(); step != 1999 {
		t.Errorf("with half a record, it ends at %d", step)
	}
	for _, tt := range []struct {
		from, to int64
		whole    bool
	}{{0, 100, true}, {0, 101, false}, {100 + 4096/recordBytes + 1, 1000, true}, {1000, 1001, false}, {1001, 1999, true}, {1500, 2000, false}} {
		if _, err := collect(again, tt.from, tt.to); (err == nil) != tt.whole || err != nil && !errors.Is(err, ErrUnreadable) {
			t.Errorf("steps %d to %d: %v", tt.from+1, tt.to, err)
		}
	}
	fill(t, again, 2, 1999, 2010)
	if all, err := collect(again, 1990, 2010); err != nil || len(all) != 20 {
		t.Errorf("gone on: %d records, %v", len(all), err)
	}
}

// An update costs a few bytes, and the last one is found without those before it.
func TestLogStaysSmall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ledger")
	l := openLog(t, dir)
	fill(t, l, 1, 0, 100_000)
	info, err := os.Stat(filepath.Join(dir, "term-1-from-0"))
	if err != nil || info.Size() > 40*100_000 { // 400 MB for 10 million
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	few, many := t.TempDir(), dir
	fill(t, openLog(t, few), 1, 0, 1)
	cost := func(dir string) float64 {
		return testing.AllocsPerRun(10, func() {
			if _, err := OpenLog(dir); err != nil {
				t.Fatal(err)
			}
		})
	}
	if a, b := cost(few), cost(many); b > 2*a { // other goroutines allocate a few, too
		t.Errorf("%g allocations to open 100,000 records, %g for one", b, a)
	}
}
