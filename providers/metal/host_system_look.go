package metal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/system"
)

// spec is the declaration in the package's terms, of nothing where of is nil; ok is
// false where something is unknown.
func (systemSection) spec(ctx context.Context, of *hostModel) (d declaredSystem, want system.Spec, ok bool, err error) {
	if of == nil {
		return d, want, true, nil
	}
	var diags diag.Diagnostics
	if d, ok = of.systemModel.read(ctx, of.config, &diags); ok {
		want, err = d.spec()
	}
	return d, want, ok && err == nil, errors.Join(err, failed(diags))
}

// look is spec with what the machine has of it.
func (s systemSection) look(ctx context.Context, m host.Machine, of *hostModel) (d declaredSystem, want system.Spec, have system.Facts, ok bool, err error) {
	if d, want, ok, err = s.spec(ctx, of); ok {
		have, err = system.Observe(ctx, m, want)
	}
	return d, want, have, ok && err == nil, err
}

func (s systemSection) observe(ctx context.Context, m host.Machine, declared, into *hostModel) error {
	from := *declared
	from.Digests = lastKnown(ctx, declared.Digests, into.Digests)
	into.systemModel = from.systemModel
	d, want, have, ok, err := s.look(ctx, m, &from)
	if err != nil || !ok {
		return err
	}
	return failed(into.systemModel.write(ctx, d, want, have))
}

func (m *systemModel) write(ctx context.Context, d declaredSystem, want system.Spec, have system.Facts) diag.Diagnostics {
	var diags, more diag.Diagnostics
	if want.Hostname != "" {
		m.Hostname = types.StringValue(have.Name.Display(want.Hostname))
	}
	if want.SwapOff {
		m.Swap = types.StringValue(have.Swap.Display())
	}
	if want.Timezone != "" {
		m.Timezone = types.StringValue(have.Timezone)
	}
	var modules []types.String
	for _, name := range d.modules {
		if have.Modules[name.ValueString()].Holds() {
			modules = append(modules, name)
		}
	}
	if d.modules != nil {
		m.Modules, diags = types.SetValueFrom(ctx, types.StringType, slices.Concat([]types.String{}, modules))
	}
	if d.sysctl != nil {
		values := map[string]string{}
		for k, v := range want.Sysctl {
			values[k] = have.Sysctl[k].Display(v)
		}
		m.Sysctl, more = types.MapValueFrom(ctx, types.StringType, values)
		diags.Append(more...)
	}
	if d.time != nil {
		m.Time, more = types.ObjectValueFrom(ctx, m.Time.AttributeTypes(ctx), observedTime(*d.time, *want.Time, have.Time))
		diags.Append(more...)
	}
	return append(diags, m.writeFiles(ctx, d, want, have)...)
}

func observedTime(declared timeModel, want system.Time, have *system.TimeFacts) timeModel {
	service := have.Service(want)
	if is := have.Display(want); is != service || service == "" {
		declared.Service = types.StringValue(is)
	}
	if len(want.Servers) > 0 && !slices.Equal(want.Servers, have.Servers(want)) {
		declared.Servers = values(have.Servers(want))
	}
	return declared
}

func (m *systemModel) writeFiles(ctx context.Context, d declaredSystem, want system.Spec, have system.Facts) diag.Diagnostics {
	if d.files == nil {
		return nil
	}
	files, digests := map[string]fileModel{}, map[string]attr.Value{}
	for name, w := range want.Files {
		h := have.Files[name]
		if h.Type == "absent" {
			continue
		}
		f := d.files[name]
		f.Sensitive = types.StringNull()
		if !h.Regular() {
			f.Content = types.StringValue("(" + h.Type + ")")
			files[name] = f
			continue
		}
		if w.Sensitive {
			digests[name] = types.StringValue(w.Salt + ":" + h.Digest)
		} else {
			f.Content = types.StringValue(h.Text(w))
		}
		if h.Mode != w.Mode {
			f.Mode = types.StringValue(system.ModeText(h.Mode))
		}
		if is := system.OwnerText(w.Owner, h.Owner); is != w.Owner {
			f.Owner = types.StringValue(is)
		}
		if is := system.OwnerText(w.Group, h.Group); is != w.Group {
			f.Group = types.StringValue(is)
		}
		files[name] = f
	}
	var diags, more diag.Diagnostics
	m.Files, diags = types.MapValueFrom(ctx, m.Files.ElementType(ctx), files)
	m.Digests = types.MapNull(types.StringType)
	if len(digests) > 0 {
		m.Digests, more = types.MapValue(types.StringType, digests)
	}
	return append(diags, more...)
}

func (s systemSection) changes(ctx context.Context, m host.Machine, want *hostModel, diags *diag.Diagnostics) []host.Change {
	_, spec, have, ok, err := s.look(ctx, m, want)
	if err != nil {
		diags.AddWarning("Operating system cannot be examined", fmt.Sprintf("%s. The changes of an apply are not "+
			"known.", err))
	}
	if !ok {
		return nil
	}
	addPartly(diags, "Settings cannot be made", errors.Join(system.Problems(spec, have)...),
		partialError{"sysctl", errors.Join(system.Problems(system.Spec{Sysctl: spec.Sysctl, Modules: spec.Modules}, have)...)},
		partialError{"files", errors.Join(system.Problems(system.Spec{Files: spec.Files}, have)...)})
	if err := system.NoTimeService(spec, have, slices.Collect(maps.Keys(want.Packages.Elements()))); err != nil && !want.Packages.IsUnknown() {
		diags.AddAttributeError(path.Root("time_sync"), "No time service", fmt.Sprintf("%s: %s.", m.Name(), err))
	}
	want.unknownNames(diags, spec, have)
	for _, doubt := range system.Doubts(spec, have) {
		diags.AddAttributeWarning(path.Root("kernel_modules"), "Kernel module is unknown", fmt.Sprintf("%s.", doubt))
	}
	if key, text := system.DockersForwarding(spec, have); key != "" {
		note(ctx, diags, providers.NoteFact, []string{"sysctl", key}, text)
	}
	return system.Table.Diff(spec, have)
}

// unknownNames returns the users, groups and time zone that the machine does not
// know. Packages are installed before files are written: planned packages may
// bring them.
func (m *hostModel) unknownNames(diags *diag.Diagnostics, spec system.Spec, have system.Facts) {
	none := m.Packages.IsNull() && m.ContainerdPackage.IsNull() && m.CUDA.IsNull()
	p := m.prior
	same := p != nil && p.Packages.Equal(m.Packages) && p.ContainerdPackage.Equal(m.ContainerdPackage) && p.CUDA.Equal(m.CUDA)
	for _, part := range []struct {
		argument string
		of       system.Spec
	}{{"timezone", system.Spec{Timezone: spec.Timezone}}, {"files", system.Spec{Files: spec.Files}}} {
		err := errors.Join(system.UnknownNames(part.of, have)...)
		switch {
		case err == nil:
		case none || same:
			diags.AddAttributeError(path.Root(part.argument), "Unknown user, group or time zone", list(err))
		default:
			diags.AddAttributeWarning(path.Root(part.argument), "User, group or time zone is unknown yet", list(err)+"\nUnless the packages that are installed first bring it, apply fails there.")
		}
	}
}

func (s systemSection) apply(ctx context.Context, m host.Machine, rec *host.Record, want *hostModel) error {
	if want.Digests.IsUnknown() || !isWhollyKnown(ctx, want.Digests) { // the content was not known when it was planned
		var diags diag.Diagnostics
		s.plan(ctx, nil, want, &diags)
		if err := failed(diags); err != nil {
			return err
		}
	}
	_, spec, have, ok, err := s.look(ctx, m, want)
	switch {
	case err != nil:
		return err
	case !ok:
		return errors.New("what is declared of the operating system is not known") // which no engine lets happen
	}
	return system.Apply(ctx, m, rec, spec, have)
}

func (s systemSection) undoing(ctx context.Context, m host.Machine, rec *host.Record, want *hostModel) ([]host.Change, error) {
	_, spec, ok, err := s.spec(ctx, want)
	if !ok {
		return nil, err
	}
	return system.Undoing(ctx, m, rec, spec)
}

func (systemSection) restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	return system.Restore(ctx, m, rec)
}
