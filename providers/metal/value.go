package metal

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// wholly reports whether values are known with all that is in them.
func wholly(ctx context.Context, values ...attr.Value) bool {
	for _, v := range values {
		t, err := v.ToTerraformValue(ctx)
		if err != nil || !t.IsFullyKnown() {
			return false
		}
	}
	return true
}

// failed makes one error of diagnostics, nil where there is none.
func failed(diags diag.Diagnostics) error {
	var all []error
	for _, d := range diags.Errors() {
		all = append(all, fmt.Errorf("%s: %s", d.Summary(), d.Detail()))
	}
	return errors.Join(all...)
}
