package metal

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// declaredKey is where private state keeps what the last apply declared. The
// state has the observed packages. Without this record, a package that was
// removed by hand would be forgotten.
const declaredKey = "declared"

// unfinishedKey is the key of private data for a failed last apply: its record
// may have notes that neither the old nor the new declaration has.
const unfinishedKey = "unfinished"

type privateGetter interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type privateSetter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// saveDeclaredInState notes what is declared. It holds no more than the state would.
func saveDeclaredInState(ctx context.Context, p privateSetter, raw tftypes.Value) diag.Diagnostics {
	var diags diag.Diagnostics
	v, err := tfprotov6.NewDynamicValue(raw.Type(), raw)
	var b []byte
	if err == nil {
		b, err = json.Marshal(v.MsgPack)
	}
	if err != nil {
		diags.AddError("The declaration cannot be noted", err.Error())
		return diags
	}
	diags.Append(p.SetKey(ctx, declaredKey, b)...)
	return diags
}

// loadDeclaredFromState reads the note into a model; false without a note, or with a
// note of another version of the schema.
func loadDeclaredFromState(ctx context.Context, p privateGetter, s schema.Schema, into any) (bool, error) {
	b, diags := p.GetKey(ctx, declaredKey)
	if diags.HasError() || len(b) == 0 {
		return false, nil
	}
	var v tfprotov6.DynamicValue
	if err := json.Unmarshal(b, &v.MsgPack); err != nil {
		return false, fmt.Errorf("read what was declared: %w", err)
	}
	raw, err := v.Unmarshal(s.Type().TerraformType(ctx))
	if err != nil {
		return false, nil // a note of an older schema: the state has to do
	}
	state := tfsdk.State{Raw: raw, Schema: s}
	if state.Get(ctx, into).HasError() {
		return false, nil
	}
	return true, nil
}

func saveUnfinished(ctx context.Context, p privateSetter, failed bool) diag.Diagnostics {
	b, _ := json.Marshal(failed) // a truth value always encodes
	return p.SetKey(ctx, unfinishedKey, b)
}

// unfinished reports whether the last apply failed, so that a plan reads the
// record even if nothing else differs.
func unfinished(ctx context.Context, p privateGetter) bool {
	b, _ := p.GetKey(ctx, unfinishedKey)
	return string(b) == "true"
}
