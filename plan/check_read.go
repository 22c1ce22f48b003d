package plan

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/contract"
	"github.com/stokehq/stoke/plan/eval"
)

// checkRead holds what a provider has read against the type and reports what is
// wrong with it: whatever exists is wholly known.
func checkRead(t *eval.Task, owner *eval.Provider, addr address.Instance, ty cty.Type, read cty.Value) bool {
	errs := contract.CheckConforms(ty, read)
	if len(errs) == 0 && !read.IsWhollyKnown() {
		errs = append(errs, fmt.Errorf("it is not wholly known"))
	}
	for _, err := range errs {
		t.Report(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Provider returned invalid object",
			Detail: fmt.Sprintf("The provider %s read something invalid for %s: %s. This is a mistake in the provider; please report it to its makers.", owner.Source, addr, Describe(err)),
		})
	}
	return len(errs) == 0
}
