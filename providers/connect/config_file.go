package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kevinburke/ssh_config"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// configFile is an OpenSSH client configuration such as ~/.ssh/config.
// Arguments of stoke take precedence; the file has the defaults.
type configFile struct {
	name string
	file *ssh_config.Config
}

// maxConfig bounds a configuration file: it may be any file by mistake.
const maxConfig = 1 << 20

// maxJumps bounds ProxyJump, which may lead in a circle.
const maxJumps = 8

func readConfigFile(name string) (*configFile, error) {
	path, err := ExpandHome(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxConfig:
		return nil, fmt.Errorf("%s is not a regular file, or has more than %d bytes", name, maxConfig)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := ssh_config.DecodeBytes(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "ssh_config: "))
	}
	return &configFile{name, file}, nil
}

// ExpandHome puts the user's home directory in place of a leading "~/".
func ExpandHome(name string) (string, error) {
	rest, ok := strings.CutPrefix(name, "~/")
	if !ok {
		return name, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, rest), err
}

// get is the first value of a keyword for a host, without the quotes.
func (c *configFile) get(host, key string) string {
	value, _ := c.file.Get(host, key) // it only fails for nodes of an unknown kind
	return value
}

func (c *configFile) all(host, key string) []string {
	values, _ := c.file.GetAll(host, key)
	return values
}

// unsupported lists keywords that change where a connection goes or who is
// there, and that cannot be followed. "none" and "no" switch each of them off.
var unsupported = []struct{ key, instead string }{
	{"ProxyCommand", "use ProxyJump, or bastions of the machine itself"},
	{"KnownHostsCommand", "give host_key"},
	{"BindAddress", "leave it out"},
	{"BindInterface", "leave it out"},
	{"PKCS11Provider", "use an agent that holds the key"},
	{"CanonicalizeHostname", "write host names in full"},
}

func (c *configFile) check(host string) error {
	for _, u := range unsupported {
		switch value := c.get(host, u.key); strings.ToLower(value) {
		case "", "none", "no":
		default:
			return fmt.Errorf("%s says %s %s for %s, which stoke cannot follow: %s", c.name, u.key, value, host, u.instead)
		}
	}
	return nil
}

// expand replaces the file's tokens, as ssh_config(5) has them.
func (c *configFile) expand(key, text string, hop ssh.Hop, original string) (string, error) {
	local, home := "", ""
	if strings.Contains(text, "%") || strings.HasPrefix(text, "~/") {
		me, err := user.Current()
		if err != nil {
			return "", err
		}
		local, home = me.Username, me.HomeDir
		if h, err := os.UserHomeDir(); err == nil {
			home = h
		}
	}
	port := hop.Port
	if port == 0 {
		port = 22
	}
	values := map[byte]string{'%': "%", 'h': hop.Address, 'n': original, 'p': strconv.Itoa(port), 'r': hop.Credential.User, 'u': local, 'd': home}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		i++
		if i == len(text) {
			return "", fmt.Errorf("%s: %s %s ends in a %%", c.name, key, text)
		}
		value, ok := values[text[i]]
		if !ok {
			return "", fmt.Errorf("%s: %s %s: stoke does not know %%%c", c.name, key, text, text[i])
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

// apply completes a machine by what the file says of it. original is how it was
// called.
func (c *configFile) apply(hop *ssh.Hop, original string, explicit bool) error {
	if err := c.check(original); err != nil {
		return err
	}
	if port := c.get(original, "Port"); hop.Port == 0 && port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%s: Port %s of %s is not a port", c.name, port, original)
		}
		hop.Port = n
	}
	var err error
	if name := c.get(original, "HostName"); name != "" {
		if hop.Address, err = c.expand("HostName", name, ssh.Hop{Address: original, Port: hop.Port, Credential: hop.Credential}, original); err != nil {
			return err
		}
	}
	if hop.Credential.User == "" {
		hop.Credential.User = c.get(original, "User")
	}
	if explicit {
		return nil
	}
	return c.keys(hop, original)
}

// keys completes a credential that names no key and no password by what OpenSSH
// would try.
func (c *configFile) keys(hop *ssh.Hop, original string) error {
	hop.Credential.Agent = false // whether there is one, the file says
	files := c.all(original, "IdentityFile")
	if len(files) == 0 {
		files = []string{"~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519"} // as OpenSSH has them
	}
	for _, file := range files {
		if strings.EqualFold(file, "none") {
			continue
		}
		name, err := c.expand("IdentityFile", file, *hop, original)
		if err != nil {
			return err
		}
		if path, err := ExpandHome(name); err != nil {
			return err
		} else if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			hop.Credential.IdentityFiles = append(hop.Credential.IdentityFiles, name)
		}
	}
	if cert := c.get(original, "CertificateFile"); cert != "" {
		name, err := c.expand("CertificateFile", cert, *hop, original)
		if err != nil {
			return err
		}
		hop.Credential.CertificateFile = name
	}
	socket := c.get(original, "IdentityAgent")
	switch {
	case strings.EqualFold(socket, "none"):
		return nil
	case socket == "" || socket == "SSH_AUTH_SOCK":
		socket = os.Getenv(envAgent)
	case strings.HasPrefix(socket, "$"):
		socket = os.Getenv(strings.Trim(socket, "${}"))
	default:
		name, err := c.expand("IdentityAgent", socket, *hop, original)
		if err != nil {
			return err
		}
		if socket, err = ExpandHome(name); err != nil {
			return err
		}
	}
	onlyFiles := strings.EqualFold(c.get(original, "IdentitiesOnly"), "yes") && len(hop.Credential.IdentityFiles) > 0
	if socket != "" && !onlyFiles {
		hop.Credential.Agent, hop.Credential.AgentSocket = true, socket
	}
	return nil
}
