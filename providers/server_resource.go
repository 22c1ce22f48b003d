package providers

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// exchange encodes and decodes the values of one call on one type, and
// remembers the first error.
type exchange struct {
	s        *server
	rpc      string
	typeName string
	schema   *loadedSchema
	ty       cty.Type
	diags    Diagnostics
}

// begin looks the type up; typesOf picks resources or data sources.
func (s *server) begin(ctx context.Context, rpc, typeName string, typesOf func(*loadedSchema) map[string]cty.Type) *exchange {
	x := &exchange{s: s, rpc: rpc, typeName: typeName}
	x.schema, x.diags = s.load(ctx)
	if x.failed() {
		return x
	}
	ty, ok := typesOf(x.schema)[typeName]
	if !ok {
		x.diags = append(x.diags, Diagnostic{
			Summary: "Unknown type",
			Detail:  fmt.Sprintf("The provider %s has no %q.", s.options.Name, typeName),
		})
		return x
	}
	x.ty = ty
	return x
}

func resourceTypes(l *loadedSchema) map[string]cty.Type { return l.resources }
func dataTypes(l *loadedSchema) map[string]cty.Type     { return l.data }

func (x *exchange) failed() bool { return x.diags.HasErrors() }

func (x *exchange) encode(v cty.Value) *tfprotov6.DynamicValue { return x.encodeAs(v, x.ty) }

// meta encodes provider_meta, which has to be a typed null where there is none.
func (x *exchange) meta(v cty.Value) *tfprotov6.DynamicValue {
	if x.failed() {
		return nil
	}
	return x.encodeAs(v, x.schema.meta)
}

func (x *exchange) encodeAs(v cty.Value, ty cty.Type) *tfprotov6.DynamicValue {
	if x.failed() {
		return nil
	}
	out, err := encode(v, ty)
	if err != nil {
		x.diags = append(x.diags, x.s.fault(x.rpc, x.typeName, err))
	}
	return out
}

// decode unpacks the answer's value. Where there is none, or it can't be read,
// the result is instead; that is an error unless the provider reported one.
func (x *exchange) decode(v *tfprotov6.DynamicValue, instead cty.Value) cty.Value {
	if v == nil && x.failed() {
		return instead
	}
	out, err := decode(v, x.ty)
	if err != nil {
		x.diags = append(x.diags, x.s.fault(x.rpc, x.typeName, err))
		return instead
	}
	return out
}

func (x *exchange) null() cty.Value {
	if x.ty == cty.NilType {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return cty.NullVal(x.ty)
}

// send makes the call unless an error came before it; nil means that there is
// no answer.
func send[Req, Resp any](ctx context.Context, x *exchange, f func(context.Context, *Req) (*Resp, error), req *Req) *Resp {
	if x.failed() {
		return nil
	}
	resp, diags := call(ctx, x.s, x.rpc, x.typeName, f, req)
	x.diags = append(x.diags, diags...)
	return resp
}

func (x *exchange) add(in []*tfprotov6.Diagnostic) {
	x.diags = append(x.diags, diagnostics(in)...)
}

func (s *server) ValidateResource(ctx context.Context, typeName string, config cty.Value) Diagnostics {
	x := s.begin(ctx, "ValidateResourceConfig", typeName, resourceTypes)
	resp := send(ctx, x, s.rpc.ValidateResourceConfig, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: typeName, Config: x.encode(config),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if resp != nil {
		x.add(resp.Diagnostics)
	}
	return x.diags
}

func (s *server) ValidateData(ctx context.Context, typeName string, config cty.Value) Diagnostics {
	x := s.begin(ctx, "ValidateDataResourceConfig", typeName, dataTypes)
	resp := send(ctx, x, s.rpc.ValidateDataResourceConfig, &tfprotov6.ValidateDataResourceConfigRequest{
		TypeName: typeName, Config: x.encode(config),
	})
	if resp != nil {
		x.add(resp.Diagnostics)
	}
	return x.diags
}

func (s *server) Upgrade(ctx context.Context, r UpgradeRequest) UpgradeResponse {
	x := s.begin(ctx, "UpgradeResourceState", r.Type, resourceTypes)
	resp := send(ctx, x, s.rpc.UpgradeResourceState, &tfprotov6.UpgradeResourceStateRequest{
		TypeName: r.Type, Version: r.Version, RawState: &tfprotov6.RawState{JSON: r.JSON},
	})
	out := UpgradeResponse{State: x.null()}
	if resp != nil {
		x.add(resp.Diagnostics)
		out.State = x.decode(resp.UpgradedState, out.State)
	}
	out.Diagnostics = x.diags
	return out
}

// Read keeps the stored object when there are errors.
func (s *server) Read(ctx context.Context, r ReadRequest) ReadResponse {
	x := s.begin(ctx, "ReadResource", r.Type, resourceTypes)
	resp := send(ctx, x, s.rpc.ReadResource, &tfprotov6.ReadResourceRequest{
		TypeName: r.Type, CurrentState: x.encode(r.State), Private: r.Private, ProviderMeta: x.meta(r.Meta),
		ClientCapabilities: &tfprotov6.ReadResourceClientCapabilities{DeferralAllowed: r.MayDefer},
	})
	out := ReadResponse{State: r.State, Private: r.Private}
	if resp != nil {
		x.add(resp.Diagnostics)
		out.Deferred = deferral(resp.Deferred)
		if state := x.decode(resp.NewState, r.State); !x.failed() {
			out.State, out.Private = state, resp.Private
		}
	}
	out.Diagnostics = x.diags
	return out
}

func (s *server) Plan(ctx context.Context, r PlanRequest) PlanResponse {
	x := s.begin(ctx, "PlanResourceChange", r.Type, resourceTypes)
	resp := send(ctx, x, s.rpc.PlanResourceChange, &tfprotov6.PlanResourceChangeRequest{
		TypeName: r.Type, PriorState: x.encode(r.Prior), ProposedNewState: x.encode(r.Proposed),
		Config: x.encode(r.Config), PriorPrivate: r.Private, ProviderMeta: x.meta(r.Meta),
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{DeferralAllowed: r.MayDefer},
	})
	out := PlanResponse{Planned: x.null()}
	if resp != nil {
		x.add(resp.Diagnostics)
		out.Deferred = deferral(resp.Deferred)
		out.Planned = x.decode(resp.PlannedState, out.Planned)
		out.Private = resp.PlannedPrivate
		//lint:ignore SA1019 providers are advised against it, hosts have to heed it
		out.Legacy = resp.UnsafeToUseLegacyTypeSystem
		for _, p := range resp.RequiresReplace {
			path, err := pathFromProtocol(p)
			if err != nil {
				x.diags = append(x.diags, s.fault(x.rpc, x.typeName, err))
				continue
			}
			out.Replace = append(out.Replace, path)
		}
	}
	out.Diagnostics = x.diags
	return out
}

// Apply returns the prior object when the call was not made or broke off, and
// tells the two apart by Lost.
func (s *server) Apply(ctx context.Context, r ApplyRequest) ApplyResponse {
	x := s.begin(ctx, "ApplyResourceChange", r.Type, resourceTypes)
	req := &tfprotov6.ApplyResourceChangeRequest{
		TypeName: r.Type, PriorState: x.encode(r.Prior), PlannedState: x.encode(r.Planned),
		Config: x.encode(r.Config), PlannedPrivate: r.Private, ProviderMeta: x.meta(r.Meta),
	}
	out := ApplyResponse{State: r.Prior, Private: r.Private}
	if out.State == cty.NilVal || out.State.IsNull() {
		out.State = x.null()
	}
	if x.failed() {
		out.Diagnostics = x.diags
		return out
	}
	ctx, kept := forApply(ctx, r.Private)
	resp := send(ctx, x, s.rpc.ApplyResourceChange, req)
	if resp == nil {
		out.Lost, out.Diagnostics = true, x.diags
		return out
	}
	x.add(resp.Diagnostics)
	if resp.NewState != nil || !x.failed() {
		// An answer that can't be read leaves nobody any the wiser.
		state, err := decode(resp.NewState, x.ty)
		if err != nil {
			x.diags = append(x.diags, s.fault(x.rpc, x.typeName, err))
			out.Lost = true
		} else {
			out.State, out.Private = state, resp.Private
		}
	}
	//lint:ignore SA1019 providers are advised against it, hosts have to heed it
	out.Legacy = resp.UnsafeToUseLegacyTypeSystem
	out.Keep, out.Diagnostics = kept(), x.diags
	return out
}

func (s *server) Import(ctx context.Context, r ImportRequest) ImportResponse {
	x := s.begin(ctx, "ImportResourceState", r.Type, resourceTypes)
	if r.Config != cty.NilVal && !x.failed() {
		call := *CallFrom(ctx)
		call.Declared = x.encode(r.Config)
		ctx = WithCall(ctx, &call)
	}
	resp := send(ctx, x, s.rpc.ImportResourceState, &tfprotov6.ImportResourceStateRequest{
		TypeName: r.Type, ID: r.ID, ClientCapabilities: &tfprotov6.ImportResourceStateClientCapabilities{},
	})
	var out ImportResponse
	if resp != nil {
		x.add(resp.Diagnostics)
		for _, o := range resp.ImportedResources {
			ty, ok := x.schema.resources[o.TypeName]
			if !ok {
				x.diags = append(x.diags, s.fault(x.rpc, x.typeName, fmt.Errorf("imported an unknown type %q", o.TypeName)))
				continue
			}
			state, err := decode(o.State, ty)
			if err != nil {
				x.diags = append(x.diags, s.fault(x.rpc, o.TypeName, err))
				continue
			}
			if o.TypeName == r.Type {
				state = withTimeouts(state, r.Config)
			}
			out.Objects = append(out.Objects, Imported{Type: o.TypeName, State: state, Private: o.Private})
		}
	}
	out.Diagnostics = x.diags
	return out
}

func (s *server) ReadData(ctx context.Context, r ReadDataRequest) ReadDataResponse {
	x := s.begin(ctx, "ReadDataSource", r.Type, dataTypes)
	resp := send(ctx, x, s.rpc.ReadDataSource, &tfprotov6.ReadDataSourceRequest{
		TypeName: r.Type, Config: x.encode(r.Config), ProviderMeta: x.meta(r.Meta),
		ClientCapabilities: &tfprotov6.ReadDataSourceClientCapabilities{DeferralAllowed: r.MayDefer},
	})
	out := ReadDataResponse{State: x.null()}
	if resp != nil {
		x.add(resp.Diagnostics)
		out.Deferred = deferral(resp.Deferred)
		out.State = x.decode(resp.State, out.State)
	}
	out.Diagnostics = x.diags
	return out
}
