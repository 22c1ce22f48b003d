package connect

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// ErrUnknown says that something of a credential is not known before apply.
var ErrUnknown = errors.New("known only after apply")

// Target is where to go and how to log in there and on the way. accept decides
// about the target's host key where none is given; it may be nil: then there
// has to be one.
//
// An error that wraps ErrUnknown says that a part of the credential is not
// known yet; every other one is a mistake in the configuration.
func (s SSHSettings) Target(to SSH, accept func(key string) error) (ssh.Target, error) {
	target := ssh.Target{AcceptNew: accept}
	if s.later {
		return ssh.Target{}, fmt.Errorf("config_file of the provider's block ssh: %w", ErrUnknown)
	}
	if len(to.Hops) == 0 {
		var err error
		if to.Hops, err = s.Hops(to.Hop); err != nil {
			return ssh.Target{}, fmt.Errorf("the bastions of the provider's block ssh: %w", err)
		}
	}
	if len(to.Hops) == 0 && s.config != nil {
		hops, err := s.jumps(to.Address, 0)
		if err != nil {
			return ssh.Target{}, err
		}
		target.Hops = hops
	}
	for _, h := range to.Hops {
		hop, err := s.hop(h)
		if err != nil {
			return ssh.Target{}, fmt.Errorf("hop %s: %w", h.Address, err)
		}
		target.Hops = append(target.Hops, hop)
	}
	var err error
	if target.Hop, err = s.hop(to.Hop); err != nil {
		return ssh.Target{}, fmt.Errorf("%s: %w", to.Address, err)
	}
	return target, nil
}

func (s SSHSettings) hop(h Hop) (ssh.Hop, error) {
	l, err := s.login(h.Credential)
	if err != nil {
		return ssh.Hop{}, err
	}
	hop := ssh.Hop{Address: h.Address, Port: h.Port, HostKey: h.HostKey, Credential: l.Credential}
	if h.User != "" {
		hop.Credential.User = h.User
	}
	if s.config != nil {
		if err := s.config.apply(&hop, h.Address, l.explicit()); err != nil {
			return ssh.Hop{}, err
		}
	}
	if hop.Credential.User == "" {
		return ssh.Hop{}, errors.New("no user to log in as: set user on the machine, or in the provider's block ssh")
	}
	hop.Credential.Sudo = hop.Credential.User != "root"
	if l.sudo != nil {
		hop.Credential.Sudo = *l.sudo
	}
	return hop, nil
}

// login finds a credential by its name.
func (s SSHSettings) login(name string) (login, error) {
	l, ok := s.block, true
	if name != "" {
		l, ok = s.credentials[name]
	}
	switch {
	case !ok && s.unknown:
		return login{}, fmt.Errorf("credential %q: %w", name, ErrUnknown)
	case !ok:
		return login{}, noCredential(name, slices.Sorted(maps.Keys(s.credentials)))
	case len(l.unknown) > 0 && name == "":
		return login{}, fmt.Errorf("%s of the provider's block ssh: %w", strings.Join(l.unknown, ", "), ErrUnknown)
	case len(l.unknown) > 0:
		return login{}, fmt.Errorf("%s of credential %q: %w", strings.Join(l.unknown, ", "), name, ErrUnknown)
	}
	return l, nil
}

func noCredential(name string, known []string) error {
	if len(known) == 0 {
		return fmt.Errorf("credential %q does not exist: the provider's block ssh has no credentials", name)
	}
	near, least := "", (len(name)+2)/3+1 // a third of the letters may be wrong
	for _, k := range known {
		if d := levenshtein.Distance(name, k, nil); d < least {
			near, least = k, d
		}
	}
	hint := ""
	if near != "" {
		hint = fmt.Sprintf("did you mean %q? ", near)
	}
	const most = 10
	list := strings.Join(known[:min(most, len(known))], ", ")
	if len(known) > most {
		list += ", …"
	}
	return fmt.Errorf("credential %q does not exist: %sthe provider's block ssh has %s", name, hint, list)
}
