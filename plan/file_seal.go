package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/plan/seal"
)

// A plan file travels: it is an artefact of a pipeline, a file in a user's
// folder. What is sensitive in it is sealed with a key that does not travel
// with it, and everything in it is signed with that key:
//
//   - sensitive variables, attributes and outputs, arguments that are only
//     written, and all that providers have noted for themselves, whatever it
//     may be; configuration files that say one of these. Everything else stays
//     readable.
//   - signed is the name and content of every entry, in order, so that nobody
//     changes an operation or a module without the key.
//
// The key is a text that a user chose (stretched, as it may be weak) or 32
// random bytes. Every file has a salt of its own. A plan that holds nothing
// sensitive and was made without a key is neither sealed nor signed.
//
// To apply a plan without its key, the user gives the sensitive variables
// again. They are compared by a digest, which is stretched too and made of all
// of them together: a short one cannot be guessed without guessing the long
// ones at the same time. The digest cannot tell which of them differs.

// Key seals a plan file and opens it again.
type Key struct {
	Text   []byte // chosen by somebody; or
	Random []byte // seal.SecretLen bytes
}

// box makes the key of one file.
func (k *Key) box(salt []byte) (*seal.Box, error) {
	secret := k.Random
	if k.Text != nil {
		var err error
		if secret, err = seal.Stretch(k.Text, salt); err != nil {
			return nil, err
		}
	}
	return seal.New(secret, salt, "plan")
}

// ErrKey: a plan file was sealed with another key.
var ErrKey = errors.New("the plan was sealed with another key")

// fileSeal has the salts and the digest of a sealed file.
type fileSeal struct {
	Text  bool   `json:"text,omitempty"` // the key is a text, not random bytes
	Salt  []byte `json:"salt"`
	Check []byte `json:"check"` // tells a wrong key from a file that was changed
	// Digest is the digest of all sensitive variables, salted with DigestSalt; nil
	// where there are none.
	Digest     []byte `json:"digest,omitempty"`
	DigestSalt []byte `json:"digest_salt,omitempty"`
}

const keyCheck = "this is the key"

func newSeal(key *Key, p *Plan) (*fileSeal, *seal.Box, error) {
	if key == nil {
		return nil, nil, nil
	}
	s := &fileSeal{Text: key.Text != nil, Salt: seal.Salt()}
	box, err := key.box(s.Salt)
	if err != nil {
		return nil, nil, err
	}
	s.Check = box.Sign([]byte(keyCheck))
	if names := p.secretVariables(); len(names) > 0 {
		s.DigestSalt = seal.Salt()
		if s.Digest, err = digestOf(names, p.Variables, s.DigestSalt); err != nil {
			return nil, nil, err
		}
	}
	return s, box, nil
}

// open finds the box of a file; nil means that the given key does not open it.
func (s *fileSeal) open(key *Key) (*seal.Box, error) {
	if key == nil || s.Text != (key.Text != nil) {
		return nil, nil
	}
	if len(s.Salt) != seal.SaltLen {
		return nil, errors.New("read plan file: its salt is damaged")
	}
	box, err := key.box(s.Salt)
	if err != nil {
		return nil, err
	}
	if !box.Signed([]byte(keyCheck), s.Check) {
		if s.Text {
			return nil, ErrKey
		}
		return nil, nil // the key file of another working directory
	}
	return box, nil
}

// digestOf is the digest of variables, all of them together.
func digestOf(names []string, values map[string]cty.Value, salt []byte) ([]byte, error) {
	var text []byte
	for _, name := range names {
		js, err := ctyjson.Marshal(values[name], values[name].Type())
		if err != nil {
			return nil, fmt.Errorf("digest variable %s: %w", name, err)
		}
		for _, part := range [][]byte{[]byte(name), js} {
			text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
			text = append(text, part...)
		}
	}
	return seal.Digest(text, salt)
}

// secrets seals what is sensitive of a record; place identifies the record.
func (e *encoder) secrets(s *fileSecrets, place string) []byte {
	if s.empty() {
		return nil
	}
	if e.box == nil {
		e.fail(fmt.Errorf("%s holds sensitive values, and a key to seal them with is missing", place))
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		e.fail(err)
	}
	return e.box.Seal(nil, text, []byte(place))
}

// open opens what secrets has sealed. Without the key it is nil: what is
// missing then is noted in the plan.
func (d *decoder) open(sealed []byte, place string) *fileSecrets {
	s := &fileSecrets{}
	if len(sealed) == 0 {
		return s
	}
	if d.box == nil {
		if d.plan.Locked == nil {
			d.fail(fmt.Errorf("%s is sealed, and the file does not say how", place))
		}
		return nil
	}
	text, err := d.box.Open(sealed, []byte(place))
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		d.fail(fmt.Errorf("%s: %w", place, err))
	}
	return s
}

// signature collects what is signed of a file: every entry but the signature
// itself.
type signature struct {
	all   hash.Hash
	entry hash.Hash
	name  string
}

func newSignature() *signature { return &signature{all: sha256.New(), entry: sha256.New()} }

// begin starts an entry; what is written to the signature from then on is
// its content.
func (s *signature) begin(name string) {
	s.end()
	s.name = name
}

func (s *signature) Write(b []byte) (int, error) { return s.entry.Write(b) }

func (s *signature) end() {
	if s.name == "" {
		return
	}
	_ = binary.Write(s.all, binary.BigEndian, uint64(len(s.name))) // hashes never fail
	_, _ = io.WriteString(s.all, s.name)
	s.all.Write(s.entry.Sum(nil))
	s.entry.Reset()
	s.name = ""
}

func (s *signature) sum() []byte {
	s.end()
	return s.all.Sum(nil)
}
