package gke

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func dataLoss(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, Description: description + " Default: false."}
}

// differing are the names of the arguments that have another value, sorted. An
// unknown value counts as different.
func differing(is, was map[string]attr.Value) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(is)), func(name string) bool { return is[name].Equal(was[name]) })
}

// checkDataLoss rejects a plan that recreates an object with data, or warns if that is
// allowed.
func checkDataLoss(j job, what string, why []string, allowed types.Bool, first string) {
	detail := fmt.Sprintf("The change of %s recreates the %s, and its data is lost.", strings.Join(why, ", "), what)
	at := path.Root("allow_data_loss")
	if allowed.ValueBool() {
		j.diags.AddAttributeWarning(at, "Data of the "+what+" is lost", detail)
		return
	}
	j.diags.AddAttributeError(at, "Data of the "+what+" would be lost", fmt.Sprintf("%s %s; or, where it may go, set allow_data_loss = true.", detail, first))
}
