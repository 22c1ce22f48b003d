package gke

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
)

// attached are the GPUs that N1 machines can have: by how many of them, the most
// CPUs of the machine. https://cloud.google.com/compute/docs/gpus#n1-gpus
var attached = map[string]map[int64]int64{
	"nvidia-tesla-t4":   {1: 48, 2: 48, 4: 96},
	"nvidia-tesla-v100": {1: 12, 2: 24, 4: 48, 8: 96},
	"nvidia-tesla-p100": {1: 16, 2: 32, 4: 96},
	"nvidia-tesla-p4":   {1: 24, 2: 48, 4: 96},
}

// unattachable says why an N1 machine cannot have these GPUs; "" where it can.
func unattachable(name string, cpus int64, a *acceleratorModel) string {
	kind, count := a.Type.ValueString(), a.Count.ValueInt64()
	counts, ok := attached[kind]
	most, fits := counts[count]
	switch {
	case !ok:
		return fmt.Sprintf("n1 machines can have %v, and accelerator says %s.", slices.Sorted(maps.Keys(attached)), kind)
	case !fits:
		return fmt.Sprintf("A machine can have %v × %s, and accelerator says %d.", slices.Sorted(maps.Keys(counts)), kind, count)
	case cpus > most:
		return fmt.Sprintf("With %d × %s a machine has %d CPUs at most, and %s has %d.", count, kind, most, name, cpus)
	}
	return ""
}

// checkPods refuses a number of pods that Google gives no node.
// https://cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr
func checkPods(m *poolModel, j job) {
	if n := m.PodsPerNode.ValueInt64(); given(m.PodsPerNode) && (n < 8 || n > 256) {
		j.diags.AddAttributeError(path.Root("max_pods_per_node"), "No node has so many pods", fmt.Sprintf("%d is not between 8 and 256.", n))
	}
}
