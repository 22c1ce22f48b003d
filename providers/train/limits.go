package train

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	at "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stokehq/stoke/providers/train/launch"
)

// limits are what no experiment may go beyond; nil and "" are none.
type limits struct {
	workers, gpus, bandwidth *int
	cpu                      string
}

func limitsAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Optional:    true,
		Description: "Limits of every experiment: a plan that exceeds one is rejected.",
		Attributes: map[string]schema.Attribute{
			"workers":        schema.NumberAttribute{Optional: true, Description: "Largest number of workers of an experiment."},
			"cpu":            schema.StringAttribute{Optional: true, Description: "Most cores of a pod, such as \"4\" or \"500m\". On a cluster, workers have to say then how many they get."},
			"gpus":           schema.NumberAttribute{Optional: true, Description: "Most GPUs of a worker."},
			"bandwidth_mbps": schema.NumberAttribute{Optional: true, Description: "Most Mbit/s of a pod in each direction. On a cluster, workers have to say then how much they get."},
		},
	}
}

// readLimits reads the provider block's; known is false while one of them is not.
func readLimits(o types.Object) (l limits, known bool, diags diag.Diagnostics) {
	f := fields{new(reading), at.Root("limits"), o}
	most := func(name string, least int) *int {
		v, ok := f.value(name).(types.Number)
		if !ok || v.IsNull() {
			return nil
		}
		return new(f.number(name, least))
	}
	l = limits{workers: most("workers", 1), cpu: f.quantity("cpu"), gpus: most("gpus", 0), bandwidth: most("bandwidth_mbps", 1)}
	return l, !f.unknown, f.diags
}

// check refuses an experiment that goes beyond the limits, as far as it is known.
func (l limits) check(d *draft, m *experimentModel) (diags diag.Diagnostics) {
	refuse := func(in, name, have, limit string) {
		diags.AddAttributeError(at.Root(in).AtName(name), "Beyond the provider's limits",
			fmt.Sprintf("%s.%s %s; the provider block allows %s. Ask for no more, or raise limits there.", in, name, have, limit))
	}
	number := func(in, name string, have int, limit *int) {
		if limit != nil && have > *limit {
			refuse(in, name, fmt.Sprintf("is %d", have), fmt.Sprint(*limit))
		}
	}
	if !d.unknown["worker.replicas"] {
		number("worker", "replicas", d.spec.Worker.Replicas, l.workers)
	}
	if !d.unknown["worker.gpus"] {
		number("worker", "gpus", d.spec.Worker.GPUs, l.gpus)
	}
	if m.Cluster.IsNull() {
		return diags
	}
	p, _, _ := m.placement("")
	for in, role := range map[string]launch.PodRole{"coordinator": p.Coordinator, "parameter_server": p.Server, "worker": p.Worker} {
		number(in, "bandwidth_mbps", role.Bandwidth, l.bandwidth)
		if l.cpu != "" && role.CPU != "" {
			if have, limit := resource.MustParse(role.CPU), resource.MustParse(l.cpu); have.Cmp(limit) > 0 {
				refuse(in, "cpu", "is "+role.CPU, l.cpu)
			}
		}
	}
	for name, limit := range map[string]string{"cpu": l.cpu, "bandwidth_mbps": numeral(l.bandwidth)} {
		if limit != "" && m.givenOption(placementOption{"worker", name}) == nil {
			refuse("worker", name, "is not given, so that nothing limits it", limit)
		}
	}
	return diags
}

// numeral writes a limit; "" for none.
func numeral(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}
