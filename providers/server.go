package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// terraformVersion is what providers are told to be running under: the
// version that stoke is compatible with. Some refuse to work without one.
const terraformVersion = "1.11.4"

// ServerOptions is what the protocol doesn't say about a provider.
type ServerOptions struct {
	// Name is what messages call the provider, e.g. "stokehq/train".
	Name string
	// Marks is Schema.Marks: creates of unknown outcome can be settled.
	Marks bool
	// NoEffect names the resources whose objects exist in state alone.
	NoEffect []string
	// Echoes are ResourceSchema.Echoes, by the resource's name.
	Echoes map[string]map[string][]string
}

// FromServer adapts a provider that speaks Terraform's protocol, linked in or
// behind a connection, to Provider. The server belongs to the result: one
// value per phase. If it is an io.Closer, Close closes it.
//
// The Call of the context reaches the server's methods, and with them the
// resources of terraform-plugin-framework. A panic in the server becomes a
// diagnostic, as long as it happens on the goroutine of the call.
func FromServer(s tfprotov6.ProviderServer, o ServerOptions) Provider {
	return &server{rpc: s, options: o}
}

// Linked makes a catalogue entry from the function that makes a provider's
// servers. All of its providers share one converted schema.
func Linked(newServer func() (tfprotov6.ProviderServer, error), version string, o ServerOptions) Entry {
	shared := &sharedSchema{}
	return Entry{
		Version: version,
		New: func() (Provider, error) {
			s, err := newServer()
			if err != nil {
				return nil, fmt.Errorf("start provider %s: %w", o.Name, err)
			}
			return &server{rpc: s, options: o, shared: shared}, nil
		},
	}
}

// ServerOf is the server behind a provider that FromServer or an entry of Linked
// made, nil for any other: it may offer more than the protocol has.
func ServerOf(p Provider) tfprotov6.ProviderServer {
	if s, ok := p.(*server); ok {
		return s.rpc
	}
	return nil
}

// ServerAs is ServerOf as the type that the package has which made it: what it was
// configured with is there. It is false for any other provider.
func ServerAs[T tfprotov6.ProviderServer](p Provider) (T, bool) {
	served, ok := ServerOf(p).(T)
	return served, ok
}

// sharedSchema is asked for once, by the first that needs it.
type sharedSchema struct {
	mu     sync.Mutex
	loaded *loadedSchema
}

// loadedSchema is a schema with what every call needs of it: the types of its
// values, which are not cheap to derive.
type loadedSchema struct {
	*Schema
	provider, meta  cty.Type
	resources, data map[string]cty.Type
}

// server implements Provider on top of a tfprotov6.ProviderServer.
type server struct {
	rpc     tfprotov6.ProviderServer
	options ServerOptions

	once   sync.Mutex // guards what follows
	shared *sharedSchema
}

func (s *server) Schema(ctx context.Context) (*Schema, Diagnostics) {
	loaded, diags := s.load(ctx)
	if loaded == nil {
		return nil, diags
	}
	return loaded.Schema, diags
}

// load returns the schema, and asks for it the first time. A failure is not
// kept, as it may have been the context's.
func (s *server) load(ctx context.Context) (*loadedSchema, Diagnostics) {
	s.once.Lock()
	if s.shared == nil {
		s.shared = &sharedSchema{}
	}
	shared := s.shared
	s.once.Unlock()

	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.loaded != nil {
		return shared.loaded, nil
	}
	resp, diags := call(ctx, s, "GetProviderSchema", "", s.rpc.GetProviderSchema, &tfprotov6.GetProviderSchemaRequest{})
	if diags.HasErrors() {
		return nil, diags
	}
	diags = append(diags, diagnostics(resp.Diagnostics)...)
	if diags.HasErrors() {
		return nil, diags
	}
	schema, err := schemaFromProtocol(resp, s.options)
	if err != nil {
		return nil, append(diags, s.fault("GetProviderSchema", "", err))
	}
	shared.loaded = withTypes(schema)
	return shared.loaded, diags
}

func withTypes(schema *Schema) *loadedSchema {
	l := &loadedSchema{
		Schema:    schema,
		provider:  schema.Provider.ImpliedType(),
		meta:      cty.EmptyObject,
		resources: make(map[string]cty.Type, len(schema.Resources)),
		data:      make(map[string]cty.Type, len(schema.Data)),
	}
	if schema.Meta != nil {
		l.meta = schema.Meta.ImpliedType()
	}
	for name, r := range schema.Resources {
		l.resources[name] = r.Block.ImpliedType()
	}
	for name, r := range schema.Data {
		l.data[name] = r.Block.ImpliedType()
	}
	return l
}

func (s *server) ValidateProvider(ctx context.Context, config cty.Value) Diagnostics {
	const rpc = "ValidateProviderConfig"
	schema, diags := s.load(ctx)
	if diags.HasErrors() {
		return diags
	}
	value, err := encode(config, schema.provider)
	if err != nil {
		return Diagnostics{s.fault(rpc, "", err)}
	}
	resp, diags := call(ctx, s, rpc, "", s.rpc.ValidateProviderConfig, &tfprotov6.ValidateProviderConfigRequest{Config: value})
	if diags.HasErrors() {
		return diags
	}
	return append(diags, diagnostics(resp.Diagnostics)...)
}

func (s *server) Configure(ctx context.Context, config cty.Value) Diagnostics {
	const rpc = "ConfigureProvider"
	schema, diags := s.load(ctx)
	if diags.HasErrors() {
		return diags
	}
	value, err := encode(config, schema.provider)
	if err != nil {
		return Diagnostics{s.fault(rpc, "", err)}
	}
	resp, diags := call(ctx, s, rpc, "", s.rpc.ConfigureProvider, &tfprotov6.ConfigureProviderRequest{
		TerraformVersion:   terraformVersion,
		Config:             value,
		ClientCapabilities: &tfprotov6.ConfigureProviderClientCapabilities{},
	})
	if diags.HasErrors() {
		return diags
	}
	return append(diags, diagnostics(resp.Diagnostics)...)
}

func (s *server) Stop(ctx context.Context) error {
	resp, diags := call(ctx, s, "StopProvider", "", s.rpc.StopProvider, &tfprotov6.StopProviderRequest{})
	switch {
	case diags.HasErrors():
		return fmt.Errorf("stop provider %s: %s", s.options.Name, diags[0].Detail)
	case resp.Error != "":
		return fmt.Errorf("stop provider %s: %s", s.options.Name, resp.Error)
	}
	return nil
}

func (s *server) Close() error {
	if c, ok := s.rpc.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

var errNoAnswer = errors.New("it gave no answer")

// call makes one remote call and turns what can go wrong with the call itself
// into diagnostics; with errors among them the response is nil. The context
// that the server gets ends with the call: servers keep theirs registered.
func call[Req, Resp any](ctx context.Context, s *server, rpc, typeName string, f func(context.Context, *Req) (*Resp, error), req *Req) (resp *Resp, diags Diagnostics) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			resp, diags = nil, Diagnostics{s.crash(rpc, typeName, p)}
		}
	}()
	resp, err := f(ctx, req)
	if err == nil && resp == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, Diagnostics{{
			Summary: "Provider did not answer",
			Detail:  fmt.Sprintf("The provider %s failed in %s: %s.", s.options.Name, subject(rpc, typeName), err),
		}}
	}
	return resp, nil
}

func (s *server) crash(rpc, typeName string, p any) Diagnostic {
	return Diagnostic{
		Summary: "Provider crashed",
		Detail: fmt.Sprintf("The provider %s panicked in %s: %v\n\nThis is a bug in the provider. Report it with these lines:\n\n%s",
			s.options.Name, subject(rpc, typeName), p, panicStack()),
	}
}

// panicStack is the stack from the place of the panic, as far as it helps.
func panicStack() string {
	const most = 24
	lines := strings.Split(strings.TrimSpace(string(debug.Stack())), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") && i+2 < len(lines) {
			lines = lines[i+2:]
			break
		}
	}
	return strings.Join(lines[:min(len(lines), most)], "\n")
}

// fault is the diagnostic for an answer that breaks the protocol, or a value
// that can't be sent.
func (s *server) fault(rpc, typeName string, err error) Diagnostic {
	return Diagnostic{
		Summary: "Provider broke the protocol",
		Detail:  fmt.Sprintf("The provider %s, in %s: %s. This is a bug in the provider.", s.options.Name, subject(rpc, typeName), err),
	}
}

func subject(rpc, typeName string) string {
	if typeName == "" {
		return rpc
	}
	return rpc + " of " + typeName
}
