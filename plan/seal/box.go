package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// SecretLen is how long secrets are, in bytes.
const SecretLen = 32

// Overhead is by how much a sealed text is longer than the text: nonce and
// tag of AES-GCM.
const Overhead = 12 + 16

// ErrSealed says that a sealed text was changed, or sealed with another
// secret or for another place.
var ErrSealed = errors.New("the sealed text was changed or sealed with another key")

// Random draws a secret.
func Random() []byte {
	secret := make([]byte, SecretLen)
	_, _ = rand.Read(secret) // never fails, as its documentation says
	return secret
}

// Box seals and opens texts with AES-256-GCM, and signs with HMAC-SHA256. It
// may be used by many goroutines.
type Box struct {
	aead cipher.AEAD
	sign []byte
}

// New makes a box from a secret of full entropy. Boxes of one secret that
// differ in salt or purpose do not open each other's texts.
func New(secret, salt []byte, purpose string) (*Box, error) {
	if len(secret) != SecretLen {
		return nil, fmt.Errorf("make box: the secret has %d bytes, %d are needed", len(secret), SecretLen)
	}
	key, err := hkdf.Key(sha256.New, secret, salt, "stoke seal "+purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("make box: %w", err)
	}
	sign, err := hkdf.Key(sha256.New, secret, salt, "stoke sign "+purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("make box: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make box: %w", err)
	}
	// Nonces are random: a journal that lost its last record to a crash goes on
	// at the same place with another text, so that a counter would repeat.
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make box: %w", err)
	}
	return &Box{aead: aead, sign: sign}, nil
}

// Seal appends the sealed text to dst. It opens only with the same context,
// which says where the text belongs.
func (b *Box) Seal(dst, text, context []byte) []byte { return b.aead.Seal(dst, nil, text, context) }

// Open returns the text, or ErrSealed.
func (b *Box) Open(sealed, context []byte) ([]byte, error) {
	text, err := b.aead.Open(nil, nil, sealed, context)
	if err != nil {
		return nil, ErrSealed
	}
	return text, nil
}

// Sign returns a signature of data.
func (b *Box) Sign(data []byte) []byte {
	h := hmac.New(sha256.New, b.sign)
	h.Write(data)
	return h.Sum(nil)
}

// Signed reports whether a signature is that of data.
func (b *Box) Signed(data, signature []byte) bool { return hmac.Equal(b.Sign(data), signature) }
