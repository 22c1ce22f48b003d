package worker

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"

	"github.com/stokehq/stoke/runtime/spec"
)

// Account is a line of a worker's own account: which records it has read for a
// lease whose sums it pushes. It is there to be compared with the ledger, which
// knows positions of an order only.
type Account struct {
	Lease int64 `json:"lease"`
	spec.Contribution
	Records int64  `json:"records"`
	Hash    string `json:"hash"` // see HashRecords
}

// HashRecords is the SHA-256 of records' numbers in the order in which they are
// read.
func HashRecords(records []int64) string {
	h := sha256.New()
	addRecords(h, records)
	return hex.EncodeToString(h.Sum(nil))
}

func addRecords(h hash.Hash, records []int64) {
	var b [8]byte
	for _, r := range records {
		binary.LittleEndian.PutUint64(b[:], uint64(r))
		h.Write(b[:])
	}
}

// reading is what has been read for a lease.
type reading struct {
	records int64
	hash    hash.Hash
}

func (r *reading) add(records []int64) {
	if r.hash == nil {
		r.hash = sha256.New()
	}
	r.records += int64(len(records))
	addRecords(r.hash, records)
}

// account writes a line about a lease. Nobody's training depends on it.
func (s *session) account(to io.Writer, b *batch) {
	c := b.Contribution
	c.Worker = s.Index
	a := Account{Lease: b.ID, Contribution: c, Records: b.read.records, Hash: hex.EncodeToString(b.read.hash.Sum(nil))}
	line, err := json.Marshal(a)
	if err == nil {
		_, err = to.Write(append(line, '\n'))
	}
	if err != nil {
		s.Log.Error("cannot write the account of records", "error", err)
	}
}
