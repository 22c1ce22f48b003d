package train

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// note lets a remark ride beside the plan. An engine without a place for it
// shows a warning.
func note(ctx context.Context, resp *resource.ModifyPlanResponse, at path.Path, kind providers.NoteKind, text string) {
	var to cty.Path
	for _, step := range at.Steps() {
		if name, ok := step.(path.PathStepAttributeName); ok {
			to = to.GetAttr(string(name))
		}
	}
	if providers.CallFrom(ctx).AddNote(providers.Note{Path: to, Kind: kind, Text: text}) {
		return
	}
	const summary = "Effect of this change"
	if len(to) == 0 {
		resp.Diagnostics.AddWarning(summary, text+".")
		return
	}
	resp.Diagnostics.AddAttributeWarning(at, summary, text+".")
}

// capital begins an error as a sentence, whose full stop is left to the caller.
func capital(err error) string {
	text := strings.TrimRight(err.Error(), ".")
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
