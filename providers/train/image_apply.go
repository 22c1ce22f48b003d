package train

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/image"
)

// imageID names one resource; it follows from the operation that creates it.
func imageID(operation string) string {
	if operation == "" {
		var b [8]byte
		rand.Read(b[:]) // never fails
		return "image-" + hex.EncodeToString(b[:])
	}
	sum := sha256.Sum256([]byte("stoke image of operation " + operation))
	return "image-" + hex.EncodeToString(sum[:8])
}

func (r *imageResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan imageModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := plan.Timeouts.Create(ctx, noLimit)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	plan.ID = types.StringValue(imageID(providers.CallFrom(ctx).Operation))
	done, rec, failed := r.settings.publish(ctx, &plan)
	resp.Diagnostics.Append(failed...)
	if failed.HasError() {
		if !done {
			return
		}
		// One of two destinations has it: the next plan goes on there.
		providers.CallFrom(ctx).KeepOnError()
		plan.lacking()
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(writeImageRecord(ctx, resp.Private, rec)...)
}

func (r *imageResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, prior imageModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := plan.Timeouts.Update(ctx, noLimit)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done, rec, failed := r.settings.publish(ctx, &plan)
	resp.Diagnostics.Append(failed...)
	if failed.HasError() {
		if !done {
			return // the state stays
		}
		plan.lacking()
		plan.Tarball = prior.Tarball // the tarball is what failed: the old one is removed once the new one is there
	}
	if left := r.settings.leave(ctx, &prior, &plan); left != nil {
		resp.Diagnostics.Append(left)
		return // the state stays: only it has the destination that is left
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(writeImageRecord(ctx, resp.Private, rec)...)
}

// publish builds the image and brings it where it is to be, unless it is there.
// It fills in what was not known. done tells whether a destination has it even
// though another one failed.
func (s *settings) publish(ctx context.Context, m *imageModel) (done bool, rec imageRecord, diags diag.Diagnostics) {
	fail := func(d diag.Diagnostic) (bool, imageRecord, diag.Diagnostics) {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			d = diag.NewErrorDiagnostic("Publishing the image took too long", "It was given up after the time in timeouts. Apply again: what has been uploaded is not uploaded again.")
		}
		return done, rec, append(diags, d)
	}
	spec, err := m.spec()
	if err != nil {
		return fail(mistaken(path.Root("files"), "Image cannot be built", err))
	}
	if failed := s.equip(ctx, m, &spec); failed != nil {
		return fail(failed)
	}
	if failed := s.fixBase(ctx, m); failed != nil {
		return fail(failed)
	}
	c, err := image.Collect(spec)
	if err != nil {
		return fail(mistaken(path.Root("files"), "Image cannot be built", err))
	}
	defer c.Close()
	// Taken before the files are read: a change in between is seen next time.
	if rec.Fingerprint, err = c.Fingerprint(m.BaseDigest.ValueString()); err != nil {
		return fail(mistaken(path.Root("files"), "Image cannot be built", err))
	}
	providers.CallFrom(ctx).Report(providers.Progress{Step: "building", Percent: -1})
	b, err := s.build(ctx, c, m)
	if err != nil {
		return fail(buildFailure(m, err))
	}
	if failed := m.accept(b); failed != nil {
		return fail(failed)
	}
	if !m.Push.IsNull() {
		if failed := s.push(ctx, m, b); failed != nil {
			return fail(failed)
		}
		done = true
	}
	if !m.Tarball.IsNull() {
		if failed := s.writeTarball(ctx, m, b, &rec); failed != nil {
			return fail(failed)
		}
		done = true
	}
	return done, rec, diags
}

// fixBase says what the base is, where the plan could not.
func (s *settings) fixBase(ctx context.Context, m *imageModel) diag.Diagnostic {
	if m.Base.IsNull() {
		m.BaseDigest = types.StringNull()
		return nil
	}
	if !m.BaseDigest.IsUnknown() {
		return nil
	}
	ref, err := image.ParseBase(m.Base.ValueString())
	if err != nil {
		return mistaken(path.Root("base"), "", err)
	}
	digest, err := s.registry().Digest(ctx, ref)
	if err != nil {
		return baseFailure(ref, err)
	}
	m.BaseDigest = types.StringValue(digest)
	return nil
}

// accept takes what was built, which is what was planned.
func (m *imageModel) accept(b *image.Image) diag.Diagnostic {
	sums := contentsValue(b.Contents)
	if !m.Contents.IsUnknown() && !m.Contents.Equal(sums) || !m.Digest.IsUnknown() && m.Digest.ValueString() != b.Digest {
		name := "the base or the way images are put together"
		for at, v := range sums.Elements() {
			if !v.Equal(m.Contents.Elements()[at]) {
				name = at
			}
		}
		return diag.NewAttributeErrorDiagnostic(path.Root("files"), "Files changed since the plan", fmt.Sprintf("%s differs. Plan again.", name))
	}
	m.describe(outcome{b.Digest, b.Size, b.Contents})
	ref, err := m.reference(b.Digest)
	if err != nil {
		return mistaken(path.Root("push"), "", err)
	}
	m.Reference, m.Archive = ref, m.Tarball
	return nil
}

// lacking marks the image as incomplete, so that the plan restores each place
// that is null.
func (m *imageModel) lacking() { m.Reference, m.Archive = types.StringNull(), types.StringNull() }

// push pushes the image unless the tag points to it.
func (s *settings) push(ctx context.Context, m *imageModel, b *image.Image) diag.Diagnostic {
	tag, err := image.ParseTag(m.Push.ValueString())
	if err != nil {
		return mistaken(path.Root("push"), "", err)
	}
	if now, err := s.registry().Digest(ctx, tag); err == nil && now == b.Digest {
		return nil
	}
	call := providers.CallFrom(ctx)
	err = s.registry().Push(ctx, tag, b.Image, func(done, total int64) {
		p := providers.Progress{Step: fmt.Sprintf("pushing, %s of %s", megabytes(done), megabytes(total)), Percent: -1}
		if total > 0 {
			p.Percent = min(100, 100*float64(done)/float64(total))
		}
		call.Report(p)
	})
	if err != nil {
		return pushFailure(m, err)
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// writeTarball writes the tarball unless it is there, whole.
func (s *settings) writeTarball(ctx context.Context, m *imageModel, b *image.Image, rec *imageRecord) diag.Diagnostic {
	a, err := archiveOf(m)
	if err != nil {
		return diag.NewAttributeErrorDiagnostic(path.Root("tarball"), "Path cannot be resolved", err.Error()+".")
	}
	want := image.Label{Owner: m.ID.ValueString(), Digest: b.Digest, Tag: m.loadedAs(b.Digest)}
	label, err := a.Label()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, image.ErrForeign), err == nil && label.Owner != want.Owner:
		return inTheWay(a)
	case err != nil:
		return diag.NewAttributeErrorDiagnostic(path.Root("tarball"), "Tarball cannot be read", err.Error()+".")
	case label == want && a.Verify(ctx) == nil:
		rec.Archive = stamp(a)
		return nil
	}
	if missing := noFolder(a); len(missing) > 0 {
		return missing[0]
	}
	call := providers.CallFrom(ctx)
	err = a.Write(ctx, b.Image, want, func(done, total int64) {
		call.Report(providers.Progress{Step: fmt.Sprintf("writing, %s of %s", megabytes(done), megabytes(total)), Percent: 100 * float64(done) / float64(max(1, total))})
	})
	if err != nil {
		return mistaken(path.Root("tarball"), "Tarball cannot be written", err)
	}
	rec.Archive = stamp(a)
	return nil
}

// leave gives up destinations that are no longer declared; now is nil for a
// destroy.
func (s *settings) leave(ctx context.Context, prior, now *imageModel) diag.Diagnostic {
	if !prior.Tarball.IsNull() && (now == nil || !now.Tarball.Equal(prior.Tarball)) {
		a, err := archiveOf(prior)
		if err == nil && !sameArchive(a, now) {
			err = a.Remove(prior.ID.ValueString())
		}
		if err != nil {
			return diag.NewAttributeErrorDiagnostic(path.Root("tarball"), "Tarball cannot be removed", capital(err)+".")
		}
	}
	if prior.Push.IsNull() || prior.Digest.IsNull() || !prior.Delete.ValueBool() || now != nil && now.Push.Equal(prior.Push) {
		return nil
	}
	ref, tag, err := prior.digestRef()
	if err != nil {
		return mistaken(path.Root("push"), "", err)
	}
	if now != nil && now.Reference.ValueString() == ref.String() {
		return nil // the new tag is of the same image
	}
	switch err := s.registry().Delete(ctx, ref); {
	case err == nil:
		return nil
	case errors.Is(err, image.ErrDenied):
		return diag.NewAttributeErrorDiagnostic(path.Root("push"), "Registry refuses to delete the image", fmt.Sprintf(
			"%s. Log in with `docker login %s` as a user with the right to delete, or set delete_on_destroy = false and apply that first.", capital(err), tag.RegistryStr()))
	default:
		return diag.NewAttributeErrorDiagnostic(path.Root("push"), "Image cannot be deleted", fmt.Sprintf(
			"%s. Where the registry deletes no images, set delete_on_destroy = false and apply that first.", capital(err)))
	}
}

// sameArchive tells that the new destination is the same file by another name.
func sameArchive(a image.Archive, now *imageModel) bool {
	if now == nil || now.Tarball.IsNull() {
		return false
	}
	b, err := archiveOf(now)
	return err == nil && a == b
}

func (r *imageResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state imageModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := state.Timeouts.Delete(ctx, 5*time.Minute)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if failed := r.settings.leave(ctx, &state, nil); failed != nil {
		resp.Diagnostics.Append(failed)
	}
}
