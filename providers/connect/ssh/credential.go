package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Credential says how to log in, and how to become root then. It is never
// stored; whatever is empty is not tried.
type Credential struct {
	User            string
	PrivateKeyFile  string // "~/" is the home directory
	PrivateKey      string // PEM, instead of a file
	Passphrase      string // of the private key
	Certificate     string // line of a -cert.pub file, for the private key
	CertificateFile string // such a file, instead
	Agent           bool   // the agent at SSH_AUTH_SOCK
	Password        string // for the methods password and keyboard-interactive

	// Sudo runs commands as root by sudo; without it they run as User.
	Sudo bool
	// SudoPassword is what sudo asks for; "" where it asks for nothing.
	SudoPassword string
}

// mostKey bounds a key file: it may be any file by mistake.
const mostKey = 1 << 20

// methods turns the credential into what the protocol tries, in this order:
// key, agent, password. done closes what was opened.
func (c Credential) methods() (auth []ssh.AuthMethod, done func(), err error) {
	done = func() {}
	signer, err := c.signer()
	if err != nil {
		return nil, done, Permanent{err}
	}
	var signers []ssh.Signer
	if signer != nil {
		signers = append(signers, signer)
	}
	if c.Agent {
		socket := os.Getenv("SSH_AUTH_SOCK")
		if socket == "" {
			return nil, done, Permanent{errors.New("use SSH agent: SSH_AUTH_SOCK is not set; start an agent or name a private key")}
		}
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil, done, Permanent{fmt.Errorf("use SSH agent: %w", err)}
		}
		done = func() { conn.Close() }
		held, err := agent.NewClient(conn).Signers()
		if err != nil {
			done()
			return nil, func() {}, Permanent{fmt.Errorf("use SSH agent: %w", err)}
		}
		signers = append(signers, held...)
	}
	if len(signers) > 0 {
		auth = append(auth, ssh.PublicKeys(signers...))
	}
	if c.Password != "" {
		auth = append(auth, ssh.Password(c.Password), ssh.KeyboardInteractive(c.answer))
	}
	if len(auth) == 0 {
		done()
		return nil, func() {}, Permanent{errors.New("log in: the credential has no private key, no password and no agent")}
	}
	return auth, done, nil
}

// answer gives the password to whatever is asked without an echo.
func (c Credential) answer(_, _ string, questions []string, echos []bool) ([]string, error) {
	answers := make([]string, len(questions))
	for i := range questions {
		if !echos[i] {
			answers[i] = c.Password
		}
	}
	return answers, nil
}

func (c Credential) signer() (ssh.Signer, error) {
	pem, name := []byte(c.PrivateKey), "the private key"
	if len(pem) == 0 {
		if c.PrivateKeyFile == "" {
			return nil, nil
		}
		var err error
		if pem, err = readSmall(c.PrivateKeyFile); err != nil {
			return nil, fmt.Errorf("read private key: %w", err)
		}
		name = c.PrivateKeyFile
	}
	signer, err := parseKey(pem, c.Passphrase)
	var missing *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &missing):
		return nil, fmt.Errorf("%s is encrypted: give its passphrase, or use the agent", name)
	case err != nil && c.Passphrase != "":
		return nil, fmt.Errorf("decrypt %s: the passphrase is wrong, or it is no private key", name)
	case err != nil:
		return nil, fmt.Errorf("%s is no private key that OpenSSH or PEM knows: %w", name, err)
	}
	if c.Certificate == "" && c.CertificateFile == "" {
		return signer, nil
	}
	return c.certified(signer)
}

func parseKey(pem []byte, passphrase string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(pem)
	var missing *ssh.PassphraseMissingError
	if passphrase != "" && errors.As(err, &missing) {
		return ssh.ParsePrivateKeyWithPassphrase(pem, []byte(passphrase))
	}
	return signer, err
}

func (c Credential) certified(signer ssh.Signer) (ssh.Signer, error) {
	line := []byte(c.Certificate)
	if len(line) == 0 {
		var err error
		if line, err = readSmall(c.CertificateFile); err != nil {
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
	signer, err = ssh.NewCertSigner(cert, signer)
	if err != nil {
		return nil, fmt.Errorf("use certificate: it does not belong to the private key: %w", err)
	}
	return signer, nil
}

// readSmall reads a file that a person named.
func readSmall(name string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		name = filepath.Join(home, rest)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, mostKey+1))
	if err == nil && len(b) > mostKey {
		err = fmt.Errorf("%s has more than %d bytes, so it is no key", name, mostKey)
	}
	return b, err
}
