package host

import (
	"context"
	"slices"
	"strings"
)

// Table is what a section looks after, kind by kind. W is the declaration, H
// has the observed facts.
type Table[W, H any] []Kind[W, H]

// Kind is a row of a section's table: facts that are noted, compared and given
// back in one way, such as sysctl keys.
type Kind[W, H any] struct {
	// Key is the key of the record's note. Where a machine has several facts of
	// the kind it ends in a blank, and the name of one follows.
	Key string
	// Names returns the names of the declared facts; "" is the one of a kind that
	// has one.
	Names func(want W, have H) []string
	// Wanted reports whether a fact that is noted is declared; by default, whether
	// Names has it.
	Wanted func(rec *Record, want W, name string) bool
	// Was returns the value to note of a fact, nil if it is not known.
	Was func(want W, have H, name string) any
	// Files are kept with the note; nil is none.
	Files func(name string) []string
	// Diff returns the differences of declared facts.
	Diff func(want W, have H) []Change
	// Back is what giving a fact back changes.
	Back func(rec *Record, name string) Change
}

// One returns Names for a kind with a single fact per machine.
func One[W, H any](declared func(W) bool) func(W, H) []string {
	return func(want W, _ H) []string {
		if declared(want) {
			return []string{""}
		}
		return nil
	}
}

// Becomes is Back for facts that get their former values, which interrupts
// nothing.
func Becomes(kind string) func(*Record, string) Change {
	return func(_ *Record, name string) Change {
		return Change{Fact: strings.TrimSpace(kind+" "+name) + " becomes what it was before"}
	}
}

// Diff compares the declaration with the observed facts.
func (t Table[W, H]) Diff(want W, have H) []Change {
	var changes []Change
	for _, k := range t {
		changes = append(changes, k.Diff(want, have)...)
	}
	return changes
}

// Note records the observed values of everything that is declared for the first
// time, whether it changes or not, and never again: a later change by hand is not
// a former value. A file that is not kept although its fact is noted was put back
// just before something was cut off: it is kept again.
func (t Table[W, H]) Note(ctx context.Context, rec *Record, want W, have H) error {
	was := map[string]any{}
	for _, k := range t {
		noted := rec.Keys(k.Key)
		for _, name := range k.Names(want, have) {
			if !slices.Contains(noted, k.Key+name) {
				is := k.Was(want, have, name)
				if is == nil {
					continue
				}
				was[k.Key+name] = is
			}
			if k.Files == nil {
				continue
			}
			for _, file := range k.Files(name) {
				if err := rec.KeepFile(ctx, file); err != nil {
					return err
				}
			}
		}
	}
	return rec.RememberAll(ctx, was)
}

// Undeclared returns the keys of facts that are noted and not declared, in the
// table's order.
func (t Table[W, H]) Undeclared(rec *Record, want W) []string {
	var keys []string
	t.undeclared(rec, want, func(k Kind[W, H], name string) { keys = append(keys, k.Key+name) })
	return keys
}

// Undoing is what giving back changes that is noted and not declared. Equal texts
// are listed once.
func (t Table[W, H]) Undoing(rec *Record, want W) []Change {
	var changes []Change
	t.undeclared(rec, want, func(k Kind[W, H], name string) {
		c := k.Back(rec, name)
		if !slices.ContainsFunc(changes, func(x Change) bool { return x.Fact == c.Fact }) {
			changes = append(changes, c)
		}
	})
	return changes
}

func (t Table[W, H]) undeclared(rec *Record, want W, each func(k Kind[W, H], name string)) {
	var nothing H
	for _, k := range t {
		for _, key := range rec.Keys(k.Key) {
			name := strings.TrimPrefix(key, k.Key)
			wanted := k.Wanted != nil && k.Wanted(rec, want, name) || k.Wanted == nil && slices.Contains(k.Names(want, nothing), name)
			if !wanted {
				each(k, name)
			}
		}
	}
}

// Keys returns the keys of the table's kinds.
func (t Table[W, H]) Keys() []string {
	var keys []string
	for _, k := range t {
		keys = append(keys, k.Key)
	}
	return keys
}
