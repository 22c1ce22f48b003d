package history

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"

	"github.com/stokehq/stoke/runtime/spec"
)

// line is one line of the file. Of an update in full only number and type are
// known until it is merged.
type line struct {
	text  []byte
	event spec.Event
}

// lines are a file's lines, in order.
type lines struct {
	all  []line
	size int64 // of the part of the file that was read
}

// read reads the lines of the first size bytes, except damaged ones. It merges
// older updates meanwhile, so that memory stays small: keep has the meaning that
// thin gives it, and 0 merges none.
func (l *lines) read(from io.ReaderAt, size int64, bad []extent, keep int) error {
	updates := 0
	r := bufio.NewReaderSize(io.NewSectionReader(from, 0, size), buffer)
	for at := int64(0); ; {
		text, n, err := readLine(r)
		if err == io.EOF {
			l.size = size
			return nil
		}
		if err != nil {
			return err
		}
		for len(bad) > 0 && bad[0].to <= at {
			bad = bad[1:]
		}
		if isBad := len(bad) > 0 && bad[0].from <= at; !isBad {
			var e spec.Event
			if json.Unmarshal(text, &e) == nil {
				l.all = append(l.all, line{text, e})
				if e.Usage == nil {
					updates++
				}
			}
			if keep > 0 && updates > 4*keep {
				l.thin(keep)
				updates = 0
			}
		}
		at += n
	}
}

func (l *lines) write(w io.Writer) error {
	b := bufio.NewWriterSize(w, buffer)
	for _, line := range l.all {
		if _, err := b.Write(line.text); err != nil {
			return err
		}
	}
	return b.Flush()
}

// thin merges updates that are older than the newest keep ones, two by two, as
// often as it takes until there are no more than keep/2 of them.
func (l *lines) thin(keep int) {
	full, old := 0, 0
	first := len(l.all) // of the newest lines, which stay
	for first > 0 && full < keep {
		first--
		if l.all[first].isUpdate() {
			full++
		}
	}
	for _, line := range l.all[:first] {
		if line.isUpdate() {
			old++
		}
	}
	for old > keep/2 {
		merged := l.halve(first)
		if merged == 0 {
			return
		}
		first, old = first-merged, old-merged
	}
}

// halve merges neighbouring updates among the first n lines two by two, except
// across a step back, and returns how many lines that saves. A merged update
// takes the place of its last one.
func (l *lines) halve(n int) (merged int) {
	kept := make([]line, 0, len(l.all))
	open := -1 // index in kept of an update that waits for its neighbour
	for _, next := range l.all[:n] {
		switch {
		case !next.isUpdate():
			if next.event.Type == spec.EventRestore {
				open = -1
			}
			kept = append(kept, next)
			continue
		case open < 0:
			open = len(kept)
			kept = append(kept, next)
			continue
		}
		both := merge(kept[open].event, next.event)
		text, err := json.Marshal(both)
		if err != nil { // it is left as it is
			kept, open = append(kept, next), -1
			continue
		}
		kept = append(kept[:open], kept[open+1:]...)
		kept, open = append(kept, line{append(text, '\n'), both}), -1
		merged++
	}
	l.all = append(kept, l.all[n:]...)
	return merged
}

func (l line) isUpdate() bool {
	return l.event.Type == spec.EventUpdate || l.event.Type == spec.EventUpdates
}

// merge returns one event for two of updates; the first one is older.
func merge(a, b spec.Event) spec.Event {
	a, b = toSeveral(a), toSeveral(b)
	both := b // it has the newest number, time, term and step
	both.First, both.Count = a.First, a.Count+b.Count
	if len(a.Metrics) > 0 { // of a program: each event has the metrics that it reported then
		both.Metrics = maps.Clone(a.Metrics)
		for _, name := range b.NotFinite {
			delete(both.Metrics, name)
		}
		maps.Copy(both.Metrics, b.Metrics)
	}
	both.Records, both.Skips = a.Records+b.Records, a.Skips+b.Skips
	both.Staleness = max(a.Staleness, b.Staleness)
	counted := func(e spec.Event) float64 { return float64(e.Count - e.Skips) } // a skipped update has neither loss nor norm
	switch na, nb := counted(a), counted(b); {
	case nb == 0:
		both.Loss, both.Norm, both.LossMin, both.LossMax = a.Loss, a.Norm, a.LossMin, a.LossMax
	case na > 0:
		both.Loss = spec.Number((float64(a.Loss)*na + float64(b.Loss)*nb) / (na + nb))
		both.Norm = spec.Number((float64(a.Norm)*na + float64(b.Norm)*nb) / (na + nb))
		both.LossMin, both.LossMax = min(a.LossMin, b.LossMin), max(a.LossMax, b.LossMax)
	}
	return both
}

// toSeveral returns an event of one update as one of several.
func toSeveral(e spec.Event) spec.Event {
	if e.Type == spec.EventUpdates {
		return e
	}
	e.Type, e.First, e.Count, e.Taken = spec.EventUpdates, e.Step, 1, nil
	if e.Skipped {
		e.Skips = 1
	} else {
		e.LossMin, e.LossMax = e.Loss, e.Loss
	}
	e.Skipped = false
	return e
}

// Thin writes the file again with older updates merged, where that saves half of
// its updates, or with older samples of usage merged, where that saves a quarter of
// them. Events may be added meanwhile. check is called last; its error keeps the
// file.
func (f *File) Thin(check func() error) error {
	f.thinning.Lock()
	defer f.thinning.Unlock()
	f.mu.Lock()
	file, size, updates, usage := f.file, f.size, f.updates > 2*f.keep, f.samples.isDue(f.keepUsage)
	begun := f.begun
	f.mu.Unlock()
	if !begun || !updates && !usage {
		return nil
	}
	keep := 0 // merges no updates
	if updates {
		keep = f.keep
	}
	var l lines
	if err := l.read(file, size, nil, keep); err != nil {
		return err
	}
	if updates {
		l.thin(keep)
	}
	l.thinUsage(f.keepUsage)
	return f.rewrite(&l, check, func() {})
}
