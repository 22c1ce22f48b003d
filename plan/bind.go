package plan

import (
	"context"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
)

// Bind gives the changes of a decoded plan the schemas that they are of.
func (p *Plan) Bind(ctx context.Context, catalogue providers.Catalogue) hcl.Diagnostics {
	schemas := map[string]*providers.Schema{}
	var diags hcl.Diagnostics
	for _, list := range [][]*Change{p.Changes, p.Drift, p.Refreshed, p.deferredChanges()} {
		for _, c := range list {
			source, _, ok := eval.ParseProviderAddr(c.Provider)
			entry, known := catalogue[source]
			if !ok || !known {
				return append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Provider not available", Detail: fmt.Sprintf("The plan needs %s for %s.", c.Provider, c.Addr)})
			}
			if schemas[source] == nil {
				raw, err := entry.New()
				if err != nil {
					return append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Failed to start provider", Detail: source + ": " + err.Error() + "."})
				}
				server := redact.NewProvider(raw, nil)
				schema, more := server.Schema(ctx)
				server.Close()
				diags = append(diags, eval.FromProvider(more, nil, hcl.Range{}, source)...)
				if more.HasErrors() {
					return diags
				}
				schemas[source] = schema
			}
			all := schemas[source].Resources
			if c.Addr.Mode == address.Data {
				all = schemas[source].Data
			}
			c.Schema = all[c.Addr.Type]
			if c.Schema == nil && c.Before.Type() != cty.DynamicPseudoType {
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Resource type not supported", Detail: fmt.Sprintf("The plan holds %s, but its provider knows no such type.", c.Addr)})
			}
		}
	}
	return diags
}
