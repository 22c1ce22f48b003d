package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
)

// format is the number of the format that manifests are written in. Manifests
// of the first one have no number, and a checksum of their values; from the
// second one on, the checksum is of the file's bytes, in all formats to come.
//
// A field of Manifest that earlier versions may ignore is only added, and is
// optional. A change that they must not ignore takes the next number.
const format = 2

// ErrNewer means that a manifest is as it was written, by a newer stoke-trainer
// in a way that this one does not understand. The checkpoint is not damaged.
var ErrNewer = errors.New("written by a newer stoke-trainer")

// The checksum is the last field of a file: before and behind it.
const (
	beforeSum = `"checksum": "`
	behindSum = "\"\n}\n"
)

// encode returns the text of a manifest's file, and sets format and checksum.
func (m *Manifest) encode() ([]byte, error) {
	m.Format, m.Checksum = format, ""
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	head := bytes.TrimSuffix(append(text, '\n'), []byte(behindSum))
	m.Checksum = digest(head)
	return append(head, m.Checksum+behindSum...), nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// intact reports whether a text ends with the checksum of the bytes before it.
func intact(text []byte) bool {
	head, ok := bytes.CutSuffix(text, []byte(behindSum))
	at := len(head) - hex.EncodedLen(sha256.Size)
	return ok && at >= 0 && bytes.HasSuffix(head[:at], []byte(beforeSum)) && digest(head[:at]) == string(head[at:])
}

// decode reads a manifest that is as it was written.
func (m *Manifest) decode(text []byte) error {
	if !intact(text) {
		return m.decodeFirst(text)
	}
	var of struct {
		Format int `json:"format"`
		computation
	}
	err := json.Unmarshal(text, &of)
	if err == nil && of.Format > format {
		return fmt.Errorf("%w: its format is %d, this one reads up to %d", ErrNewer, of.Format, format)
	}
	if err == nil {
		err = of.checkFields()
	}
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNewer, err)
	}
	return nil
}

// computation has the fields of a manifest that say what is computed.
type computation struct {
	Model  json.RawMessage `json:"model"`
	Vars   json.RawMessage `json:"vars"`
	Recipe json.RawMessage `json:"recipe"`
}

// checkFields reports a model or an optimizer with a field that this version does not
// have: without the field, it would compute something else.
func (m *computation) checkFields() error {
	for _, part := range []struct {
		text json.RawMessage
		to   any
	}{{m.Model, new(model.Model)}, {m.Vars, new([]model.Var)}, {m.Recipe, new(optimizer.Recipe)}} {
		if part.text == nil {
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(part.text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(part.to); err != nil {
			return err
		}
	}
	return nil
}

// decodeFirst reads a manifest of the first format. Its checksum is of its values
// as that version wrote them: every field added since is optional.
func (m *Manifest) decodeFirst(text []byte) error {
	if err := json.Unmarshal(text, m); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	sum, err := m.sum()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if sum != m.Checksum {
		return fmt.Errorf("%w: its checksum does not match", ErrDamaged)
	}
	return nil
}

// sum returns the checksum of the first format.
func (m Manifest) sum() (string, error) {
	m.Checksum = ""
	data, err := json.Marshal(m)
	return digest(data), err
}
