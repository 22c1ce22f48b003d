package program

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/stokehq/stoke/runtime/code"
)

// Limits of a List: of larger code only the number of files is kept.
const (
	maxFiles = 2_000
	maxBytes = 256 << 10 // as JSON
)

// List is the part of a snapshot that the state keeps, so that a later plan names the
// files that have changed, on another machine too.
type List struct {
	Hash  string         `json:"hash"` // of the snapshot
	Count int            `json:"count"`
	Files *code.Snapshot `json:"files,omitempty"` // with short sums; nil where there are too many
}

// ListOf returns the list of a snapshot.
func ListOf(s *code.Snapshot) List {
	l := List{Hash: s.Hash(), Count: len(s.Files)}
	if l.Count > maxFiles {
		return l
	}
	short := shorten(s)
	if text, err := json.Marshal(short); err == nil && len(text) <= maxBytes {
		l.Files = short
	}
	return l
}

// shorten returns the snapshot with 48 bits of each file's sum: enough to see that
// a file is another one.
func shorten(s *code.Snapshot) *code.Snapshot {
	short := new(code.Snapshot)
	for _, f := range s.Files {
		if f.Link != "" {
			sum := sha256.Sum256([]byte(f.Link))
			f.Sum = "link" + hex.EncodeToString(sum[:])
		}
		short.Files = append(short.Files, code.File{Name: f.Name, Executable: f.Executable, Sum: f.Sum[:min(12, len(f.Sum))]})
	}
	return short
}

// shownFiles is how many names a plan shows.
const shownFiles = 5

// Changes returns what has changed since the snapshot with the hash was the code,
// for people; "" where the list is of other code.
func (l List) Changes(hash string, now *code.Snapshot) string {
	next := ListOf(now)
	switch {
	case l.Hash != hash || l.Count == 0:
		return ""
	case l.Files != nil && next.Files != nil:
		return code.Diff(l.Files, next.Files).Brief(shownFiles)
	case l.Count == next.Count:
		return fmt.Sprintf("some of %d files", l.Count)
	}
	return fmt.Sprintf("%d files instead of %d", next.Count, l.Count)
}
