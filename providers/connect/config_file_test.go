package connect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// home makes a home directory with these files below .ssh.
func home(t *testing.T, files map[string]string) string {
	t.Helper()
	noEnv(t)
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	for name, content := range files {
		name = filepath.Join(dir, ".ssh", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const config = `
Host gpu-*
  HostName %h.example.com
  User deploy
  Port 2222
  IdentityFile ~/.ssh/%n-key
  IdentityFile "~/.ssh/other"
  CertificateFile ~/.ssh/cert
  ProxyJump jump,second:2200
Host behind
  ProxyJump gpu-7
Host jump
  HostName 10.0.0.1
  User j
  UserKnownHostsFile ~/.ssh/jumps
  IdentityAgent none
Host alone
  IdentityAgent ~/agent
  IdentitiesOnly yes
Host *
  User everybody
  ServerAliveInterval 5
`

func TestConfigFile(t *testing.T) {
	key, second := hostKey(t), hostKey(t)
	home(t, map[string]string{
		"config": config, "gpu-7-key": "x", "id_ed25519": "y",
		"jumps": "10.0.0.1 " + key + "\n10.0.0.1 " + second + "\n", "known_hosts": "[second]:2200 " + second + "\n[gpu-7.example.com]:2222 " + key + "\n",
	})
	t.Setenv(envAgent, "/agent")
	s := read(t, map[string]any{"config_file": "~/.ssh/config", "credentials": map[string]map[string]any{"own": {"user": "own", "password": "p"}}})
	agent := ssh.Credential{IdentityFiles: []string{"~/.ssh/id_ed25519"}, Agent: true, AgentSocket: "/agent", Sudo: true}
	as := func(c ssh.Credential, user string) ssh.Credential { c.User = user; return c }
	gpu := ssh.Credential{User: "deploy", IdentityFiles: []string{"~/.ssh/gpu-7-key"}, CertificateFile: "~/.ssh/cert", Agent: true, AgentSocket: "/agent", Sudo: true}
	const usual = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
	jumps := []ssh.Hop{
		{Address: "10.0.0.1", HostKey: key + "\n" + second, KeyFrom: "~/.ssh/jumps", Credential: ssh.Credential{User: "j", IdentityFiles: []string{"~/.ssh/id_ed25519"}, Sudo: true}},
		{Address: "second", Port: 2200, HostKey: second, KeyFrom: usual, Credential: as(agent, "everybody")},
	}
	bastion := Hop{Address: "b", HostKey: key, Credential: "own"}
	for _, tt := range []struct {
		name string
		to   SSH
		want ssh.Target
	}{
		{"by name", SSH{Hop: Hop{Address: "gpu-7", HostKey: key}}, ssh.Target{
			Hop: ssh.Hop{Address: "gpu-7.example.com", Port: 2222, HostKey: key, Credential: gpu}, Hops: jumps,
		}},
		{"what is declared comes first", SSH{Hop: Hop{Address: "gpu-7", Port: 22, User: "me", HostKey: key, Credential: "own"}, Hops: []Hop{bastion}}, ssh.Target{
			Hop:  ssh.Hop{Address: "gpu-7.example.com", Port: 22, HostKey: key, Credential: ssh.Credential{User: "me", Password: "p", Sudo: true}},
			Hops: []ssh.Hop{{Address: "b", HostKey: key, Credential: ssh.Credential{User: "own", Password: "p", Sudo: true}}},
		}},
		{"jump after jump", SSH{Hop: Hop{Address: "behind", HostKey: key}}, ssh.Target{
			Hop:  ssh.Hop{Address: "behind", HostKey: key, Credential: as(agent, "everybody")},
			Hops: append(append([]ssh.Hop(nil), jumps...), ssh.Hop{Address: "gpu-7.example.com", Port: 2222, HostKey: key, KeyFrom: usual, Credential: gpu}),
		}},
		{"files alone", SSH{Hop: Hop{Address: "alone", HostKey: key}}, ssh.Target{
			Hop: ssh.Hop{Address: "alone", HostKey: key, Credential: ssh.Credential{User: "everybody", IdentityFiles: []string{"~/.ssh/id_ed25519"}, Sudo: true}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := s.Target(tt.to, nil)
			if d := cmp.Diff(tt.want, got); err != nil || d != "" {
				t.Error(err, d)
			}
		})
	}
	later := read(t, map[string]any{"user": "x", "config_file": unknownText})
	if _, err := later.Target(SSH{Hop: Hop{Address: "a"}}, nil); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

func TestConfigFileMistakes(t *testing.T) {
	for _, tt := range []struct{ name, config, want string }{
		{"proxy command", "Host a\n  ProxyCommand nc %h %p\n", "says ProxyCommand nc %h %p for a, which stoke cannot follow: use ProxyJump"},
		{"proxy command switched off", "Host a\n  ProxyCommand none\n  User x\n", ""},
		{"for another host", "Host b\n  ProxyCommand nc\nHost *\n  User x\n", ""},
		{"token", "HostName %Z.example.com\nUser x\n", "stoke does not know %Z"},
		{"half a token", "HostName %\nUser x\n", "ends in a %"},
		{"port", "Port ssh\nUser x\n", "Port ssh of a is not a port"},
		{"circle", "ProxyJump a\nUser x\n", "in a circle"},
		{"jump without key", "User x\nHost a\n  ProxyJump b\n", "jump host b: ~/.ssh/known_hosts ~/.ssh/known_hosts2 has no key of b: log in there once"},
		{"malformed jump", "User x\nHost a\n  ProxyJump b:70000\n", "no valid port"},
		{"no user", "Port 22\n", "no user to log in as"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home(t, map[string]string{"config": tt.config})
			s := read(t, map[string]any{"config_file": "~/.ssh/config"})
			_, err := s.Target(SSH{Hop: Hop{Address: "a", HostKey: hostKey(t)}}, nil)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	home(t, map[string]string{"match": "Match exec true\n  User x\n", "user": "Match user x\n  Port 3\n"})
	for name, want := range map[string]string{"match": "Match Exec is not supported", "user": "unsupported Match criterion", "missing": "no such file", "": "not a regular file"} {
		_, diags := ReadSSH(t.Context(), block(t, map[string]any{"config_file": "~/.ssh/" + name}))
		if len(diags) != 1 || !strings.Contains(diags[0].Detail(), want) {
			t.Errorf("%s: %v", name, diags)
		}
		if _, diags := readSSH(t.Context(), blockPath(), block(t, map[string]any{"config_file": "~/.ssh/" + name}), os.Getenv, false); diags != nil {
			t.Errorf("%s: while validating: %v", name, diags)
		}
	}
}

func FuzzParseJump(f *testing.F) {
	for _, text := range []string{"a", "u@a:22", "ssh://u@[::1]:22/", "[::1]", "::1", "@", ":", "a b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseJump(text)
		if err == nil && (h.Address == "" || h.Port < 0 || h.Port > 65535) {
			t.Errorf("%q: %+v", text, h)
		}
	})
}
