package sshtest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// NewKey makes an ed25519 key.
func NewKey(t testing.TB) (ssh.Signer, ed25519.PrivateKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, private
}

// PEM is a private key as ssh-keygen writes it, encrypted when there is a
// passphrase.
func PEM(t testing.TB, private any, passphrase string) string {
	t.Helper()
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// Line is a public key as authorized_keys has it, without the line's end.
func Line(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// Certify signs a key: for a user of that name, or a host of that name.
func Certify(t testing.TB, by ssh.Signer, key ssh.PublicKey, kind uint32, name string, edit ...func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	cert := &ssh.Certificate{Key: key, CertType: kind, ValidPrincipals: []string{name}, ValidBefore: ssh.CertTimeInfinity}
	for _, e := range edit {
		e(cert)
	}
	if err := cert.SignCert(rand.Reader, by); err != nil {
		t.Fatal(err)
	}
	return cert
}
