package connect

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"
)

// Connection leads to a Kubernetes cluster.
type Connection struct {
	// ID is the UID of the namespace kube-system. Two connections with one ID
	// lead to the same cluster, whatever else differs. "" when it isn't known
	// to whoever wrote the connection.
	ID string
	// Endpoint is the API server, such as "https://10.0.0.1:6443". "" with a
	// kubeconfig, which has its own.
	Endpoint string
	// CA is the certificate authority of the API server, in PEM. "" with a
	// kubeconfig, or when the system's authorities are meant.
	CA         string
	Credential Credential
}

// Credential is one of these ways to get a credential; the others are nil.
type Credential struct {
	Kubeconfig  *Kubeconfig
	Exec        *Exec
	Google      *Google
	SSH         *SSH
	Certificate *Certificate
	TokenFile   *TokenFile
	InCluster   *InCluster
}

// Kubeconfig takes the credential from a file.
type Kubeconfig struct {
	Path    string // "~/" is the home directory
	Context string // "" for the file's current context
}

// Exec asks a credential plugin. The plugin gets the environment that stoke
// runs in; there is none to be written here, as it would end up in the state.
type Exec struct {
	Command    string
	Args       []string
	APIVersion string // "" for client.authentication.k8s.io/v1
}

// Certificate logs in by a client certificate.
type Certificate struct {
	CertificateFile string // PEM
	KeyFile         string // PEM
}

// TokenFile logs in by a bearer token, which is read anew when it changes.
type TokenFile struct{ Path string }

// InCluster is the service account of the pod that stoke runs in.
type InCluster struct{}

// Google asks Google for a token.
type Google struct {
	CredentialsFile string // "" for the application default credentials
	Impersonate     string // service account to act as; "" for none
}

// SSH gets a short-lived client certificate on the control plane, and dials
// the API server from there.
type SSH struct {
	Hop
	Hops []Hop `json:"hops,omitempty"` // the machines on the way, nearest first
}

// Hop is a machine that SSH goes to.
type Hop struct {
	Address string `json:"address"`        // host name or IP address
	Port    int    `json:"port,omitempty"` // 0 for 22
	User    string `json:"user,omitempty"` // "" for the user of the credential
	HostKey string `json:"host_key"`       // "ssh-ed25519 AAAA…"; always required
	// Credential names one of those in the provider's block ssh; "" is the block
	// itself. The block is SSHBlock.
	Credential string `json:"credential,omitempty"`
}

// Type is the type of a connection's value.
var Type = cty.Object(map[string]cty.Type{
	"id":       cty.String,
	"endpoint": cty.String,
	"ca":       cty.String,
	"credential": cty.Object(map[string]cty.Type{
		"kubeconfig":  cty.Object(map[string]cty.Type{"path": cty.String, "context": cty.String}),
		"exec":        cty.Object(map[string]cty.Type{"command": cty.String, "args": cty.List(cty.String), "api_version": cty.String}),
		"google":      cty.Object(map[string]cty.Type{"credentials_file": cty.String, "impersonate_service_account": cty.String}),
		"ssh":         SSHType,
		"certificate": cty.Object(map[string]cty.Type{"certificate_file": cty.String, "key_file": cty.String}),
		"token_file":  cty.Object(map[string]cty.Type{"path": cty.String}),
		"in_cluster":  cty.EmptyObject,
	}),
})

// SSHType is the type of the value that leads to one machine.
var SSHType = cty.Object(map[string]cty.Type{
	"address": cty.String, "port": cty.Number, "user": cty.String, "host_key": cty.String, "credential": cty.String,
	"hops": cty.List(cty.Object(map[string]cty.Type{
		"address": cty.String, "port": cty.Number, "user": cty.String, "host_key": cty.String, "credential": cty.String,
	})),
})

// AttributeTypes is the type of a connection in the framework's terms.
func AttributeTypes() map[string]attr.Type {
	return Argument("").GetType().(types.ObjectType).AttrTypes
}

// FromValue reads a connection from its value, which has to be known and not
// null. Nothing is validated.
func FromValue(v cty.Value) (Connection, error) {
	if v.IsNull() || !v.IsWhollyKnown() {
		return Connection{}, fmt.Errorf("read connection: it is not known")
	}
	var w wire
	if err := gocty.FromCtyValue(v, &w); err != nil {
		return Connection{}, fmt.Errorf("read connection: %w", err)
	}
	return w.connection(), nil
}

// Value is the connection's value, of type Type.
func (c Connection) Value() (cty.Value, error) {
	v, err := gocty.ToCtyValue(wireOf(c), Type)
	if err != nil {
		return cty.NilVal, fmt.Errorf("write connection: %w", err)
	}
	return v, nil
}

// FromObject reads a connection from an argument. known is false when any part
// of it isn't known yet: then whatever depends on it has to wait, and must not
// guess. A nil connection that is known is one that was left out.
func FromObject(ctx context.Context, o types.Object) (c *Connection, known bool, diags diag.Diagnostics) {
	if o.IsNull() {
		return nil, true, nil
	}
	if v, err := o.ToTerraformValue(ctx); err != nil || !v.IsFullyKnown() {
		return nil, false, nil
	}
	var w wire
	diags = o.As(ctx, &w, basetypes.ObjectAsOptions{})
	if diags.HasError() {
		return nil, true, diags
	}
	conn := w.connection()
	return &conn, true, diags
}

// StoredConnection returns the connection in an object that a provider has written; known is false while
// a part of it is unknown. The object has the type of a connection, so a failed conversion is a mistake
// of the provider.
func StoredConnection(ctx context.Context, o types.Object) (c *Connection, known bool) {
	c, known, diags := FromObject(ctx, o)
	return MustConvert(c, diags), known
}

// MustConvert returns a value of the framework that was converted. The types of models and schemas are
// fixed, so a conversion that fails is a mistake of the provider: it ends a test, and the server of the
// provider reports the crash with its place.
func MustConvert[V any](v V, diags diag.Diagnostics) V {
	if diags.HasError() {
		panic(fmt.Sprintf("conversion of %T: %v", v, diags))
	}
	return v
}

// Object is the connection as the framework stores it.
func (c Connection) Object(ctx context.Context) (types.Object, diag.Diagnostics) {
	return types.ObjectValueFrom(ctx, AttributeTypes(), wireOf(c))
}
