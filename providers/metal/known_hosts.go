package metal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/stokehq/stoke/providers/connect"
)

type knownKey struct {
	key    ssh.PublicKey
	source string
}

// preferredKeys are host keys' algorithms, the preferred one first. A machine's
// certificate is not requested: it expires, unlike a key.
func preferredKeys() []string {
	return []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
	}
}

// rank orders kinds of keys by preferredKeys; -1 for kinds that stoke does not
// accept.
func rank(key ssh.PublicKey) int {
	kind := key.Type()
	if kind == ssh.KeyAlgoRSA {
		kind = ssh.KeyAlgoRSASHA512
	}
	return slices.Index(preferredKeys(), kind)
}

// fromKnownHosts looks a machine up in a file in OpenSSH's format. Lines of
// authorities do not contain keys of machines, and a revoked key is ignored.
func fromKnownHosts(file, address string, port int) (knownKey, error) {
	at := net.JoinHostPort(strings.ToLower(strings.Trim(address, "[]")), strconv.Itoa(port))
	name := knownhosts.Normalize(at)
	keys, err := connect.KnownKeys([]string{file}, at)
	if err != nil {
		return knownKey{}, err
	}
	best, revoked, authorities := knownKey{}, 0, 0
	for _, k := range keys {
		switch {
		case k.Authority:
			authorities++
		case k.Revoked:
			revoked++
		case rank(k.Key) >= 0 && (best.key == nil || rank(k.Key) < rank(best.key)):
			best = knownKey{k.Key, fmt.Sprintf("%s:%d", file, k.Line)}
		}
	}
	switch {
	case best.key != nil:
		return best, nil
	case revoked > 0:
		return knownKey{}, fmt.Errorf("%s has only keys of %s that are revoked", file, name)
	case authorities > 0:
		return knownKey{}, fmt.Errorf("%s has no key of %s, only a key of an authority over it, and stoke knows "+
			"machines by their keys", file, name)
	}
	return knownKey{}, fmt.Errorf("%s has no key of %s; look at the machine's own with: cat /etc/ssh/ssh_host_ed25519_key.pub", file, name)
}

var errShown = errors.New("the key was shown")

// fromMachine reads the host key that a machine shows, and disconnects without
// sending anything to it. That it has the key, it has proved; the key exchange
// proves that the machine has the key, but not whose key it is.
func fromMachine(ctx context.Context, dial func(context.Context) (net.Conn, error), address string) (knownKey, error) {
	conn, err := dial(ctx)
	if err != nil {
		return knownKey{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var shown ssh.PublicKey
	_, _, _, err = ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: "stoke", HostKeyAlgorithms: preferredKeys(), ClientVersion: "SSH-2.0-stoke",
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error { shown = key; return errShown },
	})
	switch {
	case shown != nil:
		return knownKey{shown, "connection"}, nil
	case ctx.Err() != nil:
		return knownKey{}, context.Cause(ctx)
	case err == nil:
		return knownKey{}, errors.New("it showed no key")
	}
	return knownKey{}, err
}
