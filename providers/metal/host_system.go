package metal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/stokehq/stoke/providers/metal/system"
)

type systemModel struct {
	Hostname types.String `tfsdk:"hostname"`
	Swap     types.String `tfsdk:"swap"`
	Modules  types.Set    `tfsdk:"kernel_modules"`
	Sysctl   types.Map    `tfsdk:"sysctl"`
	Time     types.Object `tfsdk:"time_sync"`
	Timezone types.String `tfsdk:"timezone"`
	Files    types.Map    `tfsdk:"files"`
	// Digests stand for the content of sensitive files, "SALT:DIGEST" by path.
	Digests types.Map `tfsdk:"sensitive_digests"`
}

type timeModel struct {
	Service types.String   `tfsdk:"service"`
	Servers []types.String `tfsdk:"servers"`
}

type fileModel struct {
	Content   types.String `tfsdk:"content"`
	Sensitive types.String `tfsdk:"sensitive_content"`
	Mode      types.String `tfsdk:"mode"`
	Owner     types.String `tfsdk:"owner"`
	Group     types.String `tfsdk:"group"`
}

type systemSection struct{}

func (systemSection) attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"hostname": schema.StringAttribute{Optional: true, Description: "The machine's name, in lower case: for the kernel, /etc/hostname and the machine's own line of /etc/hosts."},
		"swap":     schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf{"off"}}, Description: `"off": no swap, now and after a reboot. Lines of /etc/fstab are commented out, units masked.`},
		"kernel_modules": schema.SetAttribute{
			Optional: true, ElementType: types.StringType, Description: "Kernel modules that are there now and after a reboot. " +
				"A built-in module counts.",
		},
		"sysctl": schema.MapAttribute{
			Optional: true, ElementType: types.StringType, Description: "Kernel parameters, now and after a reboot.",
		},
		"time_sync": schema.SingleNestedAttribute{
			Optional: true, Description: "A service that keeps the clock right is to run and be enabled.",
			Attributes: map[string]schema.Attribute{
				"service": schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf(system.TimeServices)}, Description: "Which one; the installed one when left out."},
				"servers": schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: "Time servers for it; the distribution's when left out."},
			},
		},
		"timezone": schema.StringAttribute{Optional: true, Description: "Time zone such as Europe/Berlin."},
		"files": schema.MapNestedAttribute{
			Optional: true, Description: "Files with all that they hold, by absolute path.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"content":           schema.StringAttribute{Optional: true, Description: "Content, which the state holds, too."},
				"sensitive_content": schema.StringAttribute{Optional: true, WriteOnly: true, Sensitive: true, Description: "Content that is secret. Only a salted digest of it is kept."},
				"mode":              schema.StringAttribute{Optional: true, Description: "Permissions such as 0600; 0644 when left out."},
				"owner":             schema.StringAttribute{Optional: true, Description: "Owner; root when left out."},
				"group":             schema.StringAttribute{Optional: true, Description: "Group; root when left out."},
			}},
		},
		"sensitive_digests": schema.MapAttribute{
			Computed: true, ElementType: types.StringType, Description: "Salted digests of sensitive files, by path: they show that a content is another, never which.",
		},
	}
}

type declaredSystem struct {
	model   *systemModel
	modules []types.String
	sysctl  map[string]types.String
	time    *timeModel
	files   map[string]fileModel
	digests map[string]types.String
	secrets map[string]fileModel // from the configuration; nil if it is not available
}

// read takes the model apart; ok is false while something of it is unknown.
// Digests may be: config has their contents.
func (m *systemModel) read(ctx context.Context, config *hostModel, diags *diag.Diagnostics) (d declaredSystem, ok bool) {
	if !isWhollyKnown(ctx, m.Hostname, m.Swap, m.Modules, m.Sysctl, m.Time, m.Timezone, m.Files) {
		return d, false
	}
	d.model = m
	diags.Append(m.Modules.ElementsAs(ctx, &d.modules, false)...)
	diags.Append(m.Sysctl.ElementsAs(ctx, &d.sysctl, false)...)
	if !m.Time.IsNull() {
		diags.Append(m.Time.As(ctx, &d.time, basetypes.ObjectAsOptions{})...)
	}
	diags.Append(m.Files.ElementsAs(ctx, &d.files, false)...)
	if !m.Digests.IsUnknown() {
		diags.Append(m.Digests.ElementsAs(ctx, &d.digests, false)...)
	}
	if config != nil && !config.Files.IsUnknown() {
		diags.Append(config.Files.ElementsAs(ctx, &d.secrets, false)...)
	}
	return d, !diags.HasError()
}

func (d declaredSystem) spec() (system.Spec, error) {
	m := d.model
	s := system.Spec{Hostname: m.Hostname.ValueString(), SwapOff: m.Swap.ValueString() == "off", Modules: texts(d.modules), Timezone: m.Timezone.ValueString()}
	s.Sysctl = mapped(d.sysctl, func(_ string, v types.String) string { return v.ValueString() })
	if d.time != nil {
		s.Time = &system.Time{Service: d.time.Service.ValueString(), Servers: texts(d.time.Servers)}
	}
	var wrong []error
	for name, f := range d.files {
		file, err := d.file(name, f)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("file %q: %w", name, err))
			continue
		}
		if s.Files == nil {
			s.Files = map[string]system.File{}
		}
		s.Files[name] = file
	}
	return s, errors.Join(wrong...)
}

func (d declaredSystem) file(name string, f fileModel) (system.File, error) {
	file := system.File{Mode: 0o644, Owner: "root", Group: "root", Content: []byte(f.Content.ValueString())}
	if !f.Mode.IsNull() {
		mode, err := strconv.ParseUint(f.Mode.ValueString(), 8, 12)
		if err != nil {
			return file, fmt.Errorf("mode %q: it is octal, such as 0644", f.Mode.ValueString())
		}
		file.Mode = fs.FileMode(mode)
	}
	if !f.Owner.IsNull() {
		file.Owner = f.Owner.ValueString()
	}
	if !f.Group.IsNull() {
		file.Group = f.Group.ValueString()
	}
	if !f.Content.IsNull() {
		file.Digest = system.Digest("", file.Content)
		return file, nil
	}
	file.Sensitive = true
	file.Salt, file.Digest, _ = strings.Cut(d.digests[name].ValueString(), ":")
	secret := d.secrets[name].Sensitive
	file.Content = []byte(secret.ValueString())
	if file.Salt == "" { // neither planned nor noted: nothing can be compared with it
		file.Salt = system.Salt("", name)
		file.Digest = system.Digest(file.Salt, file.Content)
	}
	return file, nil
}

func (systemSection) validate(ctx context.Context, config *hostModel, diags *diag.Diagnostics) {
	d, ok := config.systemModel.read(ctx, config, diags)
	if !ok {
		return
	}
	for name, f := range d.files {
		if f.Content.IsNull() == f.Sensitive.IsNull() {
			diags.AddAttributeError(path.Root("files").AtMapKey(name), "Invalid file", fmt.Sprintf("%s needs either content or sensitive_content.", name))
			delete(d.files, name)
		}
	}
	spec, err := d.spec()
	if err != nil { // a file's mode, which has no place in a Spec
		diags.AddAttributeError(path.Root("files"), "Invalid file", list(err))
	}
	if t := spec.Time; t != nil {
		t.Service = "" // its validator has spoken
	}
	const summary = "Invalid operating system settings"
	addPartly(diags, summary, spec.Validate(),
		partialError{"hostname", system.Spec{Hostname: spec.Hostname}.Validate()},
		partialError{"kernel_modules", system.Spec{Modules: spec.Modules}.Validate()},
		partialError{"sysctl", system.Spec{Sysctl: spec.Sysctl}.Validate()},
		partialError{"time_sync", system.Spec{Time: spec.Time}.Validate()},
		partialError{"timezone", system.Spec{Timezone: spec.Timezone}.Validate()},
		partialError{"files", system.Spec{Files: spec.Files}.Validate()})
}

// plan sets the digests of the sensitive files. The digest of an unchanged
// content stays.
func (systemSection) plan(ctx context.Context, prior, plan *hostModel, diags *diag.Diagnostics) {
	unknown := types.MapUnknown(types.StringType)
	plan.Digests = types.MapNull(types.StringType)
	if plan.Files.IsUnknown() || plan.config == nil || plan.config.Files.IsUnknown() {
		plan.Digests = unknown
		return
	}
	var secrets map[string]fileModel
	var before map[string]types.String
	diags.Append(plan.config.Files.ElementsAs(ctx, &secrets, false)...)
	if prior != nil && !prior.Digests.IsUnknown() {
		diags.Append(prior.Digests.ElementsAs(ctx, &before, false)...)
	}
	digests := map[string]attr.Value{}
	for name, f := range secrets {
		switch {
		case f.Sensitive.IsUnknown() || plan.Address.IsUnknown():
			digests[name] = types.StringUnknown()
		case !f.Sensitive.IsNull():
			salt, _, ok := strings.Cut(before[name].ValueString(), ":")
			if !ok {
				salt = system.Salt(plan.Address.ValueString(), name)
			}
			digests[name] = types.StringValue(salt + ":" + system.Digest(salt, []byte(f.Sensitive.ValueString())))
		}
	}
	if len(digests) > 0 {
		m, more := types.MapValue(types.StringType, digests)
		diags.Append(more...)
		plan.Digests = m
	}
}
