package http

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
)

// A document is a snapshot with a journal in it, as its last member:
//
//	{"version":5, … ,"stoke_journal":"base64"}
//
// Taking the member out gives the snapshot back to the byte. A journal that
// has no snapshot yet stands in noSnapshot.
const (
	member     = `,"stoke_journal":"`
	noSnapshot = `{"version":5,"stoke_snapshot":false}`
)

// document is what an address holds.
type document struct {
	snapshot []byte // nil: none
	journal  []byte // nil: none
}

// encode is the document's text; nil where there is nothing to be kept.
func (d document) encode() ([]byte, error) {
	if d.journal == nil {
		return d.snapshot, nil
	}
	base := d.snapshot
	if base == nil {
		base = []byte(noSnapshot)
	}
	end := bytes.LastIndexByte(base, '}')
	if end < 0 {
		return nil, errors.New("the state is not a JSON object")
	}
	text := make([]byte, 0, len(base)+len(member)+1+base64.StdEncoding.EncodedLen(len(d.journal)))
	text = append(append(text, base[:end]...), member...)
	text = base64.StdEncoding.AppendEncode(text, d.journal)
	return append(append(text, '"'), base[end:]...), nil
}

// decodeDocument takes a text apart. A text without a journal is a snapshot,
// whatever it holds.
func decodeDocument(text []byte) (document, error) {
	at := bytes.LastIndex(text, []byte(member))
	if at < 0 {
		if bytes.Contains(text, []byte(`"stoke_journal"`)) && bytes.Contains(text, []byte(`"stoke_snapshot"`)) {
			return document{}, errors.New("the server has written the document again in a form of its own: it has to " +
				"keep it as it is")
		}
		return document{snapshot: text}, nil
	}
	rest := text[at+len(member):]
	quote := bytes.IndexByte(rest, '"')
	if quote < 0 || string(bytes.TrimSpace(rest[quote+1:])) != "}" {
		return document{snapshot: text}, nil // an attribute of that name
	}
	journal := make([]byte, base64.StdEncoding.DecodedLen(quote))
	n, err := base64.StdEncoding.Decode(journal, rest[:quote])
	if err != nil {
		return document{}, errors.New("its member \"stoke_journal\" is damaged")
	}
	d := document{journal: journal[:n]}
	d.snapshot = append(append(make([]byte, 0, len(text)), text[:at]...), rest[quote+1:]...)
	if string(bytes.TrimSpace(d.snapshot)) == noSnapshot {
		d.snapshot = nil
	}
	return d, nil
}

// version names the content of a snapshot.
func version(snapshot []byte) string {
	if snapshot == nil {
		return ""
	}
	sum := sha256.Sum256(snapshot)
	return hex.EncodeToString(sum[:])
}
