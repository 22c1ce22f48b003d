package connect

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// KnownKey is a line of a known_hosts file about a machine.
type KnownKey struct {
	Key       gossh.PublicKey
	File      string
	Line      int  // from 1
	Authority bool // it signs the machine's keys, and is none of them
	Revoked   bool
}

// String is the key as Hop.HostKey has it.
func (k KnownKey) String() string {
	text := strings.TrimSpace(string(gossh.MarshalAuthorizedKey(k.Key)))
	if k.Authority {
		return "@cert-authority " + text
	}
	return text
}

// KnownKeys are the keys that files in OpenSSH's format, in which names may be
// hashed, have of a machine, HOST:PORT, in their order.
func KnownKeys(files []string, address string) ([]KnownKey, error) {
	check, err := knownhosts.New(files...)
	if err != nil {
		return nil, fmt.Errorf("read known hosts: %w", err)
	}
	// The library only compares: a key that nobody has makes it name those it
	// expected instead.
	nobody, err := gossh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return nil, err
	}
	nowhere := &net.TCPAddr{IP: net.IPv4zero}
	var wrong *knownhosts.KeyError
	if err := check(address, nowhere, nobody); !errors.As(err, &wrong) {
		return nil, fmt.Errorf("read known hosts: %s: %v", address, err)
	}
	var keys []KnownKey
	for _, k := range wrong.Want {
		known := KnownKey{Key: k.Key, File: k.Filename, Line: k.Line}
		known.Revoked = errors.As(check(address, nowhere, k.Key), new(*knownhosts.RevokedError))
		content, err := os.ReadFile(k.Filename) // of lines, the library does not say how they are marked
		lines := bytes.Split(content, []byte("\n"))
		if err != nil || k.Line > len(lines) {
			return nil, fmt.Errorf("read known hosts: %s changed while it was read", k.Filename)
		}
		known.Authority = bytes.HasPrefix(bytes.TrimSpace(lines[k.Line-1]), []byte("@cert-authority"))
		keys = append(keys, known)
	}
	return keys, nil
}
