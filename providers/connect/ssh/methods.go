package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// methods is what the protocol tries for one login, in this order: keys, the
// agent's keys, the password.
type methods struct {
	auth []ssh.AuthMethod
	keys []string // of each key, what to call it
	// passedOver is why some keys were not even offered.
	passedOver []error
	agent      net.Conn
	failed     error // why a method could not even be tried

	password string
	given    bool    // the password was given already
	said     *banner // what the machine has said so far
	before   int     // so many messages before the password was given
}

var errQuestion = errors.New("the machine asks for more than a password")

// methods reads the keys and asks the agent. The machine is not contacted.
func (c Credential) methods(ctx context.Context, known *keys) (*methods, error) {
	signers, passedOver, err := c.signers(known)
	m := &methods{password: c.Password, passedOver: passedOver}
	if err == nil && c.Agent {
		var held []ssh.Signer
		if held, err = m.fromAgent(ctx, c.AgentSocket); err == nil {
			signers = append(signers, held...)
			if len(signers) == 0 && c.Password == "" {
				err = errors.New("use SSH agent: it holds no keys, or is locked (ssh-add -l tells); add one, or name a private key")
			}
		}
	}
	if err == nil {
		signers, err = c.certified(signers)
	}
	if err == nil && len(signers) == 0 && c.Password == "" {
		err = c.checkNotEmpty()
	}
	if err != nil {
		m.close()
		return nil, Permanent{err}
	}
	for _, s := range signers {
		m.keys = append(m.keys, keyName(s.PublicKey(), c.User, time.Now()))
	}
	if len(signers) > 0 {
		m.auth = append(m.auth, ssh.PublicKeys(signers...))
	}
	if c.Password != "" {
		m.auth = append(m.auth, ssh.PasswordCallback(m.give)) // and see next
	}
	return m, nil
}

// keyName is what to call a key that is offered to machines. Of a certificate that
// they will not take it says why: they do not.
func keyName(key ssh.PublicKey, user string, now time.Time) string {
	name := strings.TrimSuffix(key.Type(), "-cert-v01@openssh.com") + " " + ssh.FingerprintSHA256(key)
	c, ok := key.(*ssh.Certificate)
	if !ok {
		return name
	}
	at := func(seconds uint64) string {
		return time.Unix(int64(min(seconds, math.MaxInt32*4)), 0).UTC().Format("2006-01-02 15:04:05 UTC")
	}
	switch is := uint64(max(0, now.Unix())); {
	case c.CertType != ssh.UserCert:
		return name + " (a certificate of a machine and not of a user)"
	case is >= c.ValidBefore && c.ValidBefore != ssh.CertTimeInfinity:
		return name + " (a certificate that expired at " + at(c.ValidBefore) + ": have it signed again)"
	case is < c.ValidAfter:
		return name + " (a certificate that is valid from " + at(c.ValidAfter) + " on: compare the clock here)"
	case len(c.ValidPrincipals) > 0 && !slices.Contains(c.ValidPrincipals, user):
		return name + " (a certificate for " + printable(strings.Join(c.ValidPrincipals, " and ")) + ")"
	}
	return name + " (a certificate)"
}

func (c Credential) checkNotEmpty() error {
	if len(c.IdentityFiles) == 0 {
		return errors.New("the credential has no private key, no password and no agent")
	}
	_, err := c.readKey(nil, c.IdentityFiles[0])
	return fmt.Errorf("none of the private keys can be used: %w", err)
}

// fromAgent asks the agent for its keys. It signs with them during the login,
// so that the connection stays until close; an agent that does not answer is
// given up with the context.
func (m *methods) fromAgent(ctx context.Context, socket string) ([]ssh.Signer, error) {
	if socket == "" {
		if socket = os.Getenv("SSH_AUTH_SOCK"); socket == "" {
			return nil, errors.New("use SSH agent: SSH_AUTH_SOCK is not set; start an agent or name a private key")
		}
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("use SSH agent: %w", err)
	}
	m.agent = conn
	context.AfterFunc(ctx, func() { conn.Close() })
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		return nil, fmt.Errorf("use SSH agent at %s: %w", socket, err)
	}
	for i, s := range signers {
		if as, ok := s.(ssh.AlgorithmSigner); ok {
			signers[i] = &signerWatch{as, m}
		}
	}
	return signers, nil
}

func (m *methods) close() {
	if m.agent != nil {
		m.agent.Close()
	}
}

// notTaken is the error of a login that was refused. A password that was not
// taken is not given to that machine again.
func (m *methods) notTaken(err error) error {
	if m.given {
		err = wrongPassword{err}
	}
	return Permanent{err}
}

// describeOffered describes the offered credentials, for the error of a refused login.
func (m *methods) describeOffered() string {
	what := append([]string(nil), m.keys...)
	const most = 5
	if len(what) > most {
		what = append(what[:most:most], fmt.Sprintf("%d more keys", len(m.keys)-most))
	}
	if m.password != "" {
		what = append(what, "a password")
	}
	text := strings.Join(what, ", ")
	for _, err := range m.passedOver {
		text += "; passed over " + err.Error()
	}
	return text
}

// give gives the password to the method password.
func (m *methods) give() (string, error) {
	m.given, m.before = true, m.said.messages
	return m.password, nil
}

// next adds the other method that takes a password, where the machine takes it
// by questions only. A rejected password is not sent again: machines count, and
// lock accounts. A machine that gives a reason has accepted the password: while
// it boots, say, it refuses logins, and the retries find out that this passes.
func (m *methods) next(so *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	untried := func(method string) bool {
		return slices.Contains(so.AllowedMethods, method) && !slices.Contains(so.TriedMethods, method)
	}
	if m.password == "" || !untried("keyboard-interactive") || untried("password") || len(m.keys) > 0 && untried("publickey") {
		return nil, nil // the methods in auth have precedence
	}
	if slices.Contains(so.TriedMethods, "password") {
		if m.said.messages == m.before {
			return nil, nil
		}
		m.given = false
	}
	return ssh.KeyboardInteractive(m.answer), nil
}

// answer gives the password to the first question without an echo, and nothing
// to any other: it may be one for a second factor, or for a new password.
func (m *methods) answer(_, _ string, questions []string, echos []bool) ([]string, error) {
	answers := make([]string, len(questions))
	for i, question := range questions {
		if echos[i] || m.given {
			m.failed = fmt.Errorf("%w: %q", errQuestion, lastLines([]byte(strings.TrimSpace(question)), 1))
			return nil, m.failed
		}
		answers[i], m.given = m.password, true
	}
	return answers, nil
}

// signerWatch remembers why the agent did not sign: the library only tries the next
// method.
type signerWatch struct {
	ssh.AlgorithmSigner
	of *methods
}

func (w *signerWatch) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s, err := w.AlgorithmSigner.SignWithAlgorithm(rand, data, algorithm)
	if err != nil {
		w.of.failed = fmt.Errorf("the SSH agent does not sign with %s: %w", ssh.FingerprintSHA256(w.PublicKey()), err)
	}
	return s, err
}
