package ssh

import (
	"fmt"

	"golang.org/x/crypto/ssh"
)

// Fingerprint is the SHA-256 fingerprint of a public key such as
// "ssh-ed25519 AAAA…", as ssh-keygen -l prints it.
func Fingerprint(key string) (string, error) {
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
	if err != nil {
		return "", fmt.Errorf("read public key: %w", err)
	}
	return ssh.FingerprintSHA256(public), nil
}
