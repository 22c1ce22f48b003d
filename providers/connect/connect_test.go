package connect

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/ssh"
)

func hostKey(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func samples(t *testing.T) map[string]Connection {
	ca, key := authority(t), hostKey(t)
	api := "https://10.0.0.1:6443"
	return map[string]Connection{
		"kubeconfig":  {Credential: Credential{Kubeconfig: &Kubeconfig{Path: "~/.kube/config", Context: "lab"}}},
		"exec":        {ID: "1", Endpoint: api, CA: ca, Credential: Credential{Exec: &Exec{Command: "aws", Args: []string{"eks", "get-token"}, APIVersion: "v1"}}},
		"certificate": {Endpoint: api, CA: ca, Credential: Credential{Certificate: &Certificate{CertificateFile: "c.pem", KeyFile: "k.pem"}}},
		"token file":  {Endpoint: api, Credential: Credential{TokenFile: &TokenFile{Path: "token"}}},
		"in cluster":  {Credential: Credential{InCluster: &InCluster{}}},
		"google":      {ID: "1", Endpoint: "https://34.1.2.3", CA: ca + ca, Credential: Credential{Google: &Google{}}},
		"ssh": {ID: "1", Endpoint: api, CA: ca, Credential: Credential{SSH: &SSH{
			Hop:  Hop{Address: "fd00::1", Port: 2222, User: "ops", HostKey: key},
			Hops: []Hop{{Address: "bastion.example.com", HostKey: key, Credential: "jump"}},
		}}},
	}
}

// What is written as a value or as an object reads back as it was.
func TestRoundTrips(t *testing.T) {
	for name, c := range samples(t) {
		t.Run(name, func(t *testing.T) {
			v, err := c.Value()
			if err != nil || !v.Type().Equals(Type) {
				t.Fatalf("%#v %v", v, err)
			}
			back, err := FromValue(v)
			if d := cmp.Diff(c, back); err != nil || d != "" {
				t.Errorf("value: %v %s", err, d)
			}
			o, diags := c.Object(t.Context())
			if diags.HasError() {
				t.Fatal(diags)
			}
			read, known, diags := FromObject(t.Context(), o)
			if diags.HasError() || !known {
				t.Fatal(known, diags)
			}
			if d := cmp.Diff(&c, read); d != "" {
				t.Errorf("object: %s", d)
			}
			if diags := c.Validate(path.Root("cluster")); diags != nil {
				t.Errorf("validate: %v", diags)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	ctx := t.Context()
	if c, known, diags := FromObject(ctx, types.ObjectNull(AttributeTypes())); c != nil || !known || diags != nil {
		t.Errorf("null: %v %v %v", c, known, diags)
	}
	unknown := types.ObjectUnknown(AttributeTypes())
	if c, known, _ := FromObject(ctx, unknown); c != nil || known {
		t.Errorf("unknown: %v %v", c, known)
	}
	partly := withID(t, types.StringUnknown())
	if c, known, _ := FromObject(ctx, partly); c != nil || known {
		t.Errorf("partly unknown: %v %v", c, known)
	}
	for _, o := range []types.Object{unknown, partly, types.ObjectNull(AttributeTypes())} {
		var resp validator.ObjectResponse
		objectValidator{}.ValidateObject(ctx, validator.ObjectRequest{Path: path.Root("cluster"), ConfigValue: o}, &resp)
		if resp.Diagnostics != nil {
			t.Errorf("%s: %v", o, resp.Diagnostics)
		}
	}
	for _, v := range []cty.Value{cty.NullVal(Type), cty.UnknownVal(Type)} {
		if _, err := FromValue(v); err == nil {
			t.Errorf("%#v: no error", v)
		}
	}
}

func withID(t *testing.T, id types.String) types.Object {
	t.Helper()
	o, diags := samples(t)["exec"].Object(t.Context())
	if diags.HasError() {
		t.Fatal(diags)
	}
	attributes := o.Attributes()
	attributes["id"] = id
	return types.ObjectValueMust(AttributeTypes(), attributes)
}

func TestOtherCluster(t *testing.T) {
	a, b := withID(t, types.StringValue("a")), withID(t, types.StringValue("b"))
	none, unknown := types.ObjectNull(AttributeTypes()), types.ObjectUnknown(AttributeTypes())
	anonymous, later := withID(t, types.StringNull()), withID(t, types.StringUnknown())
	for _, tt := range []struct {
		name          string
		before, after types.Object
		want          bool
	}{
		{"same id, other certificate", a, withID(t, types.StringValue("a")), false},
		{"other id", a, b, true},
		{"unknown", a, unknown, false},
		{"unknown id", a, later, false},
		{"id not given", a, anonymous, false},
		{"id given now", anonymous, a, false},
		{"into a cluster", none, a, true},
		{"out of a cluster", a, none, true},
		{"perhaps into a cluster", none, unknown, false},
		{"none", none, none, false},
	} {
		if got := otherCluster(tt.before, tt.after); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestValidate(t *testing.T) {
	ca, key := authority(t), hostKey(t)
	edit := func(name string, f func(*Connection)) Connection {
		c := samples(t)[name]
		f(&c)
		return c
	}
	for _, tt := range []struct {
		name   string
		c      Connection
		at     string
		detail string
	}{
		{"no credential", Connection{Endpoint: "https://x"}, "c.credential", "none is set"},
		{"two credentials", edit("exec", func(c *Connection) { c.Credential.Google = &Google{} }), "c.credential", "not exec and google"},
		{"no endpoint", edit("exec", func(c *Connection) { c.Endpoint = "" }), "c.endpoint", "Only a kubeconfig"},
		{"http", edit("exec", func(c *Connection) { c.Endpoint = "http://10.0.0.1" }), "c.endpoint", "over https"},
		{"bare address", edit("exec", func(c *Connection) { c.Endpoint = "10.0.0.1" }), "c.endpoint", "Give a URL"},
		{"bare port", edit("exec", func(c *Connection) { c.Endpoint = "https://:6443" }), "c.endpoint", "Give a URL"},
		{"no URL", edit("exec", func(c *Connection) { c.Endpoint = "https://%zz" }), "c.endpoint", "Give a URL"},
		{"login", edit("exec", func(c *Connection) { c.Endpoint = "https://u:p@10.0.0.1" }), "c.endpoint", "never part"},
		{"query", edit("exec", func(c *Connection) { c.Endpoint = "https://10.0.0.1?x=1" }), "c.endpoint", "what follows"},
		{"CA in base64", edit("exec", func(c *Connection) { c.CA = base64.StdEncoding.EncodeToString([]byte(ca)) }), "c.ca", "base64decode"},
		{"CA of words", edit("exec", func(c *Connection) { c.CA = "trust me" }), "c.ca", "in PEM"},
		{"CA cut short", edit("exec", func(c *Connection) { c.CA = ca + ca[:80] }), "c.ca", "in PEM"},
		{"no certificate", edit("exec", func(c *Connection) {
			c.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
		}), "c.ca", "Certificate 1"},
		{"a key", edit("exec", func(c *Connection) {
			c.CA = string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("x")}))
		}), "c.ca", "no secrets"},
		{"no path", edit("kubeconfig", func(c *Connection) { c.Credential.Kubeconfig.Path = "" }), "c.credential.kubeconfig.path", "path of the file"},
		{"no command", edit("exec", func(c *Connection) { c.Credential.Exec.Command = "" }), "c.credential.exec.command", "program"},
		{"no address", edit("ssh", func(c *Connection) { c.Credential.SSH.Address = "" }), "c.credential.ssh.address", "host name"},
		{"user in address", edit("ssh", func(c *Connection) { c.Credential.SSH.Address = "ops@host" }), "c.credential.ssh.address", "own arguments"},
		{"port in address", edit("ssh", func(c *Connection) { c.Credential.SSH.Address = "host:22" }), "c.credential.ssh.address", "own arguments"},
		{"port", edit("ssh", func(c *Connection) { c.Credential.SSH.Port = 70000 }), "c.credential.ssh.port", "70000"},
		{"no host key", edit("ssh", func(c *Connection) { c.Credential.SSH.HostKey = "" }), "c.credential.ssh.host_key", "never trusted"},
		{"host key with address", edit("ssh", func(c *Connection) { c.Credential.SSH.HostKey = "10.0.0.1 " + key }), "c.credential.ssh.host_key", "leave the address out"},
		{"two host keys", edit("ssh", func(c *Connection) { c.Credential.SSH.HostKey = key + "\n" + key }), "c.credential.ssh.host_key", "several lines"},
		{"private host key", edit("ssh", func(c *Connection) { c.Credential.SSH.HostKey = "-----BEGIN OPENSSH PRIVATE KEY-----" }), "c.credential.ssh.host_key", "public key"},
		{"hop", edit("ssh", func(c *Connection) { c.Credential.SSH.Hops[0].HostKey = "x" }), "c.credential.ssh.hops[0].host_key", "no public key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			diags := tt.c.Validate(path.Root("c"))
			if len(diags) != 1 {
				t.Fatalf("got %v", diags)
			}
			at := diags[0].(diag.DiagnosticWithPath).Path().String()
			if at != tt.at || !strings.Contains(diags[0].Detail(), tt.detail) {
				t.Errorf("at %s: %s", at, diags[0].Detail())
			}
			if words := len(strings.Fields(diags[0].Summary())); words > 8 {
				t.Errorf("summary of %d words", words)
			}
		})
	}
}

// The framework's schema and the type in cty are the same type.
func TestOneType(t *testing.T) {
	for name, a := range map[string]schema.SingleNestedAttribute{"argument": Argument("x"), "result": Result("x")} {
		compareTypes(t, name, a.GetType().TerraformType(t.Context()), Type)
		s := schema.Schema{Attributes: map[string]schema.Attribute{"cluster": a}}
		if diags := s.ValidateImplementation(t.Context()); diags.HasError() {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

func compareTypes(t *testing.T, at string, tf tftypes.Type, ty cty.Type) {
	t.Helper()
	switch tf := tf.(type) {
	case tftypes.Object:
		if !ty.IsObjectType() || len(ty.AttributeTypes()) != len(tf.AttributeTypes) {
			t.Errorf("%s: %s and %#v", at, tf, ty)
			return
		}
		for name, el := range tf.AttributeTypes {
			if !ty.HasAttribute(name) {
				t.Errorf("%s.%s: missing", at, name)
				continue
			}
			compareTypes(t, at+"."+name, el, ty.AttributeType(name))
		}
	case tftypes.List:
		if !ty.IsListType() {
			t.Errorf("%s: %s and %#v", at, tf, ty)
			return
		}
		compareTypes(t, at+"[]", tf.ElementType, ty.ElementType())
	default:
		if same := tf.Is(tftypes.String) && ty == cty.String || tf.Is(tftypes.Number) && ty == cty.Number; !same {
			t.Errorf("%s: %s and %#v", at, tf, ty)
		}
	}
}
