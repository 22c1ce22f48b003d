package metal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/stokehq/stoke/providers/metal/containerd"
)

type containerdModel struct {
	Containerd types.Object `tfsdk:"containerd"`
	Images     types.Map    `tfsdk:"images"`
	// State has the results of Containerd, and its observed facts.
	State    types.Object `tfsdk:"containerd_state"`
	Archives types.Map    `tfsdk:"image_archives"` // digests by reference
}

type runtimeModel struct {
	Sandbox types.String           `tfsdk:"sandbox_image"`
	BinDir  types.String           `tfsdk:"cni_bin_dir"`
	Mirrors map[string]mirrorModel `tfsdk:"registry_mirrors"`
}

type mirrorModel struct {
	Endpoints    []types.String `tfsdk:"endpoints"`
	Server       types.String   `tfsdk:"server"`
	CA           types.String   `tfsdk:"ca"`
	SkipVerify   types.Bool     `tfsdk:"skip_verify"`
	OverridePath types.Bool     `tfsdk:"override_path"`
}

type imageModel struct {
	Archive types.String `tfsdk:"archive"`
	Pin     types.Bool   `tfsdk:"pin"`
}

type runtimeState struct {
	Version types.String `tfsdk:"version"`
	Service types.String `tfsdk:"service"`
	Config  types.String `tfsdk:"config"`
	Proxy   types.String `tfsdk:"proxy"`
}

func runtimeStateTypes() map[string]attr.Type {
	return map[string]attr.Type{"version": types.StringType, "service": types.StringType, "config": types.StringType, "proxy": types.StringType}
}

type containerdSection struct{ settings *settings }

func (containerdSection) attributes() map[string]schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Description: description}
	}
	computed := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, Description: description}
	}
	return map[string]schema.Attribute{
		"containerd": schema.SingleNestedAttribute{
			Optional: true,
			Description: "containerd for Kubernetes: running, enabled, with control groups by systemd. Its package is one of packages. " +
				"/etc/containerd/config.toml belongs to stoke, additions are read from /etc/containerd/conf.d. The provider's proxy is its, too.",
			Attributes: map[string]schema.Attribute{
				"sandbox_image": text("Image of the container that holds a pod's namespaces; containerd's own choice when left out."),
				"cni_bin_dir":   text("Where CNI plugins are; /opt/cni/bin when left out."),
				"registry_mirrors": schema.MapNestedAttribute{
					Optional: true, Description: "Where images are pulled from instead, by registry such as docker.io; _default is for all others.",
					NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
						"endpoints":     schema.ListAttribute{Required: true, ElementType: types.StringType, Description: "URLs, asked in order. Credentials are not for these: the file is readable by all."},
						"server":        text("URL to use when no endpoint has an image; the registry itself when left out."),
						"ca":            text("Path of a certificate on the machine that the endpoints are checked by."),
						"skip_verify":   schema.BoolAttribute{Optional: true, Description: "Do not check the endpoints' certificates."},
						"override_path": schema.BoolAttribute{Optional: true, Description: "The URLs' paths are the API's root already."},
					}},
				},
			},
		},
		"images": schema.MapNestedAttribute{
			Optional: true, Description: "Images that are brought to the machine, by reference in full such as registry.k8s.io/pause:3.10.1.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"archive": schema.StringAttribute{Required: true, Description: "Path of an archive here, such as docker save or ctr images export write."},
				"pin":     schema.BoolAttribute{Optional: true, Description: "Keep it when the kubelet removes images for want of space (containerd 1.7 and later)."},
			}},
		},
		"containerd_state": schema.SingleNestedAttribute{
			Computed: true, Description: "The settings of containerd that follow from the GPUs.",
			Attributes: map[string]schema.Attribute{
				"version": computed("Its version."),
				"service": computed("How its service is."),
				"config":  computed("/etc/containerd/config.toml."),
				"proxy":   computed("The service's drop-in that names the proxy."),
			},
		},
		"image_archives": schema.MapAttribute{Computed: true, ElementType: types.StringType, Description: "SHA-256 of the images' archives, by reference."},
	}
}

type declaredRuntime struct {
	runtime  *runtimeModel
	images   map[string]imageModel
	archives map[string]types.String
}

// read takes the model apart; ok is false while something of it is unknown.
func (m *containerdModel) read(ctx context.Context, diags *diag.Diagnostics) (d declaredRuntime, ok bool) {
	if !isWhollyKnown(ctx, m.Containerd, m.Images) {
		return d, false
	}
	if !m.Containerd.IsNull() {
		diags.Append(m.Containerd.As(ctx, &d.runtime, basetypes.ObjectAsOptions{})...)
	}
	diags.Append(m.Images.ElementsAs(ctx, &d.images, false)...)
	if isWhollyKnown(ctx, m.Archives) {
		diags.Append(m.Archives.ElementsAs(ctx, &d.archives, false)...)
	}
	return d, !diags.HasError()
}

// noArchive is a placeholder for an unknown archive.
var noArchive = strings.Repeat("0", 64)

func (d declaredRuntime) spec(on *settings) containerd.Spec {
	var s containerd.Spec
	if r := d.runtime; r != nil {
		s.Config, s.Sandbox, s.BinDir = true, r.Sandbox.ValueString(), r.BinDir.ValueString()
		s.Mirrors = mapped(r.Mirrors, func(_ string, m mirrorModel) containerd.Mirror { return m.mirror() })
		if on != nil && on.proxy != nil {
			s.Proxy = &containerd.Proxy{HTTP: on.proxy.HTTP, HTTPS: on.proxy.HTTPS, No: strings.Join(on.noProxy(), ",")}
		}
	}
	s.Images = mapped(d.images, func(ref string, i imageModel) containerd.Image {
		return containerd.Image{Archive: cmp.Or(d.archives[ref].ValueString(), noArchive), Pin: i.Pin.ValueBool(), Open: open(i.Archive.ValueString())}
	})
	return s
}

func open(name string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return os.Open(name) }
}

func (m mirrorModel) mirror() containerd.Mirror {
	mirror := containerd.Mirror{Server: m.Server.ValueString()}
	for _, url := range texts(m.Endpoints) {
		mirror.Endpoints = append(mirror.Endpoints, containerd.Endpoint{
			URL: url, CA: m.CA.ValueString(), SkipVerify: m.SkipVerify.ValueBool(), OverridePath: m.OverridePath.ValueBool(),
		})
	}
	return mirror
}

func (containerdSection) validate(ctx context.Context, config *hostModel, diags *diag.Diagnostics) {
	d, ok := config.containerdModel.read(ctx, diags)
	if !ok {
		return
	}
	spec := d.spec(nil)
	for name := range config.Files.Elements() {
		if spec.Owns(name) {
			diags.AddAttributeError(path.Root("files").AtMapKey(name), "File is managed by containerd",
				fmt.Sprintf("%s follows from containerd, and cannot be declared as a file, too. Put further settings into a "+
					"file of its own, such as %s/50-mine.toml.", name, containerd.DropIns))
		}
	}
	images := containerd.Spec{Images: spec.Images}
	spec.Images = nil
	whole := errors.Join(spec.Validate(), images.Validate())
	addPartly(diags, "Invalid container runtime settings", whole, partialError{"containerd", spec.Validate()}, partialError{"images", images.Validate()})
}

// plan sets the contents of containerd's files, as far as its version is known,
// and the digests of archives.
func (s containerdSection) plan(ctx context.Context, prior, plan *hostModel, diags *diag.Diagnostics) {
	plan.State, plan.Archives = types.ObjectUnknown(runtimeStateTypes()), types.MapUnknown(types.StringType)
	if plan.Containerd.IsNull() {
		plan.State = types.ObjectNull(runtimeStateTypes())
	}
	if plan.Images.IsNull() {
		plan.Archives = types.MapNull(types.StringType)
	}
	if s.settings == nil {
		return
	}
	if !plan.Images.IsUnknown() && !plan.Images.IsNull() {
		plan.Archives = s.archives(ctx, plan.Images, diags)
	}
	if plan.Containerd.IsNull() {
		return
	}
	alone := plan.containerdModel
	alone.Images = types.MapNull(plan.Images.ElementType(ctx)) // not in the state, and possibly unknown
	d, ok := alone.read(ctx, diags)
	if !ok {
		return
	}
	spec := d.spec(s.settings)
	is := runtimeState{Version: types.StringUnknown(), Service: types.StringValue(containerd.Running), Config: types.StringUnknown(), Proxy: types.StringNull()}
	if spec.Proxy != nil {
		if err := (containerd.Spec{Proxy: spec.Proxy}).Validate(); err != nil {
			diags.AddAttributeError(path.Root("containerd"), "Proxy is not for containerd", list(err))
		}
		is.Proxy = types.StringValue(spec.ProxyText())
	}
	if prior != nil && !prior.State.IsNull() && sameRuntime(prior, plan) {
		var was runtimeState
		diags.Append(prior.State.As(ctx, &was, basetypes.ObjectAsOptions{})...)
		if text, known := containerd.Rendered(spec, containerd.Facts{Version: was.Version.ValueString()}); known {
			is.Version, is.Config = was.Version, types.StringValue(text)
		}
	}
	o, more := types.ObjectValueFrom(ctx, runtimeStateTypes(), is)
	diags.Append(more...)
	plan.State = o
}

// sameRuntime reports that the plan does not bring another containerd.
func sameRuntime(prior, plan *hostModel) bool {
	return prior.Packages.Equal(plan.Packages) && prior.Repositories.Equal(plan.Repositories) && prior.ContainerdPackage.Equal(plan.ContainerdPackage)
}

func (s containerdSection) archives(ctx context.Context, images types.Map, diags *diag.Diagnostics) types.Map {
	declared, sums := map[string]imageModel{}, map[string]attr.Value{}
	diags.Append(images.ElementsAs(ctx, &declared, false)...)
	for ref, i := range declared {
		if i.Archive.IsUnknown() {
			sums[ref] = types.StringUnknown()
			continue
		}
		sum, err := s.settings.sums.sumOf(i.Archive.ValueString())
		if err != nil {
			diags.AddAttributeError(path.Root("images").AtMapKey(ref), "Archive cannot be read", fmt.Sprintf("%s.", err))
		}
		sums[ref] = types.StringValue(sum)
	}
	if len(sums) == 0 {
		return types.MapNull(types.StringType)
	}
	m, more := types.MapValue(types.StringType, sums)
	diags.Append(more...)
	return m
}

// archiveSums remembers the digests of archives, which many machines may share.
type archiveSums struct {
	mu   sync.Mutex
	seen map[string]string
}

func (a *archiveSums) sumOf(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%s %d %d", name, info.Size(), info.ModTime().UnixNano())
	a.mu.Lock()
	defer a.mu.Unlock() // so that an archive is read by one machine's plan, and the others wait for it
	if sum, ok := a.seen[key]; ok {
		return sum, nil
	}
	sum, err := containerd.ArchiveDigest(open(name))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if a.seen == nil {
		a.seen = map[string]string{}
	}
	a.seen[key] = sum
	return sum, nil
}
