package code

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Limits of a snapshot.
const (
	MaxBytes = 64 << 20 // of all files together
	MaxFiles = 20_000
)

// File is one file of a snapshot, or a symbolic link.
type File struct {
	Name       string `json:"name"` // with slashes, below the folder
	Executable bool   `json:"executable,omitempty"`
	Link       string `json:"link,omitempty"` // the target of a symbolic link, which has no size and no sum
	Size       int64  `json:"size,omitempty"`
	Sum        string `json:"sum,omitempty"` // SHA-256 of the contents, in hexadecimal
}

// Snapshot is the content of a folder at one moment.
type Snapshot struct {
	Files []File `json:"files"` // by name
}

// Hash returns the hash of all names, modes and contents: equal hashes are equal
// code, on every machine.
func (s *Snapshot) Hash() string {
	h := sha256.New()
	io.WriteString(h, "stoke code 1\n") // another way to hash is another first line
	for _, f := range s.Files {
		kind, content := "file", f.Sum
		switch {
		case f.Link != "":
			kind, content = "link", strconv.Quote(f.Link)
		case f.Executable:
			kind = "executable"
		}
		fmt.Fprintf(h, "%s %s %s\n", kind, strconv.Quote(f.Name), content)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Bytes returns the size of all files together.
func (s *Snapshot) Bytes() int64 {
	var sum int64
	for _, f := range s.Files {
		sum += f.Size
	}
	return sum
}

// Difference has the names of files that two snapshots do not have in common, or
// have with other contents. Each list is sorted.
type Difference struct{ Added, Changed, Removed []string }

// Empty reports whether the snapshots are equal.
func (d Difference) Empty() bool { return len(d.Added)+len(d.Changed)+len(d.Removed) == 0 }

// String returns the names, each after its sign: + added, ~ changed, - removed.
func (d Difference) String() string { return d.Brief(math.MaxInt) }

// Brief is String with at most so many names, and the number of the others.
func (d Difference) Brief(most int) string {
	var parts []string
	for _, list := range []struct {
		sign  string
		names []string
	}{{"+", d.Added}, {"~", d.Changed}, {"-", d.Removed}} {
		for _, name := range list.names {
			parts = append(parts, list.sign+" "+name)
		}
	}
	if more := len(parts) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(parts[:most], ", "), more)
	}
	return strings.Join(parts, ", ")
}

// Diff returns the difference from an older snapshot to a newer one. A nil
// snapshot has no files.
func Diff(older, newer *Snapshot) Difference {
	var d Difference
	before := make(map[string]File)
	if older != nil {
		for _, f := range older.Files {
			before[f.Name] = f
		}
	}
	if newer != nil {
		for _, f := range newer.Files {
			was, ok := before[f.Name]
			switch {
			case !ok:
				d.Added = append(d.Added, f.Name)
			case was != f:
				d.Changed = append(d.Changed, f.Name)
			}
			delete(before, f.Name)
		}
	}
	for name := range before {
		d.Removed = append(d.Removed, name)
	}
	slices.Sort(d.Added)
	slices.Sort(d.Changed)
	slices.Sort(d.Removed)
	return d
}
