package ssh

import (
	"crypto/sha256"
	"sync"

	"golang.org/x/crypto/ssh"
)

// keys remembers private keys that were decrypted: that takes a good part of a
// second each, on purpose, and there may be many machines for one key. Nil
// remembers nothing.
type keys struct {
	mu     sync.Mutex
	parsed map[[sha256.Size]byte]*parsedKey
}

type parsedKey struct {
	once   sync.Once
	signer ssh.Signer
	err    error
}

// parse is parseKey, once for each key and passphrase.
func (k *keys) parse(pem []byte, passphrase, name string) (ssh.Signer, error) {
	if k == nil || passphrase == "" {
		return parseKey(pem, passphrase, name)
	}
	what := sha256.New()
	what.Write(pem)
	what.Write([]byte{0})
	what.Write([]byte(passphrase))
	id := [sha256.Size]byte(what.Sum(nil))
	k.mu.Lock()
	p := k.parsed[id]
	if p == nil {
		p = &parsedKey{}
		if k.parsed == nil {
			k.parsed = map[[sha256.Size]byte]*parsedKey{}
		}
		k.parsed[id] = p
	}
	k.mu.Unlock()
	p.once.Do(func() { p.signer, p.err = parseKey(pem, passphrase, name) })
	return p.signer, p.err
}
