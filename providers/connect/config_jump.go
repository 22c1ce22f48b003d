package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// jumps returns the machines on the way that ProxyJump names for a host,
// nearest first, each with the key that the file's known hosts have of it.
func (s SSHSettings) jumps(host string, depth int) ([]ssh.Hop, error) {
	value := s.config.get(host, "ProxyJump")
	if value == "" || strings.EqualFold(value, "none") {
		return nil, nil
	}
	if depth >= maxJumps {
		return nil, fmt.Errorf("%s: ProxyJump of %s leads through more than %d machines, or in a circle", s.config.name, host, maxJumps)
	}
	var hops []ssh.Hop
	for i, text := range strings.Split(value, ",") {
		to, err := parseJump(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s: ProxyJump of %s: %w", s.config.name, host, err)
		}
		if i == 0 { // only the first is reached from here, by its own way
			before, err := s.jumps(to.Address, depth+1)
			if err != nil {
				return nil, err
			}
			hops = append(hops, before...)
		}
		hop, err := s.hop(to)
		if err != nil {
			return nil, fmt.Errorf("jump host %s: %w", to.Address, err)
		}
		if hop.HostKey, hop.KeyFrom, err = s.config.knownKeys(to.Address, hop); err != nil {
			return nil, fmt.Errorf("jump host %s: %w", to.Address, err)
		}
		hops = append(hops, hop)
	}
	if len(hops) > maxJumps {
		return nil, fmt.Errorf("%s: ProxyJump of %s leads through more than %d machines", s.config.name, host, maxJumps)
	}
	return hops, nil
}

// parseJump reads [USER@]HOST[:PORT], also as ssh://.
func parseJump(text string) (Hop, error) {
	rest := strings.TrimSuffix(strings.TrimPrefix(text, "ssh://"), "/")
	var h Hop
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		h.User, rest = rest[:i], rest[i+1:]
	}
	h.Address = strings.Trim(rest, "[]")
	if host, port, err := net.SplitHostPort(rest); err == nil {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return Hop{}, fmt.Errorf("%q has no valid port", text)
		}
		h.Address, h.Port = host, n
	}
	if h.Address == "" || strings.ContainsAny(h.Address, " \t/") {
		return Hop{}, fmt.Errorf("%q is not USER@HOST:PORT", text)
	}
	return h, nil
}

// knownKeys looks a host up in the known hosts that the file names, or the
// usual ones. There has to be a key. It returns those files' names, too.
func (c *configFile) knownKeys(original string, hop ssh.Hop) (keys, from string, err error) {
	files := strings.Fields(c.get(original, "UserKnownHostsFile"))
	if len(files) == 0 {
		files = []string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2"}
	}
	from = strings.Join(files, " ")
	name := hop.Address
	if alias := c.get(original, "HostKeyAlias"); alias != "" {
		name = alias
	}
	port := hop.Port
	if port == 0 {
		port = 22
	}
	var there []string
	for _, file := range files {
		file, err := c.expand("UserKnownHostsFile", file, hop, original)
		if err != nil {
			return "", "", err
		}
		if file, err = ExpandHome(file); err != nil {
			return "", "", err
		}
		if _, err := os.Stat(file); err == nil {
			there = append(there, file)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", "", fmt.Errorf("read known hosts: %w", err)
		}
	}
	keys, err = lookUp(there, net.JoinHostPort(name, strconv.Itoa(port)))
	if err == nil && keys == "" {
		err = fmt.Errorf("%s has no key of %s: log in there once by ssh, or declare the machine as a bastion with its host_key", from, knownhosts.Normalize(net.JoinHostPort(name, strconv.Itoa(port))))
	}
	return keys, from, err
}

// lookUp returns the keys that known_hosts files have of an address and that are
// not revoked, one on each line.
func lookUp(files []string, address string) (string, error) {
	if len(files) == 0 {
		return "", nil
	}
	known, err := KnownKeys(files, address)
	var lines []string
	for _, k := range known {
		if !k.Revoked {
			lines = append(lines, k.String())
		}
	}
	return strings.Join(lines, "\n"), err
}
