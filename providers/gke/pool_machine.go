package gke

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/catalogue"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// unattachable returns the reason why an N1 machine cannot have these GPUs; ""
// where it can.
func unattachable(name string, cpus int64, a *acceleratorModel) string {
	kind, count := a.Type.ValueString(), a.Count.ValueInt64()
	counts, ok := catalogue.Attached[kind]
	most, fits := counts[count]
	switch {
	case !ok:
		return fmt.Sprintf("n1 machines can have %v, and accelerator says %s.", slices.Sorted(maps.Keys(catalogue.Attached)), kind)
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
	if n := m.PodsPerNode.ValueInt64(); isGiven(m.PodsPerNode) && (n < 8 || n > 256) {
		j.diags.AddAttributeError(path.Root("max_pods_per_node"), "No node has so many pods", fmt.Sprintf("%d is not between 8 and 256.", n))
	}
}

// machineOffer is a machine type as a zone offers it.
type machineOffer struct {
	catalogue.Machine
	ssds int64 // local SSDs that come with it; 0 for none, or for any declared number
}

// machineIn asks for a machine type of a zone; nil where the zone lacks it. known is false where the API gave
// no answer.
func machineIn(ctx context.Context, j job, zone, name string) (m *machineOffer, known bool) {
	what := "whether " + zone + " has the machine type " + name
	t, known := ask(ctx, j, "machines/"+zone+"/"+name, what, func(ctx context.Context) (*compute.MachineType, error) {
		t, err := j.cloud.Compute.MachineTypes.Get(j.cloud.Project, zone, name).Context(ctx).Do()
		if cloud.KindOf(cloud.Explain(err)) == cloud.NotFound {
			return nil, nil
		}
		return t, err
	})
	if t == nil {
		return nil, known
	}
	m = &machineOffer{Machine: catalogue.Machine{Name: name, CPUs: t.GuestCpus, MemoryMiB: t.MemoryMb}}
	for _, a := range t.Accelerators {
		m.GPU, m.GPUs = a.GuestAcceleratorType, a.GuestAcceleratorCount
	}
	if t.BundledLocalSsds != nil {
		m.ssds = t.BundledLocalSsds.PartitionCount
	}
	return m, known
}

// checkOffer compares a pool with the machine type that its zones offer. The catalogue is used
// where the API gives no answer.
func checkOffer(ctx context.Context, m *poolModel, j job, refuse func(name, summary, detail string)) {
	kind, ok := machineOf(m.MachineType.ValueString())
	zones, _ := m.nodeZones(ctx, j)
	if m.MachineType.IsUnknown() {
		zones = nil
	}
	asked := false
	for _, zone := range zones {
		name := firstNonEmpty(m.MachineType.ValueString(), catalogue.Default)
		there, known := machineIn(ctx, j, zone, name)
		switch {
		case known && there == nil && ok && lacksGPU(ctx, j, zone, kind.GPU): // checkZones names zones that have the GPU
		case known && there == nil:
			refuse("machine_type", "Zone does not have this machine type",
				fmt.Sprintf("%s has no %s. Name other zones or another machine type.", zone, name))
			return
		case known && !asked:
			asked, kind, ok = true, there.Machine, true
			checkBundled(m, j, there, refuse)
		}
	}
	m.checkGPUs(j, kind, ok, refuse)
	if !asked {
		m.checkLocalSSDs(j, refuse)
	}
}

// lacksGPU reports whether a zone is known to lack a type of GPU.
func lacksGPU(ctx context.Context, j job, zone, gpu string) bool {
	if gpu == "" {
		return false
	}
	all, known := acceleratorsIn(ctx, j, zone)
	return known && !slices.Contains(all, gpu)
}

// checkBundled checks the local SSDs of a machine type by its offer; the catalogue has the number
// where the offer has none.
func checkBundled(m *poolModel, j job, there *machineOffer, refuse func(name, summary, detail string)) {
	n := m.LocalSSDs.ValueInt64() + m.RawSSDs.ValueInt64()
	if there.ssds == 0 || m.LocalSSDs.ValueInt64() > 0 && m.RawSSDs.ValueInt64() > 0 {
		m.checkLocalSSDs(j, refuse)
		return
	}
	if n > 0 && n != there.ssds {
		name := "local_ssd_count"
		if m.RawSSDs.ValueInt64() > 0 {
			name = "raw_local_ssd_count"
		}
		refuse(name, "Machine cannot have so many local SSDs", fmt.Sprintf("%s has %d of them, not %d.", there.Name, there.ssds, n))
	}
}
