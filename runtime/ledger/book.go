package ledger

import (
	"fmt"
	"math"
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

// Book is the account of committed records. Finished epochs are a number, so
// that it costs the same after one epoch and after a million.
type Book struct {
	n       int64
	whole   int      // epochs 0 … whole-1 are committed
	open    []Ranges // of epoch whole and those behind it: as many as are under way
	records int64
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
		if c.Epoch < b.whole {
			return fmt.Errorf("commit epoch %d, positions [%d, %d): all of its records are in already", c.Epoch, c.Start, c.End)
		}
		if c.Epoch-b.whole > maxOpen {
			return fmt.Errorf("commit epoch %d: epoch %d has records left", c.Epoch, b.whole)
		}
		for len(b.open) <= c.Epoch-b.whole {
			b.open = append(b.open, nil)
		}
		if err := b.open[c.Epoch-b.whole].Add(c.Start, c.End); err != nil {
			return fmt.Errorf("commit epoch %d: %w", c.Epoch, err)
		}
		b.records += c.End - c.Start
	}
	b.settle()
	return nil
}

// maxOpen bounds how far ahead of the first unfinished epoch one may be
// committed to: asynchronously, by as many updates as there are leases.
const maxOpen = 1 << 16

// settle counts the finished epochs at the front.
func (b *Book) settle() {
	done := 0
	for done < len(b.open) && b.full(b.open[done]) {
		done++
	}
	b.whole += done
	b.open = slices.Delete(b.open, 0, done)
}

func (b *Book) full(r Ranges) bool { return len(r) == 1 && r[0] == [2]int64{0, b.n} }

// Gaps is what is not committed of an epoch.
func (b *Book) Gaps(epoch int) Ranges {
	switch {
	case epoch < b.whole:
		return nil
	case epoch < b.whole+len(b.open):
		return b.open[epoch-b.whole].Gaps(b.n)
	}
	return Ranges{{0, b.n}}
}

// IsComplete reports whether every record of the epoch is committed.
func (b *Book) IsComplete(epoch int) bool {
	i := epoch - b.whole
	return i < 0 || i < len(b.open) && b.full(b.open[i])
}

// Epochs is how many epochs at the beginning are committed whole.
func (b *Book) Epochs() int { return b.whole }

// FirstUncommitted is the first epoch of which, and of all behind it, nothing is
// committed.
func (b *Book) FirstUncommitted() int { return b.whole + len(b.open) }

// Records is the number of records committed, over all epochs.
func (b *Book) Records() int64 { return b.records }

// Save copies the book out, for a checkpoint or the API: how many epochs are
// whole, and what is committed of those behind them.
func (b *Book) Save() (whole int, open []spec.EpochLedger) {
	open = make([]spec.EpochLedger, 0, len(b.open))
	for i, e := range b.open {
		open = append(open, spec.EpochLedger{Epoch: b.whole + i, Ranges: slices.Clone(e)})
	}
	return b.whole, open
}

// Load reads back what Save gave. Books of earlier versions list every epoch,
// and none as whole.
func Load(n int64, whole int, open []spec.EpochLedger) (*Book, error) {
	if whole < 0 || int64(whole) > math.MaxInt64/max(1, n) {
		return nil, fmt.Errorf("load ledger: %d whole epochs", whole)
	}
	b := NewBook(n)
	b.whole, b.records = whole, int64(whole)*n
	for _, e := range open {
		for _, r := range e.Ranges {
			if err := b.Commit(spec.Contribution{Epoch: e.Epoch, Start: r[0], End: r[1]}); err != nil {
				return nil, fmt.Errorf("load ledger: %w", err)
			}
		}
	}
	return b, nil
}
