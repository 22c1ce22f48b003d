package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc32"

	"github.com/stokehq/stoke/runtime/model"
)

// The stored form of one split, little-endian:
//
//	header  magic (8), version u32, length of description u32, description
//	        (JSON: type, shape, classes, target), CRC-32C of all before u32
//	record  target (or label i32), features, CRC-32C u32 of its number (u64), target, features
//	…
//	footer  records u64, SHA-256 (32), CRC-32C of the footer before u32, magic (8)
//
// Records have one size, so that any of them is found without an index, and
// the file's length follows from the header and the number of records.
var (
	headMagic = []byte("\x89STKRIO\n")
	footMagic = []byte("STKRIO\r\n")
)

const (
	storedVersion  = 1
	headBytes      = 16
	footBytes      = 8 + sha256.Size + 4 + 8
	maxDescription = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// description is the part of an Info that the header holds.
type description struct {
	Type    model.DType `json:"type"`
	Shape   []int       `json:"shape"`
	Classes int         `json:"classes"`
	Target  Target      `json:"target,omitzero"`
}

func describe(i Info) []byte {
	text, err := json.Marshal(description{i.Type, i.Shape, i.Classes, i.Target})
	if err != nil {
		panic(err) // a validated Info always has a text
	}
	return text
}

// storedRecord is the size of one record in the file.
func storedRecord(i Info) int { return i.TargetBytes() + i.FeatureBytes() + 4 }

// contentHash is what Info.Hash is made of: shared by those that write, read
// or only inspect.
type contentHash struct{ sum hash.Hash }

func newContentHash(i Info) contentHash {
	h := contentHash{sha256.New()}
	h.sum.Write(describe(i))
	return h
}

func (h contentHash) add(features, labels []byte) {
	h.sum.Write(labels)
	h.sum.Write(features)
}

func (h contentHash) text() string { return hashText(h.sum.Sum(nil)) }

func hashText(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

func checksum(number int64, body []byte) uint32 {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(number))
	return crc32.Update(crc32.Checksum(n[:], castagnoli), castagnoli, body)
}

func head(i Info) []byte {
	text := describe(i)
	b := append([]byte{}, headMagic...)
	b = binary.LittleEndian.AppendUint32(b, storedVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func foot(records int64, sum []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(records))
	b = append(b, sum...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return append(b, footMagic...)
}

// parseHead reads magic, version and the description's length.
func parseHead(b []byte) (text int, err error) {
	if !bytes.Equal(b[:8], headMagic) {
		return 0, fmt.Errorf("it starts with %q: not a dataset that stoke prepared", b[:8])
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != storedVersion {
		return 0, fmt.Errorf("it has version %d of the format, want %d", v, storedVersion)
	}
	n := binary.LittleEndian.Uint32(b[12:])
	if n > maxDescription {
		return 0, fmt.Errorf("its header claims a description of %d bytes, want at most %d", n, maxDescription)
	}
	return int(n), nil
}

// parseDescription reads the rest of the header; all is the whole header.
func parseDescription(all []byte) (Info, error) {
	body := len(all) - 4
	if crc32.Checksum(all[:body], castagnoli) != binary.LittleEndian.Uint32(all[body:]) {
		return Info{}, fmt.Errorf("its header fails its checksum")
	}
	var d description
	if err := json.Unmarshal(all[headBytes:body], &d); err != nil {
		return Info{}, fmt.Errorf("read its description: %w", err)
	}
	return Info{Type: d.Type, Shape: d.Shape, Classes: d.Classes, Target: d.Target}, nil
}

// parseFoot reads the number of records and the content's hash.
func parseFoot(b []byte) (records int64, sum string, err error) {
	if !bytes.Equal(b[footBytes-8:], footMagic) {
		return 0, "", fmt.Errorf("it does not end as a complete dataset does: it is truncated or has been appended to")
	}
	body := footBytes - 12
	if crc32.Checksum(b[:body], castagnoli) != binary.LittleEndian.Uint32(b[body:]) {
		return 0, "", fmt.Errorf("its footer fails its checksum")
	}
	n := binary.LittleEndian.Uint64(b)
	if n > 1<<48 {
		return 0, "", fmt.Errorf("its footer claims %d records", n)
	}
	return int64(n), hashText(b[8:body]), nil
}
