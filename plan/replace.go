package plan

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
)

// unreplaced warns of a resource whose instances have keys, and which -replace
// names without one.
func (p *planner) unreplaced(t *eval.Task, instances []*eval.Instance) {
	if len(p.replace) == 0 || len(instances) == 0 || instances[0].Addr.Key.IsZero() {
		return
	}
	bare := instances[0].Addr.Resource.Instance(address.Key{})
	if !p.replace[bare] {
		return
	}
	t.Report(&hcl.Diagnostic{
		Severity: hcl.DiagWarning, Summary: "Nothing replaced",
		Detail: fmt.Sprintf("-replace=%s names no object, because the resource's objects have keys. To replace one of them, name it with its key, such as %s.", bare, instances[0].Addr),
	})
}
