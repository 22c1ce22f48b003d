package connect

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// SSHSettings is what a provider's block ssh says. The zero value is a block
// that was left out and an empty environment.
type SSHSettings struct {
	Timeouts ssh.Timeouts
	Retry    time.Duration // for how long a machine that cannot be reached is tried again

	block       login
	credentials map[string]login
	unknown     bool        // which credentials there are is not known yet
	config      *configFile // nil: none is read
	later       bool        // which configuration file there is is not known yet
	bastions    []Hop       // for machines that name none
	wayUnknown  bool        // which bastions there are is not known yet
}

// login is one credential as it was given.
type login struct {
	ssh.Credential
	sudo    *bool
	agent   *bool
	unknown []string // the attributes that are not known yet
}

const defaultRetry = 30 * time.Second

// The environment says what the block itself leaves out.
const (
	envUser         = "STOKE_SSH_USER"
	envPrivateKey   = "STOKE_SSH_PRIVATE_KEY"
	envPassphrase   = "STOKE_SSH_PASSPHRASE"
	envPassword     = "STOKE_SSH_PASSWORD"
	envSudoPassword = "STOKE_SSH_SUDO_PASSWORD"
	envAgent        = "SSH_AUTH_SOCK"
)

// ReadSSH reads a provider's block ssh, which may have been left out. A value
// that is not known yet is an error only for its user: see Target.
//
// Arguments that the block itself (not a named credential) leaves out are taken
// from the environment: STOKE_SSH_USER, STOKE_SSH_PRIVATE_KEY,
// STOKE_SSH_PASSPHRASE, STOKE_SSH_PASSWORD and STOKE_SSH_SUDO_PASSWORD.
func ReadSSH(ctx context.Context, block types.Object) (SSHSettings, diag.Diagnostics) {
	return readSSH(ctx, blockPath(), block, os.Getenv, true)
}

// readSSH reads files only where told to: while a configuration is validated,
// they need not be there.
func readSSH(ctx context.Context, at path.Path, block types.Object, env func(string) string, files bool) (SSHSettings, diag.Diagnostics) {
	s := SSHSettings{Retry: defaultRetry}
	if block.IsUnknown() {
		s.unknown, s.wayUnknown, s.block.unknown = true, true, []string{"ssh"}
		return s, nil
	}
	var m sshModel
	var diags diag.Diagnostics
	if !block.IsNull() {
		if diags = block.As(ctx, &m, basetypes.ObjectAsOptions{}); diags.HasError() {
			return s, diags
		}
	}
	s.Timeouts.Dial = readDuration(&diags, at.AtName("dial_timeout"), m.DialTimeout, 0, time.Second)
	s.Timeouts.Alive = readDuration(&diags, at.AtName("keepalive_interval"), m.KeepaliveInterval, 0, time.Second)
	s.Retry = readDuration(&diags, at.AtName("retry_timeout"), m.RetryTimeout, defaultRetry, 0)
	passphrase := m.Passphrase
	if p := env(envPassphrase); p != "" && passphrase.IsNull() {
		passphrase = types.StringValue(p)
	}
	s.block = m.read(&diags, at, passphrase)
	s.block.fillIn(env)
	if m.ConfigFile.IsUnknown() {
		s.later = true
	} else if name := m.ConfigFile.ValueString(); name != "" && files {
		var err error
		if s.config, err = readConfigFile(name); err != nil {
			diags.AddAttributeError(at.AtName("config_file"), "SSH configuration cannot be used", fmt.Sprintf("Fix it, or leave config_file out and say here what it says: %s.", err))
		}
	}
	s.readBastions(ctx, &diags, at.AtName("bastion"), m.Bastions)
	s.unknown = m.Credentials.IsUnknown()
	if m.Credentials.IsNull() || m.Credentials.IsUnknown() {
		return s, diags
	}
	s.credentials = map[string]login{}
	for _, name := range slices.Sorted(maps.Keys(m.Credentials.Elements())) {
		below := at.AtName("credentials").AtMapKey(name)
		o, ok := m.Credentials.Elements()[name].(types.Object)
		if !ok || o.IsUnknown() {
			s.credentials[name] = login{unknown: []string{"credentials." + name}}
			continue
		}
		var c credentialModel
		if name == "" || o.IsNull() {
			diags.AddAttributeError(below, "Credential without name or content", `Write it as NAME = { user = "…", private_key_file = "…" }.`)
			continue
		}
		diags.Append(o.As(ctx, &c, basetypes.ObjectAsOptions{})...)
		l := c.read(&diags, below, c.Passphrase)
		l.agentByDefault(env)
		s.credentials[name] = l
	}
	return s, diags
}

func readDuration(diags *diag.Diagnostics, at path.Path, v types.String, otherwise, least time.Duration) time.Duration {
	if v.IsNull() || v.IsUnknown() {
		return otherwise
	}
	d, err := time.ParseDuration(v.ValueString())
	if err != nil || d < least {
		diags.AddAttributeError(at, "Invalid duration", `Give a duration such as "30s" or "2m", at least `+least.String()+".")
		return otherwise
	}
	return d
}

// fillIn takes from the environment what was not given.
func (l *login) fillIn(env func(string) string) {
	fill := func(to *string, name string) {
		if *to == "" {
			*to = env(name)
		}
	}
	fill(&l.User, envUser)
	if l.PrivateKeyFile == "" {
		fill(&l.PrivateKey, envPrivateKey)
	}
	fill(&l.Passphrase, envPassphrase)
	fill(&l.Password, envPassword)
	fill(&l.SudoPassword, envSudoPassword)
	l.agentByDefault(env)
}

// agentByDefault asks the agent where there is nothing else.
func (l *login) agentByDefault(env func(string) string) {
	switch {
	case l.agent != nil:
		l.Agent = *l.agent
	case l.PrivateKey == "" && l.PrivateKeyFile == "" && l.Password == "":
		l.Agent = env(envAgent) != ""
	}
}

// Pool makes a pool of connections with these settings.
func (s SSHSettings) Pool() *ssh.Pool {
	return &ssh.Pool{Timeouts: s.Timeouts, Patience: s.Retry}
}

// explicit reports whether the credential says itself how to log in.
func (l login) explicit() bool {
	return l.PrivateKey != "" || l.PrivateKeyFile != "" || l.Password != "" || l.agent != nil
}
