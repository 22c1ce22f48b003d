package connect

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	gossh "golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

var unknownText = tftypes.NewValue(tftypes.String, tftypes.UnknownValue)

// block makes the block's value: strings, bools, tftypes values, and a map of
// maps for the credentials; what is left out is null.
func block(t *testing.T, given map[string]any) types.Object {
	t.Helper()
	ty := SSHBlock().Type().TerraformType(t.Context()).(tftypes.Object)
	v, err := SSHBlock().Type().ValueFromTerraform(t.Context(), objectOf(ty, given))
	if err != nil {
		t.Fatal(err)
	}
	return v.(types.Object)
}

func objectOf(ty tftypes.Object, given map[string]any) tftypes.Value {
	values := map[string]tftypes.Value{}
	for name, at := range ty.AttributeTypes {
		switch v := given[name].(type) {
		case tftypes.Value:
			values[name] = v
		case map[string]map[string]any:
			entry := at.(tftypes.Map).ElementType.(tftypes.Object)
			entries := map[string]tftypes.Value{}
			for key, of := range v {
				entries[key] = objectOf(entry, of)
			}
			values[name] = tftypes.NewValue(at, entries)
		default:
			values[name] = tftypes.NewValue(at, v)
		}
	}
	return tftypes.NewValue(ty, values)
}

func privateKey(t *testing.T, passphrase string) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var b *pem.Block
	if passphrase == "" {
		b, err = gossh.MarshalPrivateKey(private, "")
	} else {
		b, err = gossh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(b))
}

// noEnv keeps the environment of whoever runs the tests out of them.
func noEnv(t *testing.T) {
	for _, name := range []string{envUser, envPrivateKey, envPassphrase, envPassword, envSudoPassword, envAgent} {
		t.Setenv(name, "")
	}
}

func read(t *testing.T, given map[string]any) SSHSettings {
	t.Helper()
	s, diags := ReadSSH(t.Context(), block(t, given))
	if diags.HasError() {
		t.Fatal(diags)
	}
	return s
}

// The framework takes the block as a part of a provider's schema.
func TestBlockIsASchema(t *testing.T) {
	s := schema.Schema{Blocks: map[string]schema.Block{"ssh": SSHBlock()}}
	if diags := s.ValidateImplementation(t.Context()); diags.HasError() {
		t.Error(diags)
	}
	for name, a := range credentialBlockAttributes() {
		secret := map[string]bool{"private_key": true, "passphrase": true, "password": true, "sudo_password": true}[name]
		if a.IsSensitive() != secret {
			t.Errorf("%s: sensitive is %v", name, a.IsSensitive())
		}
	}
	_ = provider.SchemaResponse{Schema: s}
}

func TestTarget(t *testing.T) {
	noEnv(t)
	key := hostKey(t)
	settings := read(t, map[string]any{
		"user": "ops", "private_key_file": "~/.ssh/id", "passphrase": "p", "dial_timeout": "3s", "keepalive_interval": "4s", "retry_timeout": "0s",
		"credentials": map[string]map[string]any{
			"root": {"user": "root", "password": "r"},
			"jump": {"user": "jump", "agent": true, "sudo": false, "certificate_file": "c"},
			"gpu":  {"password": "g", "sudo_password": "s"},
		},
	})
	if d := cmp.Diff(ssh.Timeouts{Dial: 3 * time.Second, Alive: 4 * time.Second}, settings.Timeouts); d != "" || settings.Retry != 0 {
		t.Error(d, settings.Retry)
	}
	to := SSH{Hop: Hop{Address: "a", Port: 2, HostKey: key}, Hops: []Hop{{Address: "b", HostKey: key, Credential: "jump"}, {Address: "c", HostKey: key, User: "gpu", Credential: "gpu"}}}
	want := ssh.Target{
		Hop: ssh.Hop{Address: "a", Port: 2, HostKey: key, Credential: ssh.Credential{User: "ops", PrivateKeyFile: "~/.ssh/id", Passphrase: "p", Sudo: true}},
		Hops: []ssh.Hop{
			{Address: "b", HostKey: key, Credential: ssh.Credential{User: "jump", Agent: true, CertificateFile: "c"}},
			{Address: "c", HostKey: key, Credential: ssh.Credential{User: "gpu", Password: "g", SudoPassword: "s", Sudo: true}},
		},
	}
	got, err := settings.Target(to, nil)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(err, d)
	}
	got, err = settings.Target(SSH{Hop: Hop{Address: "a", Credential: "root"}}, func(string) error { return nil })
	if err != nil || got.Credential.Sudo || got.AcceptNew == nil {
		t.Errorf("%v %+v", err, got)
	}
	for name, want := range map[string]string{
		"rot":     `a: credential "rot" does not exist: did you mean "root"? the provider's block ssh has gpu, jump, root`,
		"nothing": `a: credential "nothing" does not exist: the provider's block ssh has gpu, jump, root`,
		"gpu":     "a: no user to log in as",
	} {
		if _, err := settings.Target(SSH{Hop: Hop{Address: "a", Credential: name}}, nil); err == nil || !strings.HasPrefix(err.Error(), want) || errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := settings.Target(SSH{Hop: Hop{Address: "a"}, Hops: []Hop{{Address: "b", Credential: "x"}}}, nil); err == nil || !strings.HasPrefix(err.Error(), `hop b: credential "x" does not exist`) {
		t.Error(err)
	}
}

// What is left out comes from the environment, for the block itself alone.
func TestEnvironment(t *testing.T) {
	noEnv(t)
	for name, value := range map[string]string{envUser: "env", envPassword: "pw", envSudoPassword: "spw", envAgent: "/agent", envPrivateKey: "key", envPassphrase: "phrase"} {
		t.Setenv(name, value)
	}
	target := func(given map[string]any, name string) ssh.Credential {
		t.Helper()
		got, err := read(t, given).Target(SSH{Hop: Hop{Address: "a", Credential: name}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return got.Credential
	}
	named := map[string]any{"user": "given", "private_key_file": "f", "agent": true, "credentials": map[string]map[string]any{"x": {"user": "x"}, "y": {"user": "y", "password": "p"}}}
	for _, tt := range []struct {
		name string
		got  ssh.Credential
		want ssh.Credential
	}{
		{"nothing given", target(nil, ""), ssh.Credential{User: "env", PrivateKey: "key", Passphrase: "phrase", Password: "pw", SudoPassword: "spw", Sudo: true}},
		{"given", target(named, ""), ssh.Credential{User: "given", PrivateKeyFile: "f", Passphrase: "phrase", Password: "pw", SudoPassword: "spw", Sudo: true, Agent: true}},
		{"named, agent by default", target(named, "x"), ssh.Credential{User: "x", Agent: true, Sudo: true}},
		{"named", target(named, "y"), ssh.Credential{User: "y", Password: "p", Sudo: true}},
	} {
		if d := cmp.Diff(tt.want, tt.got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
	left, diags := ReadSSH(t.Context(), types.ObjectNull(block(t, nil).AttributeTypes(t.Context())))
	if got, err := left.Target(SSH{Hop: Hop{Address: "a"}}, nil); diags.HasError() || err != nil || got.Credential.Password != "pw" {
		t.Errorf("without a block: %v %v", diags, err)
	}
	t.Setenv(envPassphrase, "right")
	read(t, map[string]any{"private_key": privateKey(t, "right")})
}

// What is not known yet stands in the way of those alone who need it.
func TestUnknownCredentials(t *testing.T) {
	noEnv(t)
	s := read(t, map[string]any{"user": "ops", "password": unknownText, "credentials": map[string]map[string]any{
		"known": {"user": "x"}, "later": {"user": unknownText, "sudo": tftypes.NewValue(tftypes.Bool, tftypes.UnknownValue)},
	}})
	for name, want := range map[string]string{
		"":      "a: password of the provider's block ssh: known only after apply",
		"known": "",
		"later": `a: user, sudo of credential "later": known only after apply`,
	} {
		_, err := s.Target(SSH{Hop: Hop{Address: "a", Credential: name}}, nil)
		if errors.Is(err, ErrUnknown) != (want != "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := block(t, nil)
	whole, diags := ReadSSH(t.Context(), types.ObjectUnknown(o.AttributeTypes(t.Context())))
	ty := SSHBlock().Type().TerraformType(t.Context()).(tftypes.Object).AttributeTypes["credentials"]
	names := read(t, map[string]any{"user": "ops", "credentials": tftypes.NewValue(ty, tftypes.UnknownValue)})
	for _, s := range []SSHSettings{whole, names} {
		if _, err := s.Target(SSH{Hop: Hop{Address: "a", Credential: "x"}}, nil); diags.HasError() || !errors.Is(err, ErrUnknown) {
			t.Error(diags, err)
		}
	}
	if _, err := whole.Target(SSH{Hop: Hop{Address: "a", User: "x"}}, nil); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if _, err := names.Target(SSH{Hop: Hop{Address: "a"}}, nil); err != nil {
		t.Error(err)
	}
}

func TestBlockMistakes(t *testing.T) {
	noEnv(t)
	const canary = "canary-7f3a"
	locked := privateKey(t, canary)
	cut := strings.Replace(privateKey(t, ""), "\n-----END", "!\n-----END", 1)
	named := func(c map[string]any) map[string]any {
		return map[string]any{"credentials": map[string]map[string]any{"x": c}}
	}
	for _, tt := range []struct {
		name   string
		given  map[string]any
		at     string
		detail string
	}{
		{"two keys", map[string]any{"private_key": privateKey(t, ""), "private_key_file": "f"}, "ssh.private_key", "either private_key or private_key_file"},
		{"two certificates", map[string]any{"certificate": unknownText, "certificate_file": "f"}, "ssh.certificate", "either certificate or"},
		{"passphrase alone", map[string]any{"passphrase": canary}, "ssh.passphrase", "private_key_file"},
		{"sudo password without sudo", map[string]any{"sudo": false, "sudo_password": canary}, "ssh.sudo_password", "sudo = false"},
		{"user with address", map[string]any{"user": "ops@host"}, "ssh.user", "user only"},
		{"two lines", map[string]any{"password": canary + "\n"}, "ssh.password", "trimspace"},
		{"two lines for sudo", named(map[string]any{"sudo_password": canary + "\n"}), `ssh.credentials["x"].sudo_password`, "trimspace"},
		{"a path", map[string]any{"private_key": "~/.ssh/" + canary}, "ssh.private_key", "private_key_file"},
		{"words", map[string]any{"private_key": canary}, "ssh.private_key", "whole key"},
		{"damaged", map[string]any{"private_key": cut}, "ssh.private_key", "whole key"},
		{"locked", map[string]any{"private_key": locked}, "ssh.private_key", "give its passphrase"},
		{"wrong passphrase", map[string]any{"private_key": locked, "passphrase": "x"}, "ssh.private_key", "does not open"},
		{"no certificate", map[string]any{"certificate": hostKey(t)}, "ssh.certificate", "-cert.pub"},
		{"duration", map[string]any{"dial_timeout": "20"}, "ssh.dial_timeout", `"30s"`},
		{"short duration", map[string]any{"keepalive_interval": "1ms"}, "ssh.keepalive_interval", "at least 1s"},
		{"negative duration", map[string]any{"retry_timeout": "-1s"}, "ssh.retry_timeout", "at least 0s"},
		{"empty", named(map[string]any{"user": ""}), `ssh.credentials["x"].user`, "Leave user out"},
		{"no name", map[string]any{"credentials": map[string]map[string]any{"": {"user": "x"}}}, `ssh.credentials[""]`, "NAME"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var resp validator.ObjectResponse
			blockValidator{}.ValidateObject(context.Background(), validator.ObjectRequest{Path: blockPath(), ConfigValue: block(t, tt.given)}, &resp)
			if len(resp.Diagnostics) != 1 {
				t.Fatalf("got %v", resp.Diagnostics)
			}
			d := resp.Diagnostics[0].(diag.DiagnosticWithPath)
			if d.Path().String() != tt.at || !strings.Contains(d.Detail(), tt.detail) || len(strings.Fields(d.Summary())) > 8 {
				t.Errorf("at %s: %s: %s", d.Path(), d.Summary(), d.Detail())
			}
			if strings.Contains(fmt.Sprint(resp.Diagnostics), canary) {
				t.Errorf("tells a secret: %v", resp.Diagnostics)
			}
		})
	}
	for _, given := range []map[string]any{
		nil, {"private_key": unknownText, "passphrase": canary}, {"private_key": locked, "passphrase": canary},
		{"private_key": locked, "passphrase": unknownText}, {"sudo": true, "sudo_password": canary},
	} {
		if _, diags := ReadSSH(t.Context(), block(t, given)); diags != nil {
			t.Error(diags)
		}
	}
}
