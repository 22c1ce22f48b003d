package gke

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
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

// sameThing keeps what the state says where the configuration names the same thing by
// other words, such as after an import: what is fixed would be made anew for nothing.
type sameThing struct {
	same func(was, is naming) bool
	// projects are the arguments that say where it is, of which the first that is given
	// counts.
	projects []string
}

// naming is what an argument says, and the project of what it names by a part of its
// path.
type naming struct{ text, project string }

func (sameThing) Description(context.Context) string {
	return "Other words for the same thing are no difference."
}

func (s sameThing) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

// PlanModifyString is that of planmodifier.String.
func (s sameThing) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if !given(req.StateValue) || !given(req.PlanValue) || req.PlanValue.Equal(req.StateValue) {
		return
	}
	was, is := naming{text: req.StateValue.ValueString()}, naming{text: req.PlanValue.ValueString()}
	for _, name := range s.projects {
		var before, after types.String
		resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root(name), &before)...)
		resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root(name), &after)...)
		was.project = either(was.project, before.ValueString())
		is.project = either(is.project, after.ValueString())
	}
	is.project = either(is.project, was.project)
	if s.same(was, is) {
		resp.PlanValue = req.StateValue
	}
}

// sameIn is for things that are named by name or in full; one that is named alone is
// in a collection of the object's project.
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

// sameRange is for ranges of addresses, of which the new one may be a size alone,
// such as /14.
func sameRange(was, is naming) bool {
	return was.text == is.text || strings.HasPrefix(is.text, "/") && strings.HasSuffix(was.text, is.text)
}
