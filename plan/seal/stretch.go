package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"golang.org/x/crypto/scrypt"
)

// The cost of one Stretch: 64 MiB and about a quarter of a second, so that
// guessing a weak text takes memory and years. They are fixed: a file that
// named its own could ask for all memory there is.
const (
	scryptN = 1 << 16
	scryptR = 8
	scryptP = 1
)

// SaltLen is how long salts are, in bytes.
const SaltLen = 16

// Salt draws a salt.
func Salt() []byte {
	salt := make([]byte, SaltLen)
	_, _ = rand.Read(salt) // never fails, as its documentation says
	return salt
}

// Stretch makes a secret from a text that a person chose.
func Stretch(text, salt []byte) ([]byte, error) {
	secret, err := scrypt.Key(text, salt, scryptN, scryptR, scryptP, SecretLen)
	if err != nil {
		return nil, fmt.Errorf("stretch key: %w", err)
	}
	return secret, nil
}

// Digest is what tells whether a text is the same again, without giving it
// away: a signature with a key that is stretched from the text. Who wants to
// find the text has to guess it, at the cost of one Stretch a guess.
func Digest(text, salt []byte) ([]byte, error) {
	secret, err := Stretch(text, salt)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("stoke digest"))
	return h.Sum(nil), nil
}

// SameDigest compares digests.
func SameDigest(a, b []byte) bool { return hmac.Equal(a, b) }
