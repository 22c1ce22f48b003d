package packages

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// publicKey is a primary key in a keyring.
type publicKey struct {
	Fingerprint string // upper case hexadecimal
	Created     time.Time
	Expires     time.Time // zero: never
	Revoked     bool
}

// mostKeyring is how large a file with keys may be, in bytes.
const mostKeyring = 1 << 20

// readKeyring reads OpenPGP public keys (RFC 9580), armored or binary, and
// returns them in the binary form that apt's Signed-By takes. It is strict:
// nothing but public keys may be in the file, for apt would trust whatever else
// is. That a self-signature is genuine is left to gpgv, which checks it whenever
// the key is used.
func readKeyring(content []byte) (binary []byte, keys []publicKey, err error) {
	if len(content) > mostKeyring {
		return nil, nil, fmt.Errorf("it is larger than %d bytes", mostKeyring)
	}
	binary = content
	if bytes.Contains(content, []byte("-----BEGIN PGP")) {
		if binary, err = dearmor(content); err != nil {
			return nil, nil, err
		}
	}
	err = eachPacket(binary, func(tag byte, body []byte) error {
		switch tag {
		case 6:
			k, err := readKey(body)
			if err != nil {
				return err
			}
			keys = append(keys, k)
			return nil
		case 2:
			if len(keys) == 0 {
				return errors.New("it begins with a signature: this is no key")
			}
			readSelfSignature(body, &keys[len(keys)-1])
			return nil
		case 13, 14, 17, 12, 21: // user id, subkey, attribute, trust, padding
			if len(keys) == 0 {
				return errors.New("it does not begin with a key")
			}
			return nil
		case 5, 7:
			return errors.New("it holds a secret key: export the public one")
		}
		return fmt.Errorf("it holds an OpenPGP packet of type %d, which has no place beside public keys", tag)
	})
	if err == nil && len(keys) == 0 {
		err = errors.New("there is no OpenPGP key in it")
	}
	return binary, keys, err
}

// dearmor decodes all armored blocks one after the other. What stands between
// them is a comment.
func dearmor(content []byte) ([]byte, error) {
	const begin, end = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
	var all []byte
	var block *strings.Builder
	header := false
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "-----BEGIN"):
			if line != begin || block != nil {
				return nil, fmt.Errorf("%q where a public key block was expected", line)
			}
			block, header = &strings.Builder{}, true
		case block == nil:
		case line == end:
			b, err := base64.StdEncoding.DecodeString(block.String())
			if err != nil {
				return nil, fmt.Errorf("its armor is damaged: %w", err)
			}
			all, block = append(all, b...), nil
		case header && (line == "" || strings.Contains(line, ": ")):
			header = line != ""
		case strings.HasPrefix(line, "=") && len(line) == 5: // checksum, which RFC 9580 no longer asks for
		default:
			header = false
			block.WriteString(line)
		}
	}
	if block != nil {
		return nil, errors.New("its armor is cut off: the last line is missing")
	}
	return all, nil
}

var errCutOff = errors.New("it is cut off, or no OpenPGP key")

// eachPacket walks the packets. Lengths of unknown size (partial, or up to the
// end) do not occur in keys and are refused.
func eachPacket(b []byte, do func(tag byte, body []byte) error) error {
	for len(b) > 0 {
		h := b[0]
		if h&0x80 == 0 {
			return errors.New("it is no OpenPGP key")
		}
		tag, n, size := h&0x3f, 0, 0
		var err error
		if h&0x40 != 0 {
			n, size, err = newLength(b[1:])
		} else {
			tag = h >> 2 & 0xf
			n, size, err = oldLength(h&3, b[1:])
		}
		if err != nil {
			return err
		}
		b = b[1+size:]
		if n > len(b) {
			return errCutOff
		}
		if err := do(tag, b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func newLength(b []byte) (n, size int, err error) {
	switch {
	case len(b) >= 1 && b[0] < 192:
		return int(b[0]), 1, nil
	case len(b) >= 2 && b[0] < 224:
		return int(b[0]-192)<<8 + int(b[1]) + 192, 2, nil
	case len(b) >= 5 && b[0] == 255:
		return bounded(binary.BigEndian.Uint32(b[1:])), 5, nil
	}
	return 0, 0, errCutOff
}

func oldLength(kind byte, b []byte) (n, size int, err error) {
	switch {
	case kind == 0 && len(b) >= 1:
		return int(b[0]), 1, nil
	case kind == 1 && len(b) >= 2:
		return int(binary.BigEndian.Uint16(b)), 2, nil
	case kind == 2 && len(b) >= 4:
		return bounded(binary.BigEndian.Uint32(b)), 4, nil
	}
	return 0, 0, errCutOff
}

func bounded(n uint32) int { return int(min(n, mostKeyring+1)) }

// readKey reads a public key packet (§5.5.2) for its fingerprint (§5.5.4).
func readKey(body []byte) (publicKey, error) {
	if len(body) < 6 {
		return publicKey{}, errCutOff
	}
	k := publicKey{Created: time.Unix(int64(binary.BigEndian.Uint32(body[1:])), 0).UTC()}
	switch body[0] {
	case 4:
		h := sha1.New()
		h.Write([]byte{0x99, byte(len(body) >> 8), byte(len(body))})
		h.Write(body)
		k.Fingerprint = fmt.Sprintf("%X", h.Sum(nil))
	case 5, 6:
		h := sha256.New()
		h.Write([]byte{0x95 + body[0]}) // 0x9A for version 5, 0x9B for 6
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(body))))
		h.Write(body)
		k.Fingerprint = fmt.Sprintf("%X", h.Sum(nil))
	default:
		return k, fmt.Errorf("it holds a key of version %d, which nobody should use", body[0])
	}
	return k, nil
}

// readSelfSignature takes from a signature what it says of the key: that it
// expires, or is revoked. The last one counts, as gpg exports them in order.
func readSelfSignature(body []byte, k *publicKey) {
	if len(body) < 6 || body[0] < 4 || body[0] > 6 {
		return
	}
	kind, rest := body[1], body[4:]
	n, rest, ok := area(body[0], rest)
	if !ok {
		return
	}
	hashed := rest[:n]
	switch {
	case kind == 0x20:
		k.Revoked = true
	case kind >= 0x10 && kind <= 0x13 || kind == 0x1f:
		own, expires := true, time.Duration(0)
		for len(hashed) > 0 {
			n, size, err := newLength(hashed)
			if err != nil || n == 0 || size+n > len(hashed) {
				return
			}
			sub := hashed[size : size+n]
			switch sub[0] & 0x7f {
			case 9:
				if len(sub) == 5 {
					expires = time.Duration(binary.BigEndian.Uint32(sub[1:])) * time.Second
				}
			case 33: // the issuer: someone else's signature says nothing of this key's end
				own = len(sub) > 2 && fmt.Sprintf("%X", sub[2:]) == k.Fingerprint
			}
			hashed = hashed[size+n:]
		}
		if !own {
			return
		}
		k.Expires = time.Time{}
		if expires > 0 {
			k.Expires = k.Created.Add(expires)
		}
	}
}

// area reads the length of the hashed subpackets.
func area(version byte, b []byte) (n int, rest []byte, ok bool) {
	if version == 6 {
		if len(b) < 4 {
			return 0, nil, false
		}
		n, b = bounded(binary.BigEndian.Uint32(b)), b[4:]
	} else {
		n, b = int(binary.BigEndian.Uint16(b)), b[2:]
	}
	return n, b, n <= len(b)
}
