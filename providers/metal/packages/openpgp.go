package packages

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

type publicKey struct {
	Fingerprint string // upper case hexadecimal
	Created     time.Time
	Expires     time.Time // zero: never
	Revoked     bool

	raw []byte // the fingerprint
}

// maxKeyring is how large a file with keys may be, in bytes.
const maxKeyring = 1 << 20

// readKeyring reads OpenPGP public keys (RFC 9580), armored or binary, and
// returns them in the binary form that apt's Signed-By takes. It is strict:
// nothing but public keys may be in the file, for apt would trust whatever else
// is. That a self-signature is genuine is left to gpgv, which checks it whenever
// the key is used.
func readKeyring(content []byte) (binary []byte, keys []publicKey, err error) {
	if len(content) > maxKeyring {
		return nil, nil, fmt.Errorf("it is larger than %d bytes", maxKeyring)
	}
	binary = content
	if bytes.Contains(content, []byte("-----BEGIN PGP")) {
		if binary, err = dearmor(content); err != nil {
			return nil, nil, err
		}
	}
	packets := packet.NewOpaqueReader(bytes.NewReader(binary))
	for {
		p, err := packets.Next()
		switch {
		case err == io.EOF && len(keys) > 0:
			return binary, keys, nil
		case err == io.EOF:
			return nil, nil, errors.New("it holds no OpenPGP key")
		case err != nil:
			return nil, nil, fmt.Errorf("it is cut off, or no OpenPGP key: %w", err)
		case p.Tag == 5 || p.Tag == 7:
			return nil, nil, errors.New("it holds a secret key: export the public one")
		case p.Tag != 6 && len(keys) == 0:
			return nil, nil, errors.New("it does not begin with a key")
		}
		switch p.Tag {
		case 6: // a primary key
			parsed, err := p.Parse()
			k, is := parsed.(*packet.PublicKey)
			if err != nil || !is {
				return nil, nil, fmt.Errorf("it holds a key that cannot be read: %w", err)
			}
			keys = append(keys, publicKey{Fingerprint: fmt.Sprintf("%X", k.Fingerprint), Created: k.CreationTime.UTC(), raw: k.Fingerprint})
		case 2:
			if parsed, err := p.Parse(); err == nil { // one of an old kind says nothing
				keys[len(keys)-1].signed(parsed)
			}
		case 12, 13, 14, 17, 21: // trust, user id, subkey, attribute, padding
		default:
			return nil, nil, fmt.Errorf("it holds an OpenPGP packet of type %d, which does not belong to public keys", p.Tag)
		}
	}
}

// dearmor decodes all armored blocks one after the other. Text between them is
// a comment.
func dearmor(content []byte) ([]byte, error) {
	var all []byte
	for rest := bufio.NewReader(bytes.NewReader(content)); ; {
		block, err := armor.Decode(rest)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("its armor is damaged: %w", err)
		}
		if block.Type != "PGP PUBLIC KEY BLOCK" {
			return nil, fmt.Errorf("%q where a public key block was expected", block.Type)
		}
		b, err := io.ReadAll(block.Body)
		if err != nil {
			return nil, fmt.Errorf("its armor is damaged or cut off: %w", err)
		}
		all = append(all, b...)
	}
}

// signed takes from a signature what it says of the key: that it expires, or is
// revoked. The last one counts, as gpg exports them in order. Someone else's says
// nothing of the key's end.
func (k *publicKey) signed(p packet.Packet) {
	s, is := p.(*packet.Signature)
	switch {
	case !is:
	case s.SigType == packet.SigTypeKeyRevocation:
		k.Revoked = true
	case (s.SigType < packet.SigTypeGenericCert || s.SigType > packet.SigTypePositiveCert) && s.SigType != packet.SigTypeDirectSignature:
	case len(s.IssuerFingerprint) == 0 || bytes.Equal(s.IssuerFingerprint, k.raw):
		k.Expires = time.Time{}
		if t := s.KeyLifetimeSecs; t != nil && *t > 0 {
			k.Expires = k.Created.Add(time.Duration(*t) * time.Second)
		}
	}
}
