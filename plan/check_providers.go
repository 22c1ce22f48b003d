package plan

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
)

// checkProviders reports stored objects of providers that are not there. Whatever
// the configuration says of them, nobody can read them, so that no plan could
// tell the truth about them.
func (p *planner) checkProviders() hcl.Diagnostics {
	var diags hcl.Diagnostics
	seen := map[string]bool{} // providers, as the state writes them
	look := func(addr address.Instance, o *state.Object) {
		if o == nil || seen[o.Provider] {
			return
		}
		seen[o.Provider] = true
		source, _, ok := eval.ParseProviderAddr(o.Provider)
		if _, there := p.req.Catalogue[source]; there || !ok { // a bad address is said where it is used
			return
		}
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Provider not available",
			Detail: fmt.Sprintf("In the state, %s belongs to the provider %s, which is not built into this version of stoke, and it cannot install others yet.\n\n"+
				"\"stoke state replace-provider\" gives the provider's objects to another one, and \"stoke state rm\" forgets single ones. Nothing was changed.", addr, source),
		})
	}
	for _, r := range p.prior.Resources() {
		for _, key := range p.prior.Keys(r) {
			addr := r.Instance(key)
			look(addr, p.prior.Current(addr))
			for _, o := range p.prior.Deposed(addr) {
				look(addr, o)
			}
		}
	}
	return diags
}
