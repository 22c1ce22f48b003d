package connect

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/url"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"golang.org/x/crypto/ssh"
)

// objectValidator validates a connection that is wholly known.
type objectValidator struct{}

func (objectValidator) Description(context.Context) string {
	return "The connection leads to a cluster and says how to get a credential."
}

func (v objectValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (objectValidator) ValidateObject(ctx context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	c, known, diags := FromObject(ctx, req.ConfigValue)
	resp.Diagnostics.Append(diags...)
	if c == nil || !known {
		return
	}
	resp.Diagnostics.Append(c.Validate(req.Path)...)
}

// Validate reports what keeps the connection from working, as far as that
// shows without dialling. Problems are reported below at.
func (c Connection) Validate(at path.Path) diag.Diagnostics {
	var diags diag.Diagnostics
	credential := at.AtName("credential")
	ways := c.Credential.ways()
	if len(ways) != 1 {
		const exactly = "Set exactly one of kubeconfig, exec, google, ssh, certificate, token_file and in_cluster"
		detail := exactly + "; none is set."
		if len(ways) > 1 {
			detail = exactly + ", not " + strings.Join(ways, " and ") + "."
		}
		diags.AddAttributeError(credential, "Not one way to a credential", detail)
	}
	validateEndpoint(&diags, at.AtName("endpoint"), c)
	validateCA(&diags, at.AtName("ca"), c.CA)
	if k := c.Credential.Kubeconfig; k != nil && k.Path == "" {
		diags.AddAttributeError(credential.AtName("kubeconfig").AtName("path"), "Kubeconfig path missing", `Give the path of the file, such as "~/.kube/config".`)
	}
	if e := c.Credential.Exec; e != nil && e.Command == "" {
		diags.AddAttributeError(credential.AtName("exec").AtName("command"), "Plugin command missing", "Give the program that hands out the credential.")
	}
	if k := c.Credential.Certificate; k != nil {
		for name, file := range map[string]string{"certificate_file": k.CertificateFile, "key_file": k.KeyFile} {
			if file == "" {
				diags.AddAttributeError(credential.AtName("certificate").AtName(name), "File missing", "A client certificate is two files: certificate_file and key_file.")
			}
		}
	}
	if f := c.Credential.TokenFile; f != nil && f.Path == "" {
		diags.AddAttributeError(credential.AtName("token_file").AtName("path"), "Token file missing", "Give the path of the file that holds the token.")
	}
	if s := c.Credential.SSH; s != nil {
		diags.Append(s.Validate(credential.AtName("ssh"))...)
	}
	return diags
}

// ways names the credentials that are set.
func (c Credential) ways() []string {
	var set []string
	for _, way := range []struct {
		name string
		set  bool
	}{{"kubeconfig", c.Kubeconfig != nil}, {"exec", c.Exec != nil}, {"google", c.Google != nil}, {"ssh", c.SSH != nil},
		{"certificate", c.Certificate != nil}, {"token_file", c.TokenFile != nil}, {"in_cluster", c.InCluster != nil}} {
		if way.set {
			set = append(set, way.name)
		}
	}
	return set
}

func validateEndpoint(diags *diag.Diagnostics, at path.Path, c Connection) {
	if c.Endpoint == "" {
		if c.Credential.Kubeconfig == nil && c.Credential.InCluster == nil {
			diags.AddAttributeError(at, "Endpoint missing", `Give the URL of the API server, such as "https://10.0.0.1:6443". Only a kubeconfig and in_cluster bring their own.`)
		}
		return
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Hostname() == "":
		diags.AddAttributeError(at, "Invalid endpoint", `Give a URL such as "https://10.0.0.1:6443".`)
	case u.Scheme != "https":
		diags.AddAttributeError(at, "Endpoint is not https", "An API server is only talked to over https.")
	case u.User != nil:
		diags.AddAttributeError(at, "Endpoint holds a login", "Take it out; a credential is never part of the endpoint.")
	case u.RawQuery != "" || u.Fragment != "":
		diags.AddAttributeError(at, "Invalid endpoint", "Leave out what follows the path.")
	}
}

func validateCA(diags *diag.Diagnostics, at path.Path, ca string) {
	rest, certificates := []byte(ca), 0
	for len(strings.TrimSpace(string(rest))) > 0 {
		block, after := pem.Decode(rest)
		if block == nil {
			detail := `Give certificates in PEM, "-----BEGIN CERTIFICATE-----" and so on.`
			if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(ca)); err == nil && strings.Contains(string(plain), "BEGIN CERTIFICATE") {
				detail = "It is encoded in base64: wrap it in base64decode(…)."
			}
			diags.AddAttributeError(at, "Certificate authority unreadable", detail)
			return
		}
		if strings.Contains(block.Type, "PRIVATE KEY") {
			diags.AddAttributeError(at, "Private key in the connection", "A connection is stored in the state and must "+
				"hold no secrets. Give the certificate only.")
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			diags.AddAttributeError(at, "Certificate authority unreadable", fmt.Sprintf("Certificate %d: %s.", certificates+1, err))
			return
		}
		certificates++
		rest = after
	}
}

// Validate reports what keeps the machine from being reached.
func (s SSH) Validate(at path.Path) diag.Diagnostics {
	var diags diag.Diagnostics
	s.validate(&diags, at)
	for i, h := range s.Hops {
		h.validate(&diags, at.AtName("hops").AtListIndex(i))
	}
	return diags
}

func (h Hop) validate(diags *diag.Diagnostics, at path.Path) {
	switch {
	case h.Address == "":
		diags.AddAttributeError(at.AtName("address"), "Address missing", "Give the machine's host name or IP address.")
	case strings.ContainsAny(h.Address, "/@ \t\n") || strings.Count(h.Address, ":") == 1:
		diags.AddAttributeError(at.AtName("address"), "Invalid address", "Give a host name or IP address only; user and port have their own arguments.")
	}
	if h.Port < 0 || h.Port > 65535 {
		diags.AddAttributeError(at.AtName("port"), "Invalid port", fmt.Sprintf("Ports lie between 1 and 65535, and this is %d.", h.Port))
	}
	validateHostKey(diags, at.AtName("host_key"), h.HostKey)
}

func validateHostKey(diags *diag.Diagnostics, at path.Path, key string) {
	const advice = `On the machine it is in /etc/ssh/ssh_host_ed25519_key.pub: "ssh-ed25519 AAAA…".`
	if key == "" {
		diags.AddAttributeError(at, "Host key missing", "An unknown machine is never trusted silently. "+advice)
		return
	}
	if strings.Contains(key, "PRIVATE KEY") {
		diags.AddAttributeError(at, "Private key in the connection", "The host key is the machine's public key. "+advice)
		return
	}
	public, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(key))
	if err == nil && public != nil && len(options) == 0 && len(strings.TrimSpace(string(rest))) == 0 {
		return
	}
	what := "This is no public key. "
	switch fields := strings.Fields(key); {
	case strings.HasPrefix(key, "SHA256:") || strings.HasPrefix(key, "MD5:"):
		what = "This is a fingerprint, and the key itself is needed. "
	case len(fields) > 2 && strings.HasPrefix(fields[1], "ssh-"):
		what = "This is a line of a known_hosts file: leave the address out. "
	case len(strings.TrimSpace(string(rest))) > 0:
		what = "These are several lines: one key is needed. "
	case len(fields) > 1:
		what = "This public key is damaged or cut off. "
	}
	diags.AddAttributeError(at, "Invalid host key", what+advice)
}
