package metal

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// isWhollyKnown reports whether values are known with all that is in them.
func isWhollyKnown(ctx context.Context, values ...attr.Value) bool {
	for _, v := range values {
		t, err := v.ToTerraformValue(ctx)
		if err != nil || !t.IsFullyKnown() {
			return false
		}
	}
	return true
}

// lastKnown is the first of some maps that is known, as that of the last look is
// where what was planned is not; null where none is.
func lastKnown(ctx context.Context, maps ...types.Map) types.Map {
	for _, m := range maps {
		if isWhollyKnown(ctx, m) {
			return m
		}
	}
	return types.MapNull(types.StringType)
}

// mapped is a map with other values; nil for one with nothing in it.
func mapped[A, B any](from map[string]A, to func(name string, value A) B) map[string]B {
	if len(from) == 0 {
		return nil
	}
	all := map[string]B{}
	for name, v := range from {
		all[name] = to(name, v)
	}
	return all
}

// failed makes one error of diagnostics, nil where there is none.
func failed(diags diag.Diagnostics) error {
	var all []error
	for _, d := range diags.Errors() {
		all = append(all, fmt.Errorf("%s: %s", d.Summary(), d.Detail()))
	}
	return errors.Join(all...)
}
