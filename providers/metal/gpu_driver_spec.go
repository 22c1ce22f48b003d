package metal

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/providers/metal/packages"
)

func (m *gpuDriverModel) spec() nvidia.Spec {
	return nvidia.Spec{
		Branch: m.Branch.ValueString(), Version: m.Version.ValueString(), Modules: m.Modules.ValueString(), Source: m.Source.ValueString(),
		Server: m.Server.ValueBool(), FabricManager: m.FabricManager.ValueString(), Toolkit: m.Toolkit.ValueString(),
		Persistence: m.Persistence.ValueBool(), NoNouveau: m.NoNouveau.ValueBool(), Reboot: m.Reboot.ValueString(),
		DriverRepository: m.DriverRepository.override(), ToolkitRepository: m.ToolkitRepository.override(), DebianRepository: m.DebianRepository.override(),
	}
}

func (r *gpuRepositoryModel) override() nvidia.Repository {
	if r == nil {
		return nvidia.Repository{}
	}
	return nvidia.Repository{URL: r.URL.ValueString(), KeyURL: r.KeyURL.ValueString(), Fingerprint: r.Fingerprint.ValueString()}
}

// resolve gives source a value where the configuration left it out.
func (m *gpuDriverModel) resolve(have nvidia.State) {
	if !m.Source.IsUnknown() && !m.Source.IsNull() {
		return
	}
	m.Source = types.StringValue(nvidia.NVIDIA)
	if have.OS == "ubuntu" {
		m.Source = types.StringValue(nvidia.Distribution)
	}
}

// install is what the driver means on the machine in the terms of its packages.
// Other held packages stay as they are.
func (s *settings) install(w nvidia.Target, have nvidia.State) packages.Spec {
	p := packages.Spec{
		Owner: gpuDriverRecord, Proxy: s.proxy, Repositories: map[string]packages.Repository{}, Packages: map[string]packages.Package{}, Pinned: map[string]string{},
		Absent: w.Remove, Allow: have.Driver(),
	}
	seen := map[string]bool{}
	for _, src := range w.Sources {
		src.URL, src.KeyURL = s.mirror(src.URL), s.mirror(src.KeyURL)
		if at := src.URL + " " + src.Suite; !seen[at] { // one mirror for both, which apt must know only once
			seen[at] = true
			p.Repositories[src.Name] = aptRepository(src, "metal_gpu_driver")
		}
	}
	for _, pin := range w.Pinned {
		p.Pinned[pin.Name] = pin.Version
	}
	for _, pkg := range w.Packages {
		p.Packages[pkg.Name] = packages.Package{
			Version: pkg.Version, Hold: pkg.IsHeld() || slices.Contains(have.Held, pkg.Name), Why: "metal_gpu_driver",
		}
	}
	return p
}

func (m *gpuDriverModel) observed(ctx context.Context, have nvidia.State, changes []host.Change) diag.Diagnostics {
	drift := map[string]attr.Value{}
	for _, c := range changes {
		switch at := strings.Join(c.Path, "."); {
		case at == "version":
			branch, _, _ := strings.Cut(c.Have, ".")
			m.Branch = types.StringValue(branch)
			if !m.Version.IsNull() {
				m.Version = types.StringValue(c.Have)
			}
		case at == "modules":
			m.Modules = types.StringValue(c.Have)
		case at == "toolkit":
			m.Toolkit = types.StringValue(c.Have)
		case at == "persistence":
			m.Persistence = types.BoolValue(!m.Persistence.ValueBool())
		case c.Have == "":
			drift[c.Fact] = types.StringValue("missing")
		default:
			drift[c.Fact] = types.StringValue(c.Have)
		}
	}
	var diags diag.Diagnostics
	m.Drift, diags = types.MapValue(types.StringType, drift)
	m.Installed = types.StringValue(have.Installed())
	gpus, more := types.ListValueFrom(ctx, gpuDriverSchema().Attributes["gpus"].GetType().(types.ListType).ElemType, gpuModels(have))
	m.GPUs, m.GPUCount = gpus, types.Int64Value(int64(len(have.Devices)))
	return append(diags, more...)
}

func gpuModels(have nvidia.State) []gpuModel {
	all := []gpuModel{}
	for _, d := range have.Devices {
		g := gpuModel{
			Address: types.StringValue(d.Address), Device: types.StringValue(d.GPU.ID), Name: types.StringValue(d.Name()),
			UUID: types.StringValue(""), Memory: types.Int64Value(0),
		}
		for _, known := range have.GPUs {
			if known.Bus == d.Address {
				g.Name, g.UUID, g.Memory = types.StringValue(known.Name), types.StringValue(known.UUID), types.Int64Value(known.Memory)
			}
		}
		all = append(all, g)
	}
	return all
}
