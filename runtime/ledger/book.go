package ledger

import (
	"fmt"
	"slices"
	"sort"

	"github.com/stokehq/stoke/runtime/spec"
)

// Ranges is a set of positions: disjoint [start, end) in ascending order, no
// two of which touch.
type Ranges [][2]int64

// Add puts [start, end) in. A position that is in already is an error and
// changes nothing.
func (r *Ranges) Add(start, end int64) error {
	if start < 0 || start >= end {
		return fmt.Errorf("range [%d, %d) is not one", start, end)
	}
	s := *r
	i := sort.Search(len(s), func(i int) bool { return s[i][1] >= start }) // first that touches or lies behind
	if i < len(s) && s[i][1] == start {
		if i+1 < len(s) && s[i+1][0] < end {
			return fmt.Errorf("range [%d, %d) is in already, in part", start, end)
		}
		s[i][1] = end
		if i+1 < len(s) && s[i+1][0] == end {
			s[i][1] = s[i+1][1]
			*r = slices.Delete(s, i+1, i+2)
		}
		return nil
	}
	if i < len(s) && s[i][0] < end {
		return fmt.Errorf("range [%d, %d) is in already, in part", start, end)
	}
	if i < len(s) && s[i][0] == end {
		s[i][0] = start
		return nil
	}
	*r = slices.Insert(s, i, [2]int64{start, end})
	return nil
}

// Count is the number of positions in the set.
func (r Ranges) Count() int64 {
	n := int64(0)
	for _, s := range r {
		n += s[1] - s[0]
	}
	return n
}

// Gaps is what is missing of [0, n).
func (r Ranges) Gaps(n int64) Ranges {
	var gaps Ranges
	at := int64(0)
	for _, s := range r {
		if s[0] > at {
			gaps = append(gaps, [2]int64{at, s[0]})
		}
		at = s[1]
	}
	if at < n {
		gaps = append(gaps, [2]int64{at, n})
	}
	return gaps
}

// Book is the account of committed records. The zero Book is empty, with n
// records per epoch to be set by NewBook.
type Book struct {
	n      int64
	epochs []Ranges
}

// NewBook makes an empty book for epochs of n records.
func NewBook(n int64) *Book { return &Book{n: n} }

// Commit enters what an update was made of: all of it, or on an error (a
// record that was committed before in its epoch) nothing that matters, as the
// run must end.
func (b *Book) Commit(taken ...spec.Contribution) error {
	for _, c := range taken {
		if c.Epoch < 0 || c.End > b.n {
			return fmt.Errorf("commit epoch %d, positions [%d, %d): only %d records", c.Epoch, c.Start, c.End, b.n)
		}
		for len(b.epochs) <= c.Epoch {
			b.epochs = append(b.epochs, nil)
		}
		if err := b.epochs[c.Epoch].Add(c.Start, c.End); err != nil {
			return fmt.Errorf("commit epoch %d: %w", c.Epoch, err)
		}
	}
	return nil
}

// Gaps is what is not committed of an epoch.
func (b *Book) Gaps(epoch int) Ranges {
	if epoch < len(b.epochs) {
		return b.epochs[epoch].Gaps(b.n)
	}
	return Ranges{{0, b.n}}
}

// Whole reports whether every record of the epoch is committed.
func (b *Book) Whole(epoch int) bool {
	return epoch < len(b.epochs) && len(b.epochs[epoch]) == 1 && b.epochs[epoch][0] == [2]int64{0, b.n}
}

// Records is the number of records committed, over all epochs.
func (b *Book) Records() int64 {
	n := int64(0)
	for _, e := range b.epochs {
		n += e.Count()
	}
	return n
}

// Save copies the book out, for a checkpoint or the API.
func (b *Book) Save() []spec.EpochLedger {
	out := make([]spec.EpochLedger, 0, len(b.epochs))
	for i, e := range b.epochs {
		out = append(out, spec.EpochLedger{Epoch: i, Ranges: slices.Clone(e)})
	}
	return out
}

// Load reads back what Save gave.
func Load(n int64, saved []spec.EpochLedger) (*Book, error) {
	b := NewBook(n)
	for _, e := range saved {
		for _, r := range e.Ranges {
			if err := b.Commit(spec.Contribution{Epoch: e.Epoch, Start: r[0], End: r[1]}); err != nil {
				return nil, fmt.Errorf("load ledger: %w", err)
			}
		}
	}
	return b, nil
}
