package metal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/containerd"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// spec is the declaration in the package's terms, of nothing where of is nil; ok is
// false where something is unknown.
func (s containerdSection) spec(ctx context.Context, of *hostModel) (d declaredRuntime, want containerd.Spec, ok bool, err error) {
	if of == nil {
		return d, want, true, nil
	}
	var diags diag.Diagnostics
	if d, ok = of.containerdModel.read(ctx, &diags); ok {
		want = d.spec(s.settings)
	}
	return d, want, ok, failed(diags)
}

// look is spec with what the machine has of it.
func (s containerdSection) look(ctx context.Context, m host.Machine, of *hostModel) (d declaredRuntime, want containerd.Spec, have containerd.Facts, ok bool, err error) {
	if d, want, ok, err = s.spec(ctx, of); ok {
		have, err = containerd.Observe(ctx, m, want)
	}
	return d, want, have, ok && err == nil, err
}

func (s containerdSection) observe(ctx context.Context, m host.Machine, declared, into *hostModel) error {
	from := *declared
	from.Archives, from.State = lastKnown(ctx, declared.Archives, into.Archives), types.ObjectNull(runtimeStateTypes())
	into.containerdModel = from.containerdModel
	d, want, have, ok, err := s.look(ctx, m, &from)
	if err != nil || !ok {
		return err
	}
	return failed(into.containerdModel.write(ctx, d, want, have))
}

func (m *containerdModel) write(ctx context.Context, d declaredRuntime, want containerd.Spec, have containerd.Facts) diag.Diagnostics {
	var diags, more diag.Diagnostics
	if d.runtime != nil {
		r := *d.runtime
		if r.Mirrors != nil {
			r.Mirrors = observedMirrors(r.Mirrors, want, have)
		}
		m.Containerd, diags = types.ObjectValueFrom(ctx, m.Containerd.AttributeTypes(ctx), r)
		m.State, more = types.ObjectValueFrom(ctx, runtimeStateTypes(), observedState(have))
		diags.Append(more...)
	}
	if d.images == nil || !have.Seen && have.Version != "" {
		return diags // a containerd that does not run says nothing about images
	}
	images, archives := map[string]imageModel{}, map[string]attr.Value{}
	for ref, i := range d.images {
		h := have.Images[ref]
		if h.Digest == "" {
			continue
		}
		if h.Pinned != i.Pin.ValueBool() {
			i.Pin = types.BoolValue(h.Pinned)
		}
		images[ref] = i
		switch {
		case h.Archive != "":
			archives[ref] = types.StringValue(h.Archive)
		default:
			archives[ref] = types.StringValue("another image: " + h.Digest)
		}
	}
	m.Images, more = types.MapValueFrom(ctx, m.Images.ElementType(ctx), images)
	diags.Append(more...)
	m.Archives = types.MapNull(types.StringType)
	if len(archives) > 0 {
		m.Archives, more = types.MapValue(types.StringType, archives)
		diags.Append(more...)
	}
	return diags
}

func observedState(have containerd.Facts) runtimeState {
	text := func(s string) types.String {
		if s == "" {
			return types.StringNull()
		}
		return types.StringValue(s)
	}
	return runtimeState{Version: text(have.Version), Service: text(have.Service()), Config: text(have.Config), Proxy: text(have.ProxyText())}
}

// observedMirrors are the declared mirrors that the machine has; one whose file
// says something else is marked.
func observedMirrors(declared map[string]mirrorModel, want containerd.Spec, have containerd.Facts) map[string]mirrorModel {
	mirrors := map[string]mirrorModel{}
	for registry, m := range declared {
		switch have.MirrorText(registry) {
		case "":
			continue
		case want.Mirrors[registry].Text(registry):
		default:
			declared := texts(m.Endpoints)
			m.Endpoints = nil
			is := have.Endpoints(registry)
			if slices.Equal(is, declared) { // it is something else in there
				is = append(is, "(changed by hand)")
			}
			for _, url := range is {
				m.Endpoints = append(m.Endpoints, types.StringValue(url))
			}
		}
		mirrors[registry] = m
	}
	return mirrors
}

func (s containerdSection) changes(ctx context.Context, m host.Machine, want *hostModel, diags *diag.Diagnostics) []host.Change {
	_, spec, have, ok, err := s.look(ctx, m, want)
	if err != nil {
		diags.AddWarning("Container runtime cannot be examined", fmt.Sprintf("%s. The changes of an apply are not "+
			"known.", err))
	}
	if !ok {
		return nil
	}
	noteLost(ctx, diags, containerd.LostLines(spec, have))
	changes := containerd.Table.Diff(spec, have)
	for _, text := range containerd.RestartEffects(have, changes) {
		note(ctx, diags, providers.NoteDisruption, []string{"containerd"}, text)
	}
	return changes
}

// keepsRuntime refuses changes that remove the package of a container runtime which
// is declared: what configures it would find none.
func (m *containerdModel) keepsRuntime(changes []host.Change, diags *diag.Diagnostics) {
	at := "containerd"
	if m.Containerd.IsNull() {
		if at = "images"; m.Images.IsNull() {
			return
		}
	}
	for _, c := range changes {
		for _, name := range runtimePackages {
			if packages.Removes(c, name) {
				diags.AddAttributeError(path.Root(at), "containerd's package would be removed", fmt.Sprintf("The package %s "+
					"is no longer declared, and it was installed with containerd_package: apply would remove it, and %s needs "+
					"it. Declare containerd_package again, or take %[2]s out, too.", name, at))
			}
		}
	}
}

const maxLost = 8

func noteLost(ctx context.Context, diags *diag.Diagnostics, lines []string) {
	for i, line := range lines {
		if i == maxLost {
			line = fmt.Sprintf("and %d lines more", len(lines)-i)
		} else if i > maxLost {
			return
		} else if r := []rune(line); len(r) > 60 {
			line = string(r[:60]) + "…"
		}
		note(ctx, diags, providers.NoteFact, []string{"containerd"}, "replaces a foreign line: - "+line)
	}
}

func (s containerdSection) undoing(ctx context.Context, _ host.Machine, rec *host.Record, want *hostModel) ([]host.Change, error) {
	_, spec, ok, err := s.spec(ctx, want)
	if !ok {
		return nil, err
	}
	return containerd.Table.Undoing(rec, spec), nil
}

func (s containerdSection) apply(ctx context.Context, m host.Machine, rec *host.Record, want *hostModel) error {
	if !isWhollyKnown(ctx, want.Archives) { // a path was not known when it was planned
		var diags diag.Diagnostics
		want.Archives = s.archives(ctx, want.Images, &diags)
		if err := failed(diags); err != nil {
			return err
		}
	}
	_, spec, have, ok, err := s.look(ctx, m, want)
	switch {
	case err != nil:
		return err
	case !ok:
		return errors.New("what is declared of the container runtime is not known") // which no engine lets happen
	}
	if err := containerd.Apply(ctx, m, rec, spec, have); err != nil || isWhollyKnown(ctx, want.State) {
		return err
	}
	want.State = types.ObjectNull(runtimeStateTypes())
	if have, err = containerd.Observe(ctx, m, spec); err != nil || !spec.Config {
		return err
	}
	var diags diag.Diagnostics
	want.State, diags = types.ObjectValueFrom(ctx, runtimeStateTypes(), observedState(have))
	return failed(diags)
}

func (containerdSection) restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	return containerd.Restore(ctx, m, rec)
}
