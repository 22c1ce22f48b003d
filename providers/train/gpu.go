package train

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/spec"
)

// gpuAttributes are the attributes of an experiment about the health of its GPUs.
func gpuAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"gpu_health": option("With worker.gpus: \"required\" starts no worker on GPUs that stoke-gpu calls unfit, or cannot check; " +
			"\"reported\" only reports them. Default: \"reported\"."),
		"gpu_health_worst": result("Worst health of the GPUs so far: fit, or warning or unfit with the reason. Null where no GPU was watched."),
	}
}

// gpuHealth is an argument without a value that is filled in.
func gpuHealth() argument {
	return argument{"gpu_health", "", "gpu_health",
		func(s *spec.Spec, v attr.Value) error { s.GPUHealth = v.(types.String).ValueString(); return nil }, nil}
}

// recordGPUs records the worst health of the GPUs of a run.
func (m *experimentModel) recordGPUs(h *spec.GPUHealth) {
	m.GPUHealthWorst = types.StringNull()
	if h != nil {
		m.GPUHealthWorst = types.StringValue(printable(h.String()))
	}
}

// gpusOf translates the readings of the GPUs of a role.
func gpusOf(s gpu.Snapshot) (all []providers.RunGPU) {
	for _, r := range s.GPUs {
		h := gpu.Judge(gpu.Snapshot{GPUs: []gpu.Reading{r}}, gpu.Expectation{})
		is := providers.RunGPU{
			Index: r.Index, Name: printable(r.Name), UUID: printable(r.UUID), Values: r.Values, Health: string(h.Verdict),
		}
		for _, f := range h.Findings {
			if is.Reasons != "" {
				is.Reasons += "; "
			}
			is.Reasons += printable(f.Text)
		}
		all = append(all, is)
	}
	return all
}

// addGPUs adds the numbers of GPUs to those of an event, as worker-0.gpu3.power_watts.
func addGPUs(values map[string]float64, role string, s gpu.Snapshot) {
	for _, r := range s.GPUs {
		for name, v := range r.Values {
			values[fmt.Sprintf("%s.gpu%d.%s", role, r.Index, name)] = v
		}
	}
}
