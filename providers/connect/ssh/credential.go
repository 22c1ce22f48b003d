package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// Credential has the login and the way to become root. It is never stored;
// whatever is empty is not tried.
type Credential struct {
	User            string
	PrivateKeyFile  string   // "~/" is the home directory
	PrivateKey      string   // in OpenSSH's format or PEM, instead of a file
	Passphrase      string   // of the private key
	Certificate     string   // line of a -cert.pub file, for the private key or one of the agent's
	CertificateFile string   // such a file, instead
	IdentityFiles   []string // more private keys; missing files, and files with an unknown encryption or open to others, are passed over
	Agent           bool     // ask the agent
	AgentSocket     string   // where it is; "" for SSH_AUTH_SOCK
	Password        string   // for the methods password and keyboard-interactive

	// Sudo runs commands as root by sudo; without it they run as User.
	Sudo bool
	// SudoPassword is what sudo asks for; "" where it asks for nothing.
	SudoPassword string
}

// redacted takes out what is secret, should a machine send it back.
func (c Credential) redacted(s string) string {
	for _, secret := range []string{c.Password, c.SudoPassword, c.Passphrase} {
		if len(secret) >= 4 { // anything shorter is in every other word
			s = strings.ReplaceAll(s, secret, "(secret)")
		}
	}
	return s
}

// maxKey bounds a key file: it may be any file by mistake.
const maxKey = 1 << 20

// signers returns the keys of the credential, without the keys of the agent.
// passedOver has the reasons for IdentityFiles that were left out although a
// user would expect them to be used.
func (c Credential) signers(known *keys) (signers []ssh.Signer, passedOver []error, err error) {
	switch {
	case c.PrivateKey != "":
		signer, err := known.parse([]byte(c.PrivateKey), c.Passphrase, "the private key")
		if err != nil {
			return nil, nil, err
		}
		signers = append(signers, signer)
	case c.PrivateKeyFile != "":
		signer, err := c.readKey(known, c.PrivateKeyFile)
		if err != nil {
			return nil, nil, err
		}
		signers = append(signers, signer)
	}
	for _, name := range c.IdentityFiles {
		signer, err := c.readKey(known, name)
		var exposed *exposedError
		switch {
		case err == nil:
			signers = append(signers, signer)
		case errors.As(err, &exposed):
			passedOver = append(passedOver, exposed)
		}
	}
	return signers, passedOver, nil
}

func (c Credential) readKey(known *keys, name string) (ssh.Signer, error) {
	pem, err := readSmall(name, checkExposure)
	if err != nil {
		return nil, fmt.Errorf("read private key: %w", err)
	}
	return known.parse(pem, c.Passphrase, name)
}

// exposedError: other users can read a private key.
type exposedError struct {
	name string
	mode fs.FileMode
}

func (e *exposedError) Error() string {
	return fmt.Sprintf("%s has mode %04o, and others must not have access to a private key: run chmod 600 %s", e.name, e.mode, e.name)
}

// checkExposure refuses a private key as OpenSSH does (sshkey_perm_ok): where
// its owner is the user, group and others may have no access at all. The user
// cannot choose the modes of another owner's file, such as a mounted one.
func checkExposure(name string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if mode := info.Mode().Perm(); ok && int(owner.Uid) == os.Getuid() && mode&0o077 != 0 {
		return &exposedError{name, mode}
	}
	return nil
}

// parseKey reads a private key that messages call name.
func parseKey(pem []byte, passphrase, name string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(pem)
	var missing *ssh.PassphraseMissingError
	if !errors.As(err, &missing) {
		if err != nil {
			return nil, fmt.Errorf("%s is not a private key that OpenSSH or PEM knows: %s", name, insteadOfKey(pem, err))
		}
		return signer, nil
	}
	if passphrase == "" {
		return nil, fmt.Errorf("%s is encrypted: give its passphrase, or use the agent", name)
	}
	if signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, []byte(passphrase)); err != nil {
		return nil, fmt.Errorf("the passphrase of %s is wrong", name)
	}
	return signer, nil
}

// insteadOfKey describes the given text, which is not a private key, and the
// remedy.
func insteadOfKey(text []byte, err error) string {
	text = bytes.TrimSpace(text)
	public, _, _, _, notPublic := ssh.ParseAuthorizedKey(text)
	_, isCertificate := public.(*ssh.Certificate)
	switch {
	case bytes.HasPrefix(text, []byte("PuTTY-User-Key-File-")):
		return "it has PuTTY's format; convert it with: puttygen KEY.ppk -O private-openssh -o KEY"
	case bytes.HasPrefix(text, []byte("---- BEGIN SSH2 PUBLIC KEY")), notPublic == nil && !isCertificate:
		return "it is the public key; the private one is in the same folder, in the file without .pub"
	case isCertificate:
		return "it is a certificate, which belongs into certificate_file"
	case len(text) == 0:
		return "it is empty"
	}
	return err.Error()
}

// certified puts the certificate before the keys; it must belong to one of
// them.
func (c Credential) certified(signers []ssh.Signer) ([]ssh.Signer, error) {
	line := []byte(c.Certificate)
	if len(line) == 0 {
		if c.CertificateFile == "" {
			return signers, nil
		}
		var err error
		if line, err = readSmall(c.CertificateFile, nil); err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(bytes.TrimSpace(line))
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		return nil, errors.New("read certificate: it is a public key and no certificate")
	}
	for _, signer := range signers {
		if bytes.Equal(signer.PublicKey().Marshal(), cert.Key.Marshal()) {
			certified, err := ssh.NewCertSigner(cert, signer)
			if err != nil {
				return nil, fmt.Errorf("use certificate: %w", err)
			}
			return append([]ssh.Signer{certified}, signers...), nil
		}
	}
	return nil, errors.New("use certificate: it does not belong to the private key, nor to one of the agent's")
}

// readSmall reads a file that a person named, if check, which may be nil, has
// nothing against it.
func readSmall(name string, check func(name string, info fs.FileInfo) error) ([]byte, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		name = filepath.Join(home, rest)
	}
	// Before it is opened: opening a pipe would wait for its other end.
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if check != nil {
		info, err := f.Stat()
		if err == nil {
			err = check(name, info)
		}
		if err != nil {
			return nil, err
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err == nil && len(b) > maxKey {
		err = fmt.Errorf("%s has more than %d bytes, so it is not a key", name, maxKey)
	}
	return b, err
}
