package gke

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
)

// checkStep refuses a version that Google does not upgrade a control plane to in one
// go: https://cloud.google.com/kubernetes-engine/docs/how-to/upgrading-a-cluster
func (m *clusterModel) checkStep(j job, prior *clusterModel) {
	is, wanted := numbers(prior.MasterVersion.ValueString()), numbers(m.Version.ValueString())
	if !isGiven(m.Version) || len(is) < 2 || len(wanted) < 2 || is[0] != wanted[0] || wanted[1]-is[1] < 2 {
		return
	}
	j.diags.AddAttributeError(path.Root("version"), "Control plane would skip a version",
		fmt.Sprintf("It has %s, and version is %s: Google upgrades by one minor version at a time. Declare %d.%d, apply, and go on from there.", prior.MasterVersion.ValueString(), m.Version.ValueString(), is[0], is[1]+1))
}
