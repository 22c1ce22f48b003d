package redact

import (
	"context"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// Reviewed is an instance that a provider's review sees, and where it is
// sensitive beside what its schema says.
type Reviewed struct {
	providers.PlannedInstance
	Schema    *providers.ResourceSchema
	Sensitive []cty.Path
}

// Review has a provider review its planned instances. What it says lacks what
// is sensitive in any of them, and in the configurations of the provider.
func Review(ctx context.Context, entry providers.Entry, planned []Reviewed, configured []*Provider) ([]providers.Note, providers.Diagnostics) {
	list, known := make([]providers.PlannedInstance, len(planned)), make(map[string]bool, len(planned))
	for i, r := range planned {
		list[i], known[r.Address] = r.PlannedInstance, true
	}
	notes, diags := entry.Review(ctx, list)
	if len(notes)+len(diags) == 0 {
		return nil, nil
	}
	// What one of them says may be about all of the others.
	c, places := &call{p: &Provider{}, secrets: &Secrets{}}, Places{}
	for _, r := range planned {
		at := everywhere
		if r.Schema != nil {
			at = places.Of(r.Schema.Block, r.Sensitive)
		}
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
			cleaned[i].Address = d.Address // by which its place is found
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
