package metal

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/providers/metal/packages"
	"github.com/stokehq/stoke/runtime/pattern"
)

// softwareModel is software whose packages and repositories are known here, so
// that a version is all that people declare.
type softwareModel struct {
	ContainerdPackage types.Object `tfsdk:"containerd_package"`
	CUDA              types.Object `tfsdk:"cuda_toolkit"`
}

type softwarePackage struct {
	Version    types.String        `tfsdk:"version"`
	Source     types.String        `tfsdk:"source"`
	Repository *gpuRepositoryModel `tfsdk:"repository"`
}

// Where containerd's package is from.
const (
	fromDocker       = "docker"
	fromDistribution = "distribution"
	dockerRepository = "docker"
	dockerURL        = "https://download.docker.com"
	// dockerKey signs Docker's repositories for Debian and Ubuntu
	// (docs.docker.com/engine/install/debian).
	dockerKey = "9DC858229FC7DD38854AE2D88D81803C0EBFCD88"
)

// numbers is a version with up to three parts: "2", "2.2" or "2.2.1".
var numbers = pattern.New(`^[0-9]+(\.[0-9]+){0,2}$`)

func softwareAttributes() map[string]schema.Attribute {
	repository := repositoryAttribute("A mirror of the repository.")
	source := schema.StringAttribute{Optional: true}
	containerd, cuda := source, source
	containerd.Validators = []validator.String{oneOf{fromDocker, fromDistribution}}
	containerd.Description = "The source of the package: docker (containerd.io from Docker's repository, the " +
		"default) or distribution, which may be too old for the kubelet: 1.38 takes 2.0 and newer only."
	cuda.Validators = []validator.String{oneOf{"nvidia"}}
	cuda.Description = "Whose package: nvidia."
	attribute := func(description, version string, source schema.StringAttribute) schema.Attribute {
		return schema.SingleNestedAttribute{Optional: true, Description: description, Attributes: map[string]schema.Attribute{
			"version": schema.StringAttribute{Required: true, Description: version}, "source": source, "repository": repository,
		}}
	}
	return map[string]schema.Attribute{
		"containerd_package": attribute("containerd's package, held at its version.", `Version, such as "2.2" for the newest 2.2; a pattern such as "*" takes any.`, containerd),
		"cuda_toolkit":       attribute("The CUDA toolkit, for programs that are built on the machine. Containers bring their own.", `Version, such as "12.9".`, cuda),
	}
}

type declaredSoftware struct{ containerd, cuda *softwarePackage }

func (m *softwareModel) read(ctx context.Context, diags *diag.Diagnostics) (d declaredSoftware, ok bool) {
	if !isWhollyKnown(ctx, m.ContainerdPackage, m.CUDA) {
		return d, false
	}
	for _, part := range []struct {
		from types.Object
		to   **softwarePackage
	}{{m.ContainerdPackage, &d.containerd}, {m.CUDA, &d.cuda}} {
		if !part.from.IsNull() {
			diags.Append(part.from.As(ctx, part.to, basetypes.ObjectAsOptions{})...)
		}
	}
	return d, !diags.HasError()
}

func (d declaredSoftware) validate(diags *diag.Diagnostics) {
	if d.cuda == nil {
		return
	}
	if _, _, err := nvidia.CUDAToolkit(d.cuda.Version.ValueString(), nvidia.State{OS: "debian", Release: "12"}); err != nil {
		diags.AddAttributeError(path.Root("cuda_toolkit").AtName("version"), "Invalid version", fmt.Sprintf("%s.", err))
	}
}

// pattern is the version in apt's terms. A full upstream version is followed by
// the revision of the package: for Docker and Ubuntu it begins with a hyphen, for
// Debian it may say that something was left out (1.7.24~ds1-6).
func (p *softwarePackage) pattern(os string) string {
	version := p.Version.ValueString()
	switch {
	case !numbers.MatchString(version):
		return version
	case strings.Count(version, ".") < 2:
		return version + ".*"
	case os == "debian" && p.runtime() == "containerd":
		return version + "~ds*"
	}
	return version + "-*"
}

// runtimePackages are the packages of containerd from the distribution and from
// Docker.
var runtimePackages = [...]string{"containerd", "containerd.io"}

func (p *softwarePackage) runtime() string {
	if p.Source.ValueString() == fromDistribution {
		return runtimePackages[0]
	}
	return runtimePackages[1]
}

const cudaPrefix = "cuda-toolkit-"

func (d declaredSoftware) spec(ctx context.Context, on *settings, m host.Machine) (packages.Spec, error) {
	s := packages.Spec{Owner: hostRecord}
	if d.containerd == nil && d.cuda == nil {
		return s, nil
	}
	f, err := on.factsOf(ctx, m)
	if err != nil {
		return s, err
	}
	s.Repositories, s.Packages = map[string]packages.Repository{}, map[string]packages.Package{}
	if p := d.containerd; p != nil {
		s.Packages[p.runtime()] = packages.Package{Version: p.pattern(f.OS.ID), Hold: true, Exclude: true, Why: "containerd_package"}
		if p.runtime() != "containerd" {
			base := dockerURL + "/linux/" + f.OS.ID
			s.Repositories[dockerRepository] = p.repository(on, nvidia.Source{
				URL: base, Suite: f.OS.Codename, Components: []string{"stable"}, KeyURL: base + "/gpg", Fingerprint: dockerKey,
			}, "containerd_package")
		}
	}
	if p := d.cuda; p != nil {
		// The driver's resource uses the same name for the same repository: apt
		// refuses a repository with two keyrings.
		from, name, err := nvidia.CUDAToolkit(p.Version.ValueString(), nvidia.State{OS: f.OS.ID, Release: f.OS.Version, Arch: f.Architecture})
		if err != nil {
			return s, contradiction{err}
		}
		s.Repositories[from.Name] = p.repository(on, from, "cuda_toolkit")
		s.Packages[name] = packages.Package{Why: "cuda_toolkit"}
	}
	return s, nil
}

func (p *softwarePackage) repository(on *settings, from nvidia.Source, why string) packages.Repository {
	from.URL, from.KeyURL = on.mirror(from.URL), on.mirror(from.KeyURL)
	return aptRepository(p.Repository.override().Merge(from), why)
}

func aptRepository(from nvidia.Source, why string) packages.Repository {
	return packages.Repository{
		URIs: []string{from.URL}, Suites: []string{from.Suite}, Components: from.Components,
		Key: packages.Key{URL: from.KeyURL}, Fingerprints: []string{from.Fingerprint}, Why: why,
	}
}

// place returns the path of the argument that declared a fact of packages:
// package packages does not know the attributes, and some facts follow from
// other arguments.
func (d declaredSoftware) place(by declaredPackages, at []string) []string {
	name := ""
	if len(at) > 1 {
		name = at[1]
	}
	_, asPackage := by.packages[name]
	_, asRepository := by.repositories[name]
	switch {
	case at[0] == "packages" && !asPackage && d.containerd != nil && name == d.containerd.runtime():
		return []string{"containerd_package", "version"}
	case at[0] == "packages" && !asPackage && d.cuda != nil && strings.HasPrefix(name, cudaPrefix):
		return []string{"cuda_toolkit", "version"}
	case at[0] == "packages":
		return at
	case at[0] == "absent":
		return []string{"absent_packages"}
	case at[0] == "repositories" && asRepository:
		return append([]string{"apt_repositories"}, at[1:]...)
	case at[0] == "repositories" && name == dockerRepository && d.containerd != nil:
		return []string{"containerd_package", "repository"}
	case at[0] == "repositories" && d.cuda != nil:
		return []string{"cuda_toolkit", "repository"}
	}
	return []string{"packages"} // of apt itself
}

// unavailable reports packages that are in no repository. If a repository is
// still to be added, it may bring the packages that stoke knows from it; then
// only packages that the configuration names are reported.
func (d declaredSoftware) unavailable(by declaredPackages, want packages.Spec, f packages.Forecast, diags *diag.Diagnostics) {
	at := func(u packages.Unavailable) path.Path {
		if p := d.place(by, []string{"packages", u.Package}); p[0] != "packages" {
			return path.Root(p[0]).AtName(p[1])
		}
		return path.Root("packages").AtMapKey(u.Package)
	}
	for _, u := range f.Missing {
		diags.AddAttributeError(at(u), "Package cannot be had", fmt.Sprintf("%s. The lists of all repositories were "+
			"read again for this. Fix the name or the version, or declare the repository that has it.", u.Why))
	}
	for _, u := range f.Doubtful {
		if want.Packages[u.Package].Why == "" {
			diags.AddAttributeWarning(at(u), "Package may not be had", u.Why+".")
		}
	}
}

// factsOf are the facts of a machine, gathered once in a phase.
func (s *settings) factsOf(ctx context.Context, m host.Machine) (facts.Facts, error) {
	if r, ok := m.(*host.Remote); ok {
		if seen, ok := s.seen.snapshotOf(r.Target.Address, r.Target.HostKey); ok {
			return seen.facts, nil
		}
	}
	return s.gather(ctx, m)
}

func (m *softwareModel) observed(ctx context.Context, d declaredSoftware, want packages.Spec, have packages.State) diag.Diagnostics {
	var diags diag.Diagnostics
	is := have.Spec(want)
	for name, w := range want.Packages {
		declared, into := d.containerd, &m.ContainerdPackage
		switch {
		case d.containerd != nil && name == d.containerd.runtime():
		case d.cuda != nil && strings.HasPrefix(name, cudaPrefix):
			declared, into = d.cuda, &m.CUDA
		default:
			continue
		}
		p, there := is.Packages[name]
		if !there {
			*into = types.ObjectNull(into.AttributeTypes(ctx))
			continue
		}
		now, installed := *declared, have.Packages[name]
		switch {
		case installed.Status != 'i':
			now.Version = types.StringValue(installed.Version + " (not configured)")
		case p.Version != w.Version:
			now.Version = types.StringValue(p.Version)
		case p.Hold != w.Hold || p.Exclude != w.Exclude:
			now.Version = types.StringValue(installed.Version + " (not held)")
		}
		o, more := types.ObjectValueFrom(ctx, into.AttributeTypes(ctx), now)
		diags.Append(more...)
		*into = o
	}
	return diags
}
