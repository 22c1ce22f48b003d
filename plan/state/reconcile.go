package state

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stokehq/stoke/plan/seal"
)

// reconcile compares the journal with the snapshot and replays it. A
// process can leave these combinations, in the order of the writes of Begin,
// Append and Close:
//
//	snapshot      journal                    what happened
//	none or 4     none                       nothing, or a run that was completed
//	none or 4     torn header                died in Begin: remove it
//	none or 4     same serial, no records    died in Begin, before the snapshot became 5
//	5             same serial                died at work, or left intents open: go on
//	4             same serial, folded        died in Close, nothing had changed
//	4, serial+n   older serial, folded       died in Close, before the journal was removed
//
// Any other combination is an error: another program wrote a file.
func (f *File) reconcile(log []byte) error {
	snapName, logName := f.store.Names()
	corrupt := func(offset int, format string, args ...any) error {
		return &CorruptError{logName, int64(offset), fmt.Sprintf(format, args...)}
	}
	if log == nil {
		if f.snap != nil && f.snap.version == versionOpen {
			return &CorruptError{snapName, int64(f.snap.versionAt), fmt.Sprintf(
				"version 5 says that a journal belongs to it, and %s is not there. "+
					"Put the journal back; or, if it is lost, change the 5 into a 4 and import what the last run made", logName)}
		}
		return nil
	}
	frames, whole, serr := splitFrames(log)
	if serr != nil {
		return corrupt(serr.offset, "%s", serr.reason)
	}
	if len(frames) == 0 {
		if f.snap != nil && f.snap.version == versionOpen {
			return corrupt(0, "it ends within its first record, although %s says that it was complete", snapName)
		}
		f.journal = journalStale
		return nil
	}
	if frames[0].kind != kindHeader {
		return corrupt(0, "the first record is not a header: this is not a journal")
	}
	h, serr := decodeHeader(frames[0].payload)
	if serr != nil {
		return corrupt(frames[0].at+serr.offset, "%s", serr.reason)
	}
	if h.format > journalFormat {
		return &NewerVersionError{logName, int64(min(h.format, 1<<31)), journalFormat}
	}
	r := &replay{open: map[string]openIntent{}}
	if serr := r.read(frames[1:], f.snap.box()); serr != nil {
		return corrupt(serr.offset, "%s", serr.reason)
	}
	if whole < len(log) {
		f.note("The last record of %s was cut short when the program was killed; its %d bytes are dropped, and nothing was done on them.",
			logName, len(log)-whole)
	}
	return f.adopt(h, r, whole)
}

// adopt compares the header with the snapshot, and takes over what the
// records say.
func (f *File) adopt(h header, r *replay, whole int) error {
	snapName, logName := f.store.Names()
	corrupt := func(format string, args ...any) error {
		return &CorruptError{logName, 0, fmt.Sprintf(format, args...)}
	}
	s := f.snap
	if s == nil {
		if !h.fresh || r.last > 0 {
			return corrupt("it belongs to a snapshot of serial %d, and %s is not there. Put the snapshot back, from a backup if need be", h.serial, snapName)
		}
		f.journal = journalStale
		return nil
	}
	f.fresh = h.fresh && h.serial == s.serial
	switch {
	case h.lineage != s.lineage:
		return corrupt("it belongs to a state of lineage %q, and %s has lineage %q", clip([]byte(h.lineage)), snapName, clip([]byte(s.lineage)))
	case h.serial > s.serial:
		return corrupt("it follows serial %d, and %s has the older serial %d", h.serial, snapName, s.serial)
	case h.serial < s.serial:
		switch {
		case s.version == versionOpen:
			return corrupt("it follows serial %d, and %s waits for a journal that follows serial %d", h.serial, snapName, s.serial)
		case r.fold != nil && (r.fold.serial < s.serial || r.fold.sum == s.sum()):
		case r.closed == nil && r.effects == 0 && len(r.open) == 0:
		default:
			return corrupt("it follows serial %d and holds changes that %s, which has serial %d, does not have", h.serial, snapName, s.serial)
		}
		f.journal = journalStale
		return nil
	case h.sum != s.sum():
		return &CorruptError{snapName, 0, fmt.Sprintf("it was changed after the run began that %s tells of. Undo the change", logName)}
	}
	if r.closed != nil {
		// The fold drops the key, and then the journal's records are not needed.
		if r.fold != nil && s.version == versionFolded && r.fold.serial == s.serial && r.fold.sum == s.sum() {
			f.journal = journalStale
			return nil
		}
		return &CorruptError{logName, int64(r.closed.offset), r.closed.reason}
	}
	f.journal, f.size, f.at = journalLive, int64(whole), r.last
	f.core = newCore(s)
	for i := range r.results {
		f.core.apply(r.results[i].seq, r.results[i].Changes, r.results[i].Outputs)
		f.core.setChecks(r.results[i].seq, r.results[i].Checks)
	}
	f.open = sortedIntents(r.open)
	return nil
}

func sortedIntents(m map[string]openIntent) []openIntent {
	list := make([]openIntent, 0, len(m))
	for _, in := range m {
		list = append(list, in)
	}
	slices.SortFunc(list, func(a, b openIntent) int { return cmp.Compare(a.seq, b.seq) })
	return list
}

// replay is what the records after the header say.
type replay struct {
	open    map[string]openIntent
	results []seqResult
	effects int          // results that change something
	fold    *fold        // if that is the last record
	closed  *syntaxError // why the first record that could not be opened could not
	last    uint64
}

type seqResult struct {
	seq uint64
	Result
}

func (r *replay) read(frames []frame, b *seal.Box) *syntaxError {
	strings := intern{}
	for _, fr := range frames {
		fr, err := fr.open(b)
		if err != nil {
			r.fold, r.last = nil, fr.seq
			if r.closed == nil {
				r.closed = err
			}
			continue
		}
		s := scanRecord(fr.payload)
		r.fold, r.last = nil, fr.seq
		switch fr.kind {
		case kindIntent:
			in := s.intent(strings)
			s.end()
			if _, ok := r.open[in.ID]; ok {
				s.fail(0, "the intent %q is there twice", clip([]byte(in.ID)))
			}
			r.open[in.ID] = openIntent{fr.seq, in}
		case kindResult:
			res := s.result(strings)
			s.end()
			if _, ok := r.open[res.Intent]; !ok && res.Intent != "" {
				s.fail(0, "a result names the intent %q, which is not open", clip([]byte(res.Intent)))
			}
			delete(r.open, res.Intent)
			if len(res.Changes) > 0 || res.Outputs != nil || res.Checks != nil {
				r.effects++
			}
			r.results = append(r.results, seqResult{fr.seq, res})
		case kindFold:
			f, err := decodeFold(fr.payload)
			r.fold, s.err = &f, err
		default:
			s.fail(0, "record %d is of the unknown kind %d", fr.seq, fr.kind)
		}
		if s.err != nil {
			return &syntaxError{fr.at + s.err.offset, s.err.reason}
		}
	}
	return nil
}
