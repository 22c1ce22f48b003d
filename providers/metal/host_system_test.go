package metal

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/system"
)

// TestUnknownNames: a user whom nothing is going to make is an error already while
// planning; one whom a package may make is a warning.
func TestUnknownNames(t *testing.T) {
	declares := func(names ...string) *hostModel {
		m := &hostModel{}
		if names != nil {
			all := map[string]attr.Value{}
			for _, n := range names {
				all[n] = types.StringValue("")
			}
			m.Packages = types.MapValueMust(types.StringType, all)
		}
		return m
	}
	with := func(m, prior *hostModel) *hostModel { m.prior = prior; return m }
	spec := system.Spec{Timezone: "Etc/UTC", Files: map[string]system.File{"/etc/a": {Owner: "prometheus", Group: "root"}}}
	for _, c := range []struct {
		name  string
		model *hostModel
		want  diag.Severity
	}{
		{"no packages", declares(), diag.SeverityError},
		{"a new machine with packages", declares("prometheus"), diag.SeverityWarning},
		{"packages that are there", with(declares("prometheus"), declares("prometheus")), diag.SeverityError},
		{"one more package", with(declares("jq", "prometheus"), declares("jq")), diag.SeverityWarning},
	} {
		var diags diag.Diagnostics
		c.model.unknownNames(&diags, spec, system.Facts{Unknown: map[string]bool{"user prometheus": true}})
		if len(diags) != 1 || diags[0].Severity() != c.want {
			t.Errorf("%s: %v", c.name, diags)
		}
		diags = nil
		if c.model.unknownNames(&diags, spec, system.Facts{}); len(diags) > 0 {
			t.Errorf("%s: %v", c.name, diags)
		}
	}
}
