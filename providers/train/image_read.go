package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/image"
)

func (r *imageResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state imageModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || r.settings == nil {
		return
	}
	if call := providers.CallFrom(ctx); call.Settling {
		r.settleImage(ctx, call.Operation, &state, resp)
		return
	}
	rec := imageRecord{}
	if req.Private != nil {
		rec = readImageRecord(ctx, req.Private)
	}
	before := rec
	found := r.settings.find(ctx, &state, &rec)
	resp.Diagnostics.Append(found.diags...)
	if found.diags.HasError() {
		return
	}
	if found.gone {
		resp.State.RemoveResource(ctx)
		return
	}
	rec.Missing = found.missing
	if len(found.missing) > 0 {
		state.lacking()
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	} else if !state.Reference.IsNull() && !state.Archive.Equal(state.Tarball) { // as earlier versions stored it
		state.Archive = state.Tarball
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	}
	r.settings.rebuilt(ctx, &state, &rec)
	if rec.Fingerprint != before.Fingerprint || rec.Archive != before.Archive || len(rec.Missing)+len(before.Missing) > 0 {
		resp.Diagnostics.Append(writeImageRecord(ctx, resp.Private, rec)...)
	}
}

// findings is what is left of an image at its destinations.
type findings struct {
	gone    bool     // no destination has anything of it
	missing []string // for people: what a destination has no more
	diags   diag.Diagnostics
}

// find looks at the destinations of the recorded image.
func (s *settings) find(ctx context.Context, m *imageModel, rec *imageRecord) (f findings) {
	destinations, gone := 0, 0
	if !m.Tarball.IsNull() {
		destinations++
		what, none, failed := m.findTarball(ctx, rec)
		f.add(what, failed)
		if none {
			gone++
		}
	}
	if !m.Push.IsNull() {
		destinations++
		what, none, failed := s.findPushed(ctx, m)
		f.add(what, failed)
		if none {
			gone++
		}
	}
	f.gone = gone == destinations
	return f
}

func (f *findings) add(what string, failed diag.Diagnostic) {
	if what != "" {
		f.missing = append(f.missing, what)
	}
	if failed != nil {
		f.diags.Append(failed)
	}
}

// findTarball checks the tarball and reports whether it is missing. A file with
// unchanged size and time is not read.
func (m *imageModel) findTarball(ctx context.Context, rec *imageRecord) (what string, gone bool, failed diag.Diagnostic) {
	at := path.Root("tarball")
	a, err := archiveOf(m)
	if err != nil {
		return "", false, diag.NewAttributeErrorDiagnostic(at, "Path cannot be resolved", err.Error()+".")
	}
	label, err := a.Label()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("writes %s again, which is gone", a), true, nil
	case errors.Is(err, image.ErrForeign), err == nil && label.Owner != m.ID.ValueString():
		return fmt.Sprintf("there is another file at %s", a), true, nil
	case err != nil:
		return "", false, diag.NewAttributeWarningDiagnostic(at, "Tarball cannot be read", capital(err)+". The state stays as it is.")
	case label.Digest != m.Digest.ValueString():
		return fmt.Sprintf("writes %s again, which holds another image", a), false, nil
	}
	now := stamp(a)
	if now == rec.Archive {
		return "", false, nil
	}
	if err := a.Verify(ctx); errors.Is(err, image.ErrDamaged) {
		return fmt.Sprintf("writes %s again, which is damaged", a), false, nil
	} else if err != nil {
		return "", false, diag.NewAttributeWarningDiagnostic(at, "Tarball cannot be read", capital(err)+". The state stays as it is.")
	}
	rec.Archive = now
	return "", false, nil
}

// findPushed checks the pushed image and reports whether it is missing.
func (s *settings) findPushed(ctx context.Context, m *imageModel) (what string, gone bool, failed diag.Diagnostic) {
	ref, tag, err := m.digestRef()
	if err != nil {
		return "", false, mistaken(path.Root("push"), "", err)
	}
	now, err := s.registry().Digest(ctx, tag)
	if err == nil && now == m.Digest.ValueString() {
		return "", false, nil
	}
	moved := err == nil
	if err == nil || errors.Is(err, image.ErrNotFound) {
		_, err = s.registry().Digest(ctx, ref)
	}
	switch {
	case errors.Is(err, image.ErrNotFound):
		return fmt.Sprintf("pushes %s again, which is gone", ref), true, nil
	case err != nil:
		return "", false, diag.NewAttributeWarningDiagnostic(path.Root("push"), "Pushed image cannot be read",
			capital(err)+". The state stays as it is.")
	case moved:
		return fmt.Sprintf("takes the tag %s back from %s", tag, short(now)), false, nil
	}
	return fmt.Sprintf("sets the tag %s again, which is gone", tag), false, nil
}

// rebuilt notes that files which look different still give the same image, so
// that they are not read again at every plan.
func (s *settings) rebuilt(ctx context.Context, m *imageModel, rec *imageRecord) {
	if s.unknown || m.Digest.IsNull() {
		return
	}
	spec, err := m.spec()
	if err != nil || s.equip(ctx, m, &spec) != nil {
		return // the plan says so, with the configuration's line
	}
	c, err := image.Collect(spec)
	if err != nil {
		return
	}
	defer c.Close()
	print, err := c.Fingerprint(m.BaseDigest.ValueString())
	if err != nil || print == rec.Fingerprint {
		return
	}
	if is, err := s.outcome(ctx, c, m, print); err == nil && is.digest == m.Digest.ValueString() {
		rec.Fingerprint = print
	}
}

// settleImage answers whether an interrupted create happened: by the mark in the
// tarball, and by the planned digest in the registry, where equal content is
// the same thing whoever pushed it.
func (r *imageResource) settleImage(ctx context.Context, operation string, state *imageModel, resp *resource.ReadResponse) {
	if operation == "" {
		resp.State.RemoveResource(ctx)
		return
	}
	state.ID = types.StringValue(imageID(operation))
	if !state.Tarball.IsNull() {
		a, err := archiveOf(state)
		if err == nil {
			err = a.Clean(state.ID.ValueString())
		}
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("tarball"), "Image cannot be looked for", capital(err)+".")
			return
		}
		if label, err := a.Label(); err == nil && label.Owner == state.ID.ValueString() && state.Digest.IsNull() {
			state.Digest = types.StringValue(label.Digest)
		}
	}
	if state.Digest.IsNull() { // pushed or not: pushing again is of no consequence
		resp.State.RemoveResource(ctx)
		return
	}
	var rec imageRecord
	found := r.settings.find(ctx, state, &rec)
	resp.Diagnostics.Append(found.diags...)
	if found.diags.HasError() {
		return
	}
	if found.gone {
		resp.State.RemoveResource(ctx)
		return
	}
	rec.Missing = found.missing
	if len(found.diags) > 0 { // kept, so that a destroy knows of it
		rec.Missing = append(rec.Missing, "pushes the image again: stoke could not verify the last push")
	}
	ref, err := state.reference(state.Digest.ValueString())
	if state.Reference, state.Archive = ref, state.Tarball; err != nil || len(rec.Missing) > 0 {
		state.lacking()
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	resp.Diagnostics.Append(writeImageRecord(ctx, resp.Private, rec)...)
}
