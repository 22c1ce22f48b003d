package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/image"
)

// imageKey is where private state keeps an imageRecord.
const imageKey = "image"

// imageRecord is what we know of an image beside its state.
type imageRecord struct {
	Fingerprint string   `json:"fingerprint"`       // of the inputs that gave the digest
	Archive     string   `json:"archive,omitempty"` // stamp of the tarball that was whole
	Missing     []string `json:"missing,omitempty"` // what Read did not find any more
}

func readImageRecord(ctx context.Context, p privateGetter) (rec imageRecord) {
	if data, diags := p.GetKey(ctx, imageKey); !diags.HasError() {
		_ = json.Unmarshal(data, &rec) // unreadable: everything is looked at again
	}
	return rec
}

func writeImageRecord(ctx context.Context, p privateSetter, rec imageRecord) diag.Diagnostics {
	data, err := json.Marshal(rec)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Record of the image is unwritable", err.Error())}
	}
	return p.SetKey(ctx, imageKey, data)
}

func (r *imageResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config imageModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if config.Push.IsNull() && config.Tarball.IsNull() {
		resp.Diagnostics.AddError("The image goes nowhere", "Say where it is pushed to, push = \"REGISTRY/REPOSITORY:TAG\", or where it is written, tarball = \"…\", or both.")
	}
	if !config.Push.IsNull() && !config.Push.IsUnknown() {
		if _, err := image.ParseTag(config.Push.ValueString()); err != nil {
			resp.Diagnostics.Append(mistaken(path.Root("push"), "", err))
		}
	}
	if !config.Tarball.IsUnknown() && !config.Tarball.IsNull() && (config.Tarball.ValueString() == "" || strings.ContainsRune(config.Tarball.ValueString(), 0)) {
		resp.Diagnostics.AddAttributeError(path.Root("tarball"), "Path is malformed", "Name the file that the image is written to.")
	}
	if !config.Base.IsNull() && !config.Base.IsUnknown() {
		if _, err := image.ParseBase(config.Base.ValueString()); err != nil {
			resp.Diagnostics.Append(mistaken(path.Root("base"), "", err))
		}
	}
	if config.isKnown() {
		if _, err := config.spec(); err != nil {
			resp.Diagnostics.Append(mistaken(path.Root("files"), "Image cannot be built", err))
		}
	}
}

// ModifyPlan looks at everything that goes into the image: what its digest will
// be is known while planning, and so is that it cannot be built.
func (r *imageResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.settings == nil || r.settings.unknown {
		return
	}
	if req.Plan.Raw.IsNull() {
		r.planImageDestroy(ctx, req, resp)
		return
	}
	var plan, prior imageModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	exists := !req.State.Raw.IsNull()
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	p := &imagePlanning{settings: r.settings, plan: &plan, resp: resp}
	if exists {
		p.prior, p.record = &prior, readImageRecord(ctx, req.Private)
	}
	p.run(ctx)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// planImageDestroy says what stays.
func (r *imageResource) planImageDestroy(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var prior imageModel
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	if !resp.Diagnostics.HasError() && !prior.Push.IsNull() {
		leaving(ctx, resp, &prior)
	}
}

// leaving notes the effect on a pushed image that is no longer declared.
func leaving(ctx context.Context, resp *resource.ModifyPlanResponse, prior *imageModel) {
	if prior.Delete.ValueBool() {
		note(ctx, resp, path.Root("push"), providers.NoteDisruption, fmt.Sprintf("deletes %s with all tags of its digest: nodes without it can no longer pull it", prior.Push.ValueString()))
		return
	}
	note(ctx, resp, path.Root("push"), providers.NoteFact, fmt.Sprintf("%s stays in the registry; with delete_on_destroy = true, applied before, it would be deleted", prior.Push.ValueString()))
}

// imagePlanning is one call of ModifyPlan.
type imagePlanning struct {
	settings *settings
	plan     *imageModel
	prior    *imageModel // nil where there is none
	record   imageRecord
	resp     *resource.ModifyPlanResponse
}

func (p *imagePlanning) run(ctx context.Context) {
	p.plan.ID = types.StringUnknown()
	if p.prior != nil {
		p.plan.ID = p.prior.ID
	}
	if !p.plan.isKnown() {
		p.plan.forget()
		return
	}
	spec, err := p.plan.spec()
	if err != nil {
		p.resp.Diagnostics.Append(mistaken(path.Root("files"), "Image cannot be built", err))
		return
	}
	if failed := p.settings.equip(ctx, p.plan, &spec); failed != nil {
		p.resp.Diagnostics.Append(failed)
		return
	}
	if spec.Root() {
		note(ctx, p.resp, path.Root("user"), providers.NoteFact, "the image starts as root: its pods do not pass the Pod Security level restricted")
	}
	base, known := p.base(ctx)
	if p.resp.Diagnostics.HasError() {
		return
	}
	p.plan.BaseDigest = base
	p.contents(ctx, spec, known)
	if p.resp.Diagnostics.HasError() {
		return
	}
	p.destinations(ctx)
}

// base says what the base points to now. known is false where nobody can tell.
func (p *imagePlanning) base(ctx context.Context) (digest types.String, known bool) {
	if p.plan.Base.IsNull() {
		return types.StringNull(), true
	}
	ref, err := image.ParseBase(p.plan.Base.ValueString())
	if err != nil {
		p.resp.Diagnostics.Append(mistaken(path.Root("base"), "", err))
		return types.StringNull(), false
	}
	if d, ok := ref.(name.Digest); ok {
		return types.StringValue(d.DigestStr()), true
	}
	before := types.StringNull()
	if p.prior != nil && p.prior.Base.Equal(p.plan.Base) {
		before = p.prior.BaseDigest
	}
	now, err := p.settings.registry().Digest(ctx, ref)
	switch {
	case err == nil && !before.IsNull() && before.ValueString() != now:
		note(ctx, p.resp, path.Root("base"), providers.NoteFact, fmt.Sprintf("%s has moved from %s to %s", ref, short(before.ValueString()), short(now)))
		return types.StringValue(now), true
	case err == nil:
		return types.StringValue(now), true
	case !before.IsNull():
		// What was built from it is ours: it is not a reason to build again.
		p.resp.Diagnostics.AddAttributeWarning(path.Root("base"), "Base image cannot be read", fmt.Sprintf("%s. The plan uses its last known digest: %s.", capital(err), before.ValueString()))
		return before, true
	case errors.Is(err, image.ErrUnreachable):
		note(ctx, p.resp, path.Root("base"), providers.NoteFact, fmt.Sprintf("the digest is known after apply: %s", err))
		return types.StringUnknown(), false
	}
	p.resp.Diagnostics.Append(baseFailure(ref, err))
	return types.StringNull(), false
}

// contents plans what is in the image, and its digest.
func (p *imagePlanning) contents(ctx context.Context, spec image.Spec, known bool) {
	c, err := image.Collect(spec)
	if err != nil {
		p.resp.Diagnostics.Append(mistaken(path.Root("files"), "Image cannot be built", err))
		return
	}
	defer c.Close()
	if missing := c.MissingGPUFiles(); len(missing) > 0 {
		note(ctx, p.resp, path.Root("gpu"), providers.NoteFact, "GPUs also need "+strings.Join(missing, ", ")+
			": none of the image's own files, so that the base must have them")
	}
	if !known {
		p.unknown(ctx, c)
		return
	}
	print, err := c.Fingerprint(p.plan.BaseDigest.ValueString())
	if err != nil {
		p.resp.Diagnostics.AddError("Image cannot be built", err.Error()+".")
		return
	}
	if p.prior != nil && print == p.record.Fingerprint && !p.prior.Digest.IsNull() && !p.prior.Contents.IsNull() {
		p.plan.keep(p.prior)
		return
	}
	is, err := p.settings.outcome(ctx, c, p.plan, print)
	switch {
	case errors.Is(err, image.ErrUnreachable):
		note(ctx, p.resp, path.Root("base"), providers.NoteFact, fmt.Sprintf("the digest is known after apply: %s", err))
		p.unknown(ctx, c)
		return
	case err != nil:
		p.resp.Diagnostics.Append(buildFailure(p.plan, err))
		return
	}
	p.plan.describe(is)
	// Only if there is nothing to apply: a failed apply would leave this record
	// next to the prior state.
	if p.prior != nil && p.prior.Digest.Equal(p.plan.Digest) && p.prior.Contents.Equal(p.plan.Contents) {
		p.record.Fingerprint = print
		p.resp.Diagnostics.Append(writeImageRecord(ctx, p.resp.Private, p.record)...)
	}
}

// unknown plans an image whose base nobody can look at: its files are known all
// the same.
func (p *imagePlanning) unknown(ctx context.Context, c *image.Contents) {
	base := p.plan.BaseDigest
	p.plan.forget()
	p.plan.BaseDigest = base
	sums, err := c.Sums(ctx)
	if err != nil {
		p.resp.Diagnostics.Append(buildFailure(p.plan, err))
		return
	}
	p.plan.Contents = contentsValue(sums)
}

// destinations plans the reference, and says what is in the way.
func (p *imagePlanning) destinations(ctx context.Context) {
	if p.plan.Digest.IsUnknown() {
		p.plan.Reference = types.StringUnknown()
	} else {
		ref, err := p.plan.reference(p.plan.Digest.ValueString())
		if err != nil {
			p.resp.Diagnostics.Append(mistaken(path.Root("push"), "", err))
			return
		}
		p.plan.Reference = ref
	}
	if p.prior == nil || !p.prior.Archive.Equal(p.plan.Tarball) || !p.prior.Digest.Equal(p.plan.Digest) {
		p.plan.Archive = types.StringUnknown()
	} else {
		p.plan.Archive = p.prior.Archive
	}
	if p.plan.Tarball.IsNull() {
		p.plan.Archive = types.StringNull()
	}
	moved := p.prior == nil || !p.prior.Push.Equal(p.plan.Push)
	if p.prior != nil {
		for _, what := range p.record.Missing {
			note(ctx, p.resp, path.Root("reference"), providers.NoteFact, what)
		}
		if moved && !p.prior.Push.IsNull() {
			leaving(ctx, p.resp, p.prior)
		}
	}
	if !p.plan.Push.IsNull() && !p.plan.Push.IsUnknown() && (moved || !p.plan.Digest.Equal(p.prior.Digest)) {
		p.tag(ctx)
	}
	if !p.plan.Tarball.IsNull() && !p.plan.Tarball.IsUnknown() {
		p.tarball(ctx)
	}
}

// tag says what a push takes the tag from.
func (p *imagePlanning) tag(ctx context.Context) {
	tag, err := image.ParseTag(p.plan.Push.ValueString())
	if err != nil {
		return // said already
	}
	now, err := p.settings.registry().Digest(ctx, tag)
	switch {
	case errors.Is(err, image.ErrNotFound):
	case err != nil:
		note(ctx, p.resp, path.Root("push"), providers.NoteFact, fmt.Sprintf("the push is tried all the same: %s", err))
	case now != p.plan.Digest.ValueString() && (p.prior == nil || now != p.prior.Digest.ValueString()):
		note(ctx, p.resp, path.Root("push"), providers.NoteDisruption, fmt.Sprintf("takes the tag %s from %s, which was pushed outside of stoke", tag, short(now)))
	}
}

// tarball refuses to write over a file that is not ours.
func (p *imagePlanning) tarball(ctx context.Context) {
	a, err := archiveOf(p.plan)
	if err != nil {
		p.resp.Diagnostics.AddAttributeError(path.Root("tarball"), "Path cannot be resolved", err.Error()+".")
		return
	}
	label, err := a.Label()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.resp.Diagnostics.Append(noFolder(a)...)
	case err != nil && !errors.Is(err, image.ErrForeign):
		p.resp.Diagnostics.AddAttributeError(path.Root("tarball"), "Tarball cannot be read", err.Error()+".")
	case err != nil || p.prior != nil && label.Owner != p.prior.ID.ValueString():
		p.resp.Diagnostics.Append(inTheWay(a))
	case p.prior == nil:
		// A tarball of the object that this one replaces is removed before this
		// one is made.
		note(ctx, p.resp, path.Root("tarball"), providers.NoteFact, fmt.Sprintf("%s was written by another train_image; while it is there, apply does not write over it", a))
	}
}

func (m *imageModel) describe(is outcome) {
	m.Digest, m.Size, m.Contents = types.StringValue(is.digest), wholeNumber(is.size), contentsValue(is.contents)
}

func contentsValue(sums map[string]string) types.Map {
	elements := make(map[string]attr.Value, len(sums))
	for name, sum := range sums {
		elements[name] = types.StringValue(sum)
	}
	return types.MapValueMust(types.StringType, elements)
}

// short is a digest that people can compare.
func short(digest string) string {
	if len(digest) > 19 {
		return digest[:19] + "…"
	}
	return digest
}
