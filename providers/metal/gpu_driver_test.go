package metal

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/nvidia"
)

// TestDriverPackages: what the driver means in packages, over mirrors.
func TestDriverPackages(t *testing.T) {
	w := nvidia.Target{
		Sources: []nvidia.Source{
			{Name: "nvidia-driver", URL: "https://a.example.org/cuda/", Suite: "/", KeyURL: "https://a.example.org/cuda/key.pub", Fingerprint: "AA"},
			{Name: "nvidia-toolkit", URL: "https://b.example.org/", Suite: "/", KeyURL: "https://b.example.org/key", Fingerprint: "BB"},
		},
		Packages: []nvidia.Package{{Name: "nvidia-open", Version: "580.126.20-*"}, {Name: "linux-headers-amd64"}, {Name: "linux-headers-6.1"}},
		Remove:   []string{"nvidia-utils-570"},
	}
	have := nvidia.State{Packages: map[string]string{"libcuda1": "580.95.05-1", "vim": "9"}, Held: []string{"linux-headers-6.1"}}
	s := (&settings{mirrors: map[string]string{"https://a.example.org": "http://mirror"}}).install(w, have)
	if r := s.Repositories["nvidia-driver"]; len(s.Repositories) != 2 || r.URIs[0] != "http://mirror/cuda/" || r.Key.URL != "http://mirror/cuda/key.pub" || r.Fingerprints[0] != "AA" {
		t.Errorf("repositories %+v", s.Repositories)
	}
	if p := s.Packages; p["nvidia-open"].Version != "580.126.20-*" || !p["nvidia-open"].Hold || p["linux-headers-amd64"].Hold || !p["linux-headers-6.1"].Hold {
		t.Errorf("packages %+v", p)
	}
	if len(s.Absent) != 1 || len(s.Allow) != 1 || s.Allow[0] != "libcuda1" {
		t.Errorf("absent %v, allowed to change %v", s.Absent, s.Allow)
	}
	// one mirror for both is one repository
	s = (&settings{mirrors: map[string]string{"https://a.example.org/cuda/": "http://m", "https://b.example.org/": "http://m"}}).install(w, have)
	if len(s.Repositories) != 1 {
		t.Errorf("apt would know %v twice", s.Repositories)
	}
}

// TestDriverObserved: what differs stands in the attributes of what is declared,
// and the rest in drift.
func TestDriverObserved(t *testing.T) {
	m := gpuDriverModel{
		Branch: types.StringValue("580"), Version: types.StringValue("580.126.20"), Modules: types.StringValue("open"),
		Toolkit: types.StringValue("1.20.0"), Persistence: types.BoolValue(true),
	}
	have := nvidia.State{Packages: map[string]string{"libcuda1": "535.247.01-1"}, Devices: []nvidia.Device{{GPU: facts.GPU{Address: "0000:01:00.0", ID: "10de:2330"}, ID: 0x2330}}}
	diags := m.observed(context.Background(), have, []host.Change{
		{Fact: "driver", Path: []string{"version"}, Have: "535.247.01"},
		{Fact: "kernel modules", Path: []string{"modules"}, Have: "proprietary"},
		{Fact: "container toolkit", Path: []string{"toolkit"}},
		{Fact: "persistence daemon", Path: []string{"persistence"}, Have: "stopped"},
		{Fact: "module of kernel 6.1, which boots next"},
	})
	if diags.HasError() {
		t.Fatal(diags)
	}
	if m.Branch.ValueString() != "535" || m.Version.ValueString() != "535.247.01" || m.Modules.ValueString() != "proprietary" ||
		m.Toolkit.ValueString() != "" || m.Persistence.ValueBool() || m.Installed.ValueString() != "535.247.01" {
		t.Errorf("observed %+v", m)
	}
	if d := m.Drift.Elements(); len(d) != 1 || !d["module of kernel 6.1, which boots next"].Equal(types.StringValue("missing")) {
		t.Errorf("drift %v", d)
	}
	if len(m.GPUs.Elements()) != 1 {
		t.Errorf("GPUs %v", m.GPUs)
	}
	branch := gpuDriverModel{Branch: types.StringValue("580")}
	branch.observed(context.Background(), have, []host.Change{{Fact: "driver", Path: []string{"version"}, Have: "535.247.01"}})
	if branch.Branch.ValueString() != "535" || !branch.Version.IsNull() {
		t.Errorf("observed %s %s, which is not declared", branch.Branch, branch.Version)
	}
}
