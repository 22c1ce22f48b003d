package redact

import (
	"context"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// Reviewed is an instance for a provider's review, with its sensitive places in
// addition to the schema.
type Reviewed struct {
	providers.PlannedInstance
	Schema    *providers.ResourceSchema
	Sensitive []cty.Path
}

// sensitivePaths is where the instance is sensitive.
func (r Reviewed) sensitivePaths(places Places) []cty.Path {
	if r.Schema == nil {
		return everywhere
	}
	return places.SecretPaths(r.Schema.Block, r.Sensitive)
}

// Review calls the review of a source's provider with the planned instances:
// the sensitive values of other providers are withheld. Its messages lack the
// sensitive values of all instances and of its own configurations. others are
// what providers make that are not linked in.
func Review(ctx context.Context, source string, entry providers.Entry, planned []Reviewed, others []string, configured []*Provider) ([]providers.Note, providers.Diagnostics) {
	list, known, places := make([]providers.PlannedInstance, len(planned)), make(map[string]bool, len(planned)), Places{}
	for i, r := range planned {
		list[i], known[r.Address] = r.PlannedInstance, true
		if r.Source != source {
			at := r.sensitivePaths(places)
			list[i].Prior, list[i].Planned = withhold(r.Prior, at), withhold(r.Planned, at)
		}
	}
	own := make([]providers.Provider, len(configured))
	for i, p := range configured {
		own[i] = p.server
	}
	notes, diags := entry.Review(ctx, providers.Review{Planned: list, Others: others, Configured: own})
	if len(notes)+len(diags) == 0 {
		return nil, nil
	}
	// A message may be about any of the instances.
	c := &call{p: &Provider{}, secrets: &Secrets{}}
	for _, r := range planned {
		at := r.sensitivePaths(places)
		c.secrets.AddAt(r.Prior, at)
		c.secrets.AddAt(r.Planned, at)
	}
	for _, p := range configured {
		p.mu.Lock()
		config := p.config
		p.mu.Unlock()
		for _, one := range config {
			c.secrets.AddAt(one.value, one.at)
		}
	}
	cleaned := c.diagnostics(diags)
	for i, d := range diags {
		if known[d.Address] {
			cleaned[i].Address = d.Address // identifies its place
		}
	}
	var out []providers.Note
	for _, n := range notes {
		address := ""
		if known[n.Address] {
			address = n.Address
		}
		out = append(out, c.note(n, address))
	}
	return out, cleaned
}

// withhold makes the values at paths unknown. A path that leads nowhere in the
// value withholds nothing.
func withhold(v cty.Value, paths []cty.Path) cty.Value {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() || len(paths) == 0 {
		return v
	}
	out, err := cty.Transform(v, func(at cty.Path, v cty.Value) (cty.Value, error) {
		for _, p := range paths {
			if at.Equals(p) {
				return cty.UnknownVal(v.Type()), nil
			}
		}
		return v, nil
	})
	if err != nil {
		return cty.UnknownVal(v.Type())
	}
	return out
}
