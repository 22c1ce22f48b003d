package state

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/stokehq/stoke/plan/seal"
)

// A journal holds what providers answered, sensitive values included, and must
// not show them. Its records are therefore sealed with a key that is drawn
// for each journal and kept in the snapshot, as a member of its own
// while the snapshot says version 5:
//
//	{ "version": 5, …,"stoke_journal_key":"…"}
//
// Nothing new has to be kept safe or carried about by that: the snapshot holds
// the sensitive values anyway, is read and written by the same people under the
// same permissions, is needed to make sense of a journal at all, and is written
// before the first record. A reader of the state can therefore fold the journal
// after a crash, on any machine. A reader of only the journal (a backup, a disk
// image, a file attached to a report) learns how much was done and nothing
// else. Folding the journal drops the key, and then leftovers of the journal on
// a disk are unreadable.
//
// Whole records are sealed, not values in them: what is sensitive is known to
// providers and configurations, and this package knows neither. The header and
// the announcement of a fold hold digests and numbers only and stay readable.
const keyMember = "stoke_journal_key"

// sealedKind marks the kind of a record whose payload is sealed.
const sealedKind kind = 1 << 8

// withKey returns the snapshot's text as version 5, with the journal's key.
func (s *snapshot) withKey(key []byte) *snapshot {
	n := &snapshot{}
	*n = *s
	text := s.withVersion(versionOpen)
	at := bytes.LastIndexByte(text, '}')
	member := `,"` + keyMember + `":"` + hex.EncodeToString(key) + `"`
	n.raw = make([]byte, 0, len(text)+len(member))
	n.raw = append(append(append(n.raw, text[:at]...), member...), text[at:]...)
	n.version, n.key, n.keyAt, n.keyEnd = versionOpen, key, at, at+len(member)
	return n
}

// key reads the member that withKey wrote.
func (d *decoder) key(name int) {
	key, err := hex.DecodeString(d.str())
	s := d.snap
	s.keyAt, s.keyEnd = name-1, d.pos
	if err != nil || len(key) != seal.SecretLen || s.keyAt < 0 || d.buf[s.keyAt] != ',' {
		d.fail(name, "the member %q is not as stoke wrote it", keyMember)
		return
	}
	s.key = key
}

// box is what seals the records of the snapshot's journal; nil where it has
// no key.
func (s *snapshot) box() *seal.Box {
	if s == nil || s.key == nil {
		return nil
	}
	b, err := seal.New(s.key, nil, "journal")
	if err != nil {
		panic("state: " + err.Error()) // the length was checked
	}
	return b
}

// place returns the additional data of a sealed record: its position and its
// kind.
func place(seq uint64, k kind) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, seq), uint32(k))
}

// open returns the frame with its payload in the clear.
func (fr frame) open(b *seal.Box) (frame, *syntaxError) {
	if fr.kind&sealedKind == 0 {
		return fr, nil
	}
	if b == nil {
		return fr, &syntaxError{fr.at, fmt.Sprintf("record %d is sealed, and the state does not have its key: put "+
			"back the state that the journal belongs to", fr.seq)}
	}
	text, err := b.Open(fr.payload, place(fr.seq, fr.kind))
	if err != nil {
		return fr, &syntaxError{fr.at, fmt.Sprintf("record %d cannot be opened: %s", fr.seq, err)}
	}
	fr.kind, fr.payload = fr.kind&^sealedKind, text
	return fr, nil
}
