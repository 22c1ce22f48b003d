package stoke_test

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fence is a rule of the house that older code still breaks. Its list under
// testdata/house has the exceptions, each with its number. The list only gets
// shorter: a number above the listed one fails, a lower one has to be written
// into the list, so that a number never rises again.
type fence struct {
	list  string
	rule  string // the first line of the list
	fault string // what a number counts, for messages: "files", "methods"
	fix   string // what to do about a new exception

	// group joins exceptions that code takes along when it moves: a key that is
	// not listed takes over what the others of its group lost. Nil: each key is
	// a group of its own.
	group func(key string) string
}

const rewrite = "go test . -run Fence -update"

func (f fence) file() string { return filepath.Join("testdata", "house", f.list) }

func (f fence) groupOf(key string) string {
	if f.group == nil {
		return key
	}
	return f.group(key)
}

// verdict is the result of a comparison with the list: what to report, and the
// list that -update writes.
type verdict struct {
	broken  []string          // keys whose number is too high, sorted
	stale   []string          // keys whose number fell or that moved, sorted
	advice  map[string]string // of each of these keys
	lowered map[string]int
}

// compare checks the found exceptions against the listed ones.
func (f fence) compare(listed, found map[string]int) verdict {
	spare := make(map[string]int) // of each group: listed less found
	for key, n := range listed {
		spare[f.groupOf(key)] += n
	}
	for key, n := range found {
		spare[f.groupOf(key)] -= n
	}
	v := verdict{advice: make(map[string]string), lowered: make(map[string]int)}
	keys := make(map[string]int)
	maps.Copy(keys, listed)
	maps.Copy(keys, found)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		have, may := found[key], listed[key]
		moved := f.group != nil && may == 0 && spare[f.groupOf(key)] >= 0
		switch {
		case have > may && moved:
			v.lowered[key] = have
			v.stale = append(v.stale, key)
			v.advice[key] = fmt.Sprintf("%s: %s moved here: write the list again with: %s", key, f.amount(have), rewrite)
		case have > may:
			if may > 0 {
				v.lowered[key] = may
			}
			v.broken = append(v.broken, key)
			v.advice[key] = fmt.Sprintf("%s: %s, %s allows %d: %s", key, f.amount(have), f.file(), may, f.fix)
		case have < may:
			if have > 0 {
				v.lowered[key] = have
			}
			v.stale = append(v.stale, key)
			v.advice[key] = fmt.Sprintf("%s: %s, %s allows %d: well done; %s with: %s",
				key, f.amount(have), f.file(), may, lowerOrRemove(have), rewrite)
		case have > 0:
			v.lowered[key] = have
		}
	}
	return v
}

func lowerOrRemove(have int) string {
	if have == 0 {
		return "take it off the list"
	}
	return "lower it"
}

// amount is a number with its noun.
func (f fence) amount(n int) string {
	noun := f.fault
	if n == 1 {
		noun = strings.TrimSuffix(noun, "s")
	}
	return strconv.Itoa(n) + " " + noun
}

// check reports each difference between the tree and the list. explain, which
// may be nil, returns more about a key whose number is too high. With -update it
// writes the lower numbers and reports only the higher ones.
func (f fence) check(t *testing.T, found map[string]int, explain func(key string) string) {
	t.Helper()
	text, err := os.ReadFile(f.file())
	if err != nil {
		t.Fatalf("read the exceptions: %v", err)
	}
	listed, err := f.parse(text)
	if err != nil {
		t.Fatal(err)
	}
	v := f.compare(listed, found)
	for _, key := range v.broken {
		more := ""
		if explain != nil {
			more = "\n" + explain(key)
		}
		t.Error(v.advice[key] + more)
	}
	if *update {
		if err := os.WriteFile(f.file(), f.format(v.lowered), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, key := range v.stale {
		t.Error(v.advice[key])
	}
}

// parse reads a list.
func (f fence) parse(text []byte) (map[string]int, error) {
	listed := make(map[string]int)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for at := 1; lines.Scan(); at++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		digits, key, ok := strings.Cut(line, " ")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n <= 0 || listed[key] > 0 {
			return nil, fmt.Errorf("%s:%d: %q: write a number, a space and a name, each name once", f.file(), at, line)
		}
		listed[key] = n
	}
	return listed, lines.Err()
}

// format writes a list, sorted by name.
func (f fence) format(listed map[string]int) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n# This list may only get shorter: %s\n", f.rule, rewrite)
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		fmt.Fprintf(&out, "%d %s\n", listed[key], key)
	}
	return out.Bytes()
}

func TestFenceLists(t *testing.T) {
	strict := fence{list: "files.txt", fault: "files", fix: "split it"}
	movable := strict
	movable.group = func(string) string { return "" }
	tests := []struct {
		what          string
		fence         fence
		listed, found map[string]int
		broken, stale string // part of the only advice
		lowered       map[string]int
	}{
		{"as listed", strict, map[string]int{"a": 3}, map[string]int{"a": 3}, "", "", map[string]int{"a": 3}},
		{"new", strict, nil, map[string]int{"a": 3}, "a: 3 files, testdata/house/files.txt allows 0: split it", "", map[string]int{}},
		{"grown", strict, map[string]int{"a": 3}, map[string]int{"a": 4}, "allows 3: split it", "", map[string]int{"a": 3}},
		{"fallen", strict, map[string]int{"a": 3}, map[string]int{"a": 2}, "", "lower it with: " + rewrite, map[string]int{"a": 2}},
		{"fixed", strict, map[string]int{"a": 3}, nil, "", "take it off the list with: " + rewrite, map[string]int{}},
		{"renamed in a list that names do not move in", strict, map[string]int{"a": 3}, map[string]int{"b": 3},
			"b: 3 files", "a: 0 files", map[string]int{}},
		{"new in a list that names move in", movable, map[string]int{"a": 3}, map[string]int{"a": 3, "b": 1},
			"b: 1 file,", "", map[string]int{"a": 3}},
		{"grown while another fell", movable, map[string]int{"a": 3, "b": 3}, map[string]int{"a": 4, "b": 2},
			"a: 4 files", "b: 2 files", map[string]int{"a": 3, "b": 2}},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			v := test.fence.compare(test.listed, test.found)
			advised(t, v, v.broken, test.broken)
			advised(t, v, v.stale, test.stale)
			if !maps.Equal(v.lowered, test.lowered) {
				t.Errorf("-update would write %v, want %v", v.lowered, test.lowered)
			}
		})
	}
	t.Run("moved", func(t *testing.T) {
		v := movable.compare(map[string]int{"a": 3}, map[string]int{"a": 1, "b": 2})
		if len(v.broken) > 0 || !maps.Equal(v.lowered, map[string]int{"a": 1, "b": 2}) {
			t.Errorf("broken %q, -update would write %v", v.broken, v.lowered)
		}
		if !strings.Contains(v.advice["b"], "moved here") {
			t.Errorf("advice %q does not say that it moved", v.advice["b"])
		}
	})
}

// advised checks that the advice on the only key contains a text; an empty text
// asks for an empty list.
func advised(t *testing.T, v verdict, keys []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(keys) > 0:
		t.Errorf("allowed, but reported: %q", keys)
	case want != "" && (len(keys) != 1 || !strings.Contains(v.advice[keys[0]], want)):
		t.Errorf("got %q with %q, want one with %q", keys, v.advice, want)
	}
}

func TestFenceListsAreRead(t *testing.T) {
	counted := fence{list: "files.txt", rule: "Packages."}
	listed := map[string]int{"plan": 55, "cmd/stoke": 83}
	got, err := counted.parse(counted.format(listed))
	if err != nil || !maps.Equal(got, listed) {
		t.Errorf("wrote %v, read %v (%v)", listed, got, err)
	}
	for _, text := range []string{"plan\n", "x plan\n", "0 plan\n", "-1 plan\n", "5 plan\n6 plan\n"} {
		if _, err := counted.parse([]byte(text)); err == nil {
			t.Errorf("%q was read without an error", text)
		}
	}
}
