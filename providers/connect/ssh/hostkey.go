package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// authority marks a line of Hop.HostKey that is the key of an authority which
// signs host keys, as in known_hosts.
const authority = "@cert-authority "

// hostKeyCheck checks the key that a machine shows.
type hostKeyCheck struct {
	hop         Hop
	keys        []ssh.PublicKey
	authorities []ssh.PublicKey
	accept      func(string) error
	failed      error // what check said last
}

func newKnown(hop Hop, accept func(string) error) (*hostKeyCheck, error) {
	k := &hostKeyCheck{hop: hop, accept: accept}
	for line := range strings.Lines(hop.HostKey) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		text, signs := strings.CutPrefix(line, authority)
		key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil || len(options) > 0 || len(bytes.TrimSpace(rest)) > 0 {
			return nil, Permanent{fmt.Errorf("host_key of %s is not a line such as \"ssh-ed25519 AAAA…\"", hop.Address)}
		}
		if signs {
			k.authorities = append(k.authorities, key)
		} else {
			k.keys = append(k.keys, key)
		}
	}
	return k, nil
}

// algorithms returns the algorithms for which the known key can be checked:
// otherwise a server with several keys chooses one. nil is any.
func (k *hostKeyCheck) algorithms() []string {
	var names []string
	for _, key := range k.keys {
		if key.Type() == ssh.KeyAlgoRSA { // one key, two ways to sign
			names = append(names, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			names = append(names, key.Type())
		}
	}
	if len(k.authorities) > 0 {
		// An authority may sign keys of any kind.
		names = append(names, ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
			ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (k *hostKeyCheck) check(address string, remote net.Addr, got ssh.PublicKey) error {
	k.failed = k.judge(address, remote, got)
	return k.failed
}

func (k *hostKeyCheck) judge(address string, remote net.Addr, got ssh.PublicKey) error {
	if cert, ok := got.(*ssh.Certificate); ok {
		checker := &ssh.CertChecker{IsHostAuthority: func(by ssh.PublicKey, _ string) bool {
			return slices.ContainsFunc(k.authorities, func(a ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), by.Marshal()) })
		}}
		if err := checker.CheckHostKey(address, remote, cert); err != nil {
			return fmt.Errorf("%s shows a host certificate that does not hold: %w", k.hop.Address, err)
		}
		return nil
	}
	for _, key := range k.keys {
		if bytes.Equal(key.Marshal(), got.Marshal()) {
			return nil
		}
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(got)))
	e := &HostKeyError{Address: k.hop.Address, Got: line, Print: ssh.FingerprintSHA256(got), From: k.hop.KeyFrom}
	switch {
	case len(k.keys) > 0:
		prints := make([]string, len(k.keys))
		for i, key := range k.keys {
			prints[i] = ssh.FingerprintSHA256(key)
		}
		e.Want = strings.Join(prints, " or ")
	case len(k.authorities) > 0:
		return errors.New(k.hop.Address + " shows a host key without a certificate of the authority in host_key")
	case k.accept != nil:
		return k.accept(line)
	}
	return e
}
