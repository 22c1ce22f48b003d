package gke

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/stokehq/stoke/providers"
)

// The collections of the compute API that arguments name things of.
const (
	networks  = "global/networks"
	snapshots = "global/snapshots"
)

// inFull is the path of a thing that is named by its name, by a part of its path, in
// full or by its URL.
func inFull(name, project, collection string) string {
	if at := strings.Index(name, "projects/"); at >= 0 {
		return name[at:]
	}
	if !strings.Contains(name, "/") {
		name = collection + "/" + name
	}
	return "projects/" + project + "/" + name
}

// sameThing keeps the stored text where the configuration names the same thing by
// other words, such as after an import: otherwise an immutable argument would force a
// needless replacement.
type sameThing struct {
	same func(was, is naming) bool
	// projects are the arguments for its project; the first given one counts.
	projects []string
}

// naming is the text of an argument, and the project for a partial path.
type naming struct{ text, project string }

func (sameThing) Description(context.Context) string {
	return "Other words for the same thing are not a difference."
}

func (s sameThing) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

// PlanModifyString is that of planmodifier.String.
func (s sameThing) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if !isGiven(req.StateValue) || !isGiven(req.PlanValue) || req.PlanValue.Equal(req.StateValue) {
		return
	}
	was, is := naming{text: req.StateValue.ValueString()}, naming{text: req.PlanValue.ValueString()}
	for _, name := range s.projects {
		var before, after types.String
		resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root(name), &before)...)
		resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root(name), &after)...)
		was.project = firstNonEmpty(was.project, before.ValueString())
		is.project = firstNonEmpty(is.project, after.ValueString())
	}
	is.project = firstNonEmpty(is.project, was.project)
	if s.same(was, is) {
		resp.PlanValue = req.StateValue
	}
}

// sameIn is for things that are named by name or in full; a short name is in a
// collection of the object's project.
func sameIn(collection string) func(was, is naming) bool {
	return func(a, b naming) bool {
		return inFull(a.text, a.project, collection) == inFull(b.text, b.project, collection)
	}
}

// samePart is for things that are named by a part of their path, or in full.
func samePart(was, is naming) bool {
	a, b := was.text, is.text
	if len(a) > len(b) {
		a, b = b, a
	}
	if at := strings.Index(a, "projects/"); at >= 0 {
		a = a[at:]
	}
	return a == b || strings.HasSuffix(b, "/"+a)
}

// comparesWords reports whether a plan takes two names of one thing for the same.
func comparesWords(m planmodifier.String) bool {
	_, ok := m.(sameThing)
	return ok
}

// samePlace is for clusters and networks, whose names may lack words in between:
// LOCATION/NAME is projects/PROJECT/locations/LOCATION/clusters/NAME.
func samePlace(was, is naming) bool {
	long, short := placeParts(was.text), placeParts(is.text)
	text, in := was.text, is.project
	if len(long) < len(short) {
		long, short, text, in = short, long, is.text, was.project
	}
	if len(long) > len(short) && strings.Contains(text, "projects/") && in != "" && long[0] != in {
		return false
	}
	return slices.Equal(long[len(long)-len(short):], short)
}

// placeParts are the parts of a path that are names.
func placeParts(path string) []string {
	if at := strings.Index(path, "projects/"); at >= 0 {
		path = path[at:]
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] != "projects" {
		return parts
	}
	words := []string{"projects", "global", "locations", "zones", "regions", "clusters", "networks", "subnetworks", "secondaryRanges"}
	named := slices.DeleteFunc(slices.Clone(parts[:len(parts)-1]), func(p string) bool { return slices.Contains(words, p) })
	return append(named, parts[len(parts)-1])
}

// sameRange compares ranges of addresses. The new one may be only a size, such as
// /14.
func sameRange(was, is naming) bool {
	return was.text == is.text || strings.HasPrefix(is.text, "/") && strings.HasSuffix(was.text, is.text)
}

// ImportState takes over what is there.
func (l *life[M, P]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	state := P(new(M))
	if err := declare(ctx, &resp.State); err != nil {
		resp.Diagnostics.AddError("Configuration cannot be read", sentence(err))
		return
	}
	if !resp.State.Raw.IsNull() {
		resp.Diagnostics.Append(resp.State.Get(ctx, state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	j, err := l.job(state, &resp.Diagnostics)
	var named map[string]string
	if err == nil {
		named, err = state.parseImportID(j, req.ID)
	}
	if err != nil {
		resp.Diagnostics.AddError("Invalid import identifier", sentence(err))
		return
	}
	for name, value := range named {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// declare sets the state of an import to the configuration, as far as that is known. The read that follows
// keeps the words of each declared argument whose meaning Google confirms, and arguments that Google does not
// store. For an argument whose words a plan compares (sameThing) the state takes Google's words.
func declare(ctx context.Context, state *tfsdk.State) error {
	declared := providers.CallFrom(ctx).Declared
	if declared == nil {
		return nil
	}
	ty := state.Schema.Type().TerraformType(ctx)
	raw, err := declared.Unmarshal(ty)
	if err == nil {
		raw, err = nullUnknown(raw)
	}
	var all map[string]tftypes.Value
	if err == nil {
		err = raw.As(&all)
	}
	if err != nil {
		return err
	}
	for name, a := range state.Schema.GetAttributes() {
		if text, ok := a.(schema.StringAttribute); ok && a.IsComputed() && slices.ContainsFunc(text.PlanModifiers, comparesWords) {
			all[name] = tftypes.NewValue(all[name].Type(), nil)
		}
	}
	state.Raw = tftypes.NewValue(ty, all)
	return nil
}
