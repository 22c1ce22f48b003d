package redact

import (
	"context"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/providers"
)

// ValidateResource is that of providers.Provider.
func (p *Provider) ValidateResource(ctx context.Context, typeName string, config cty.Value, sensitive []cty.Path) providers.Diagnostics {
	c := p.call(p.resource(typeName), sensitive, config)
	return c.answered(p.server.ValidateResource(c.context(ctx), typeName, config), nil)
}

// ValidateData is that of providers.Provider.
func (p *Provider) ValidateData(ctx context.Context, typeName string, config cty.Value, sensitive []cty.Path) providers.Diagnostics {
	c := p.call(p.data(typeName), sensitive, config)
	return c.answered(p.server.ValidateData(c.context(ctx), typeName, config), nil)
}

// Upgrade is that of providers.Provider.
func (p *Provider) Upgrade(ctx context.Context, r providers.UpgradeRequest, sensitive []cty.Path) providers.UpgradeResponse {
	c := p.call(p.resource(r.Type), sensitive)
	if len(r.JSON) > 0 {
		c.json = append(c.json, r.JSON)
	}
	resp := p.server.Upgrade(c.context(ctx), r)
	resp.Diagnostics = c.answered(resp.Diagnostics, sensitive, resp.State)
	return resp
}

// addJSON takes in the texts of a stored object. Values that only an older
// schema called sensitive are known as far as the present one does, too.
func (c *call) addJSON(js []byte) {
	ty, err := ctyjson.ImpliedType(js)
	v := cty.NilVal
	if err == nil {
		v, err = ctyjson.Unmarshal(js, ty)
	}
	if err != nil {
		c.secrets.Withhold("the stored object cannot be read, and its sensitive values are not known")
		return
	}
	c.add(callValue{value: v, at: c.sensitive})
}

// Read is that of providers.Provider.
func (p *Provider) Read(ctx context.Context, r providers.ReadRequest, sensitive []cty.Path) providers.ReadResponse {
	c := p.call(p.resource(r.Type), sensitive, r.State)
	resp := p.server.Read(c.context(ctx), r)
	resp.Diagnostics = c.answered(resp.Diagnostics, sensitive, resp.State)
	return resp
}

// Plan is that of providers.Provider.
func (p *Provider) Plan(ctx context.Context, r providers.PlanRequest, sensitive []cty.Path) providers.PlanResponse {
	c := p.call(p.resource(r.Type), sensitive, r.Prior, r.Proposed, r.Config)
	resp := p.server.Plan(c.context(ctx), r)
	resp.Diagnostics = c.answered(resp.Diagnostics, sensitive, resp.Planned)
	return resp
}

// Apply is that of providers.Provider.
func (p *Provider) Apply(ctx context.Context, r providers.ApplyRequest, sensitive []cty.Path) providers.ApplyResponse {
	c := p.call(p.resource(r.Type), sensitive, r.Prior, r.Planned, r.Config)
	resp := p.server.Apply(c.context(ctx), r)
	resp.Diagnostics = c.answered(resp.Diagnostics, sensitive, resp.State)
	return resp
}

// Import is that of providers.Provider. An id is not a secret, and there is no
// other input.
func (p *Provider) Import(ctx context.Context, r providers.ImportRequest) providers.ImportResponse {
	c := p.call(p.resource(r.Type), nil)
	resp := p.server.Import(c.context(ctx), r)
	for _, o := range resp.Objects {
		if o.Type == r.Type { // others are refused
			c.noteValues(nil, o.State)
		}
	}
	resp.Diagnostics = c.answered(resp.Diagnostics, nil)
	return resp
}

// ReadData is that of providers.Provider.
func (p *Provider) ReadData(ctx context.Context, r providers.ReadDataRequest, sensitive []cty.Path) providers.ReadDataResponse {
	c := p.call(p.data(r.Type), sensitive, r.Config)
	resp := p.server.ReadData(c.context(ctx), r)
	resp.Diagnostics = c.answered(resp.Diagnostics, slices.Concat(sensitive, resp.Sensitive), resp.State)
	return resp
}
