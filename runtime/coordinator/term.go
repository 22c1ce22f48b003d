package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/stokehq/stoke/runtime/durable"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// terms is the folder of claims: an empty file for each term, named by it.
// Making that file is what claims a term, so that nobody else can have it, and
// it is durable before anything is said in the term.
type terms string

func termsOf(f run.Folder) terms { return terms(filepath.Join(string(f), "terms")) }

// claim takes a free term above least and all that were claimed.
func (t terms) claim(least int64) (int64, error) {
	if err := os.Mkdir(string(t), 0o700); err != nil && !errors.Is(err, fs.ErrExist) { // never the run's folder, which may be gone
		return 0, fmt.Errorf("claim a term: %w", err)
	}
	highest, err := t.highest()
	if err != nil {
		return 0, err
	}
	for term := max(highest, least) + 1; ; term = max(term, highest) + 1 {
		file, err := os.OpenFile(t.file(term), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("claim a term: %w", err)
		}
		if err := errors.Join(file.Sync(), file.Close(), durable.SyncDir(string(t)), durable.SyncDir(filepath.Dir(string(t)))); err != nil {
			return 0, fmt.Errorf("claim term %d: %w", term, err)
		}
		// Where there is a higher one by now, this one may have been taken
		// before and its file removed.
		if highest, err = t.highest(); err != nil {
			return 0, err
		}
		if highest == term {
			t.tidy()
			return term, nil
		}
	}
}

// tidy removes the claims that a higher one makes superfluous, but for the last:
// somebody may be listing them right now.
func (t terms) tidy() {
	claimed, err := t.claimed()
	if err != nil {
		return // another time
	}
	slices.Sort(claimed)
	for i := 0; i+2 < len(claimed); i++ {
		os.Remove(t.file(claimed[i]))
	}
}

func (t terms) highest() (int64, error) {
	claimed, err := t.claimed()
	highest := int64(0)
	for _, c := range claimed {
		highest = max(highest, c)
	}
	return highest, err
}

func (t terms) file(term int64) string { return filepath.Join(string(t), strconv.FormatInt(term, 10)) }

func (t terms) claimed() ([]int64, error) {
	entries, err := os.ReadDir(string(t))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for claimed terms: %w", err)
	}
	var claimed []int64
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			claimed = append(claimed, n)
		}
	}
	return claimed, nil
}

// errSuperseded ends a coordinator that another one has followed.
var errSuperseded = errors.New("superseded")

// supersededError says which term has followed which.
type supersededError struct{ term, by int64 }

func (e supersededError) Error() string {
	return fmt.Sprintf("%v: another coordinator speaks for the run: term %d has been followed by term %d", errSuperseded, e.term, e.by)
}

func (e supersededError) Unwrap() error { return errSuperseded }

func superseded(term, by int64) error { return supersededError{term, by} }

// check is nil as long as nobody has claimed a term above this one.
func (t terms) check(term int64) error {
	highest, err := t.highest()
	if err == nil && highest > term {
		err = superseded(term, highest)
	}
	return err
}

// ours is nil as long as this coordinator speaks for the run.
func (c *coordinator) ours() error { return c.terms.check(c.term) }

// begin claims the next term, in which the run goes back to one state. No
// coordinator of an earlier term can write to what this one writes from then on.
func (c *coordinator) begin() error {
	if err := c.ours(); err != nil && c.term > 0 {
		return err
	}
	c.claiming.Lock()
	term, err := c.terms.claim(max(c.term, c.journal.term, c.floor))
	if err == nil {
		c.term, c.spoken = term, false
	}
	c.claiming.Unlock()
	if err != nil {
		return fmt.Errorf("%w: %w", errStorage, err)
	}
	damaged, err := c.journal.begin(c.ours)
	switch {
	case errors.Is(err, errSuperseded):
		return err
	case err != nil:
		return full(err)
	case damaged > 0:
		text := fmt.Sprintf("%d lines of the history could not be read: they are in metrics.jsonl.damaged-1 and later files", damaged)
		c.Log.Error(text)
		c.note(spec.Event{Type: spec.EventDamage, Message: text})
	}
	return nil
}

// proclaim claims the term where the checkpoints lie as well, if that is not in
// the folder of the coordinator's own: one that has lost its folder finds there
// which terms there have been, and takes a higher one. Nothing is said in a term
// before that.
func (c *coordinator) proclaim(ctx context.Context) error {
	if c.Checkpoints.String() == c.Folder.Checkpoints() {
		return nil
	}
	for c.proclaimed != c.term {
		highest, err := c.Checkpoints.Claimed(ctx, c.hash)
		if err != nil {
			return placeError{err}
		}
		if highest < c.term {
			ok, err := c.Checkpoints.Claim(ctx, c.hash, c.term)
			if err != nil {
				return placeError{err}
			}
			if ok {
				c.proclaimed = c.term
			}
			continue
		}
		c.floor = highest
		if err := c.begin(); err != nil {
			return err
		}
	}
	return nil
}

// unfollowed is nil as long as nobody has proclaimed a term above one that
// something was made in.
func (c *coordinator) unfollowed(ctx context.Context, term int64) error {
	if c.Checkpoints.String() == c.Folder.Checkpoints() {
		return nil
	}
	highest, err := c.Checkpoints.Claimed(ctx, c.hash)
	if err == nil && highest > term {
		err = superseded(term, highest)
	}
	return err
}
