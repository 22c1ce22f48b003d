package connect

import (
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	gossh "golang.org/x/crypto/ssh"
)

// read turns a credential into what the connection needs, and says what keeps
// it from being used. The passphrase is the model's or the environment's.
// Messages show nothing of what is secret.
func (m credentialModel) read(diags *diag.Diagnostics, at path.Path, passphrase types.String) login {
	var l login
	for _, a := range []struct {
		name string
		v    types.String
		to   *string
	}{
		{"user", m.User, &l.User},
		{"private_key_file", m.PrivateKeyFile, &l.PrivateKeyFile}, {"private_key", m.PrivateKey, &l.PrivateKey},
		{"passphrase", m.Passphrase, &l.Passphrase},
		{"certificate", m.Certificate, &l.Certificate}, {"certificate_file", m.CertificateFile, &l.CertificateFile},
		{"password", m.Password, &l.Password}, {"sudo_password", m.SudoPassword, &l.SudoPassword},
	} {
		switch {
		case a.v.IsUnknown():
			l.unknown = append(l.unknown, a.name)
		case !a.v.IsNull() && a.v.ValueString() == "":
			diags.AddAttributeError(at.AtName(a.name), "Empty value", "Leave "+a.name+" out, or set it to null, if the machine needs none.")
		default:
			*a.to = a.v.ValueString()
		}
	}
	l.sudo, l.agent = readBool(&l, "sudo", m.Sudo), readBool(&l, "agent", m.Agent)
	m.validate(diags, at)
	validatePrivateKey(diags, at.AtName("private_key"), m.PrivateKey, passphrase)
	return l
}

func readBool(l *login, name string, v types.Bool) *bool {
	if v.IsUnknown() {
		l.unknown = append(l.unknown, name)
	}
	if v.IsUnknown() || v.IsNull() {
		return nil
	}
	b := v.ValueBool()
	return &b
}

// validate looks only at what is known; the rest is looked at once it is.
func (m credentialModel) validate(diags *diag.Diagnostics, at path.Path) {
	given := func(v attr.Value) bool { return !v.IsNull() }
	for _, pair := range [][2]string{{"private_key", "private_key_file"}, {"certificate", "certificate_file"}} {
		values := map[string]types.String{"private_key": m.PrivateKey, "private_key_file": m.PrivateKeyFile, "certificate": m.Certificate, "certificate_file": m.CertificateFile}
		if given(values[pair[0]]) && given(values[pair[1]]) {
			diags.AddAttributeError(at.AtName(pair[0]), "Given twice", fmt.Sprintf("Give either %s or %s.", pair[0], pair[1]))
		}
	}
	if given(m.Passphrase) && !given(m.PrivateKey) && !given(m.PrivateKeyFile) {
		diags.AddAttributeError(at.AtName("passphrase"), "Passphrase without a key", "Name the key that it is for, by private_key_file or private_key.")
	}
	if given(m.SudoPassword) && given(m.Sudo) && !m.Sudo.IsUnknown() && !m.Sudo.ValueBool() {
		diags.AddAttributeError(at.AtName("sudo_password"), "Password for sudo, without sudo", "Leave sudo_password out, or take sudo = false away.")
	}
	if u := m.User.ValueString(); strings.ContainsAny(u, "@: \t\n\x00") {
		diags.AddAttributeError(at.AtName("user"), "Invalid user", "Give the name of the user only; the machine has its own arguments.")
	}
	for _, secret := range []struct {
		name string
		v    types.String
	}{{"password", m.Password}, {"sudo_password", m.SudoPassword}} {
		if strings.ContainsAny(secret.v.ValueString(), "\n\r\x00") {
			diags.AddAttributeError(at.AtName(secret.name), "Password of several lines", "A password is one line; if it "+
				"is read from a file, wrap it in trimspace(…).")
		}
	}
	if text := m.Certificate.ValueString(); text != "" {
		key, _, _, _, err := gossh.ParseAuthorizedKey([]byte(text))
		if _, ok := key.(*gossh.Certificate); err != nil || !ok {
			diags.AddAttributeError(at.AtName("certificate"), "Invalid certificate",
				`Give the line of a -cert.pub file, such as "ssh-ed25519-cert-v01@openssh.com AAAA…"; a path goes into certificate_file.`)
		}
	}
}

func validatePrivateKey(diags *diag.Diagnostics, at path.Path, key, passphrase types.String) {
	text := key.ValueString()
	if text == "" {
		return
	}
	if block, _ := pem.Decode([]byte(text)); block == nil {
		detail := `Give the whole key, from "-----BEGIN" to "-----END …-----", each on a line of its own.`
		if !strings.Contains(text, "\n") && strings.ContainsAny(text, "/~") {
			detail = "This looks like a path: give a file as private_key_file."
		}
		diags.AddAttributeError(at, "Unreadable private key", detail)
		return
	}
	_, err := gossh.ParseRawPrivateKey([]byte(text))
	var missing *gossh.PassphraseMissingError
	switch encrypted := errors.As(err, &missing); {
	case encrypted && passphrase.IsNull():
		diags.AddAttributeError(at, "Private key without passphrase", "The key is encrypted: give its passphrase, or use the agent.")
	case encrypted && !passphrase.IsUnknown():
		if _, err := gossh.ParseRawPrivateKeyWithPassphrase([]byte(text), []byte(passphrase.ValueString())); err != nil {
			diags.AddAttributeError(at, "Wrong passphrase", "The passphrase does not open the private key.")
		}
	case err != nil && !encrypted:
		diags.AddAttributeError(at, "Unreadable private key", fmt.Sprintf("It is not a key in OpenSSH's format or PEM: %s.", err))
	}
}
