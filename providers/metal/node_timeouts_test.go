package metal

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
)

// TestImportedNodeTimeouts: an imported node has the timeouts of the import, not those that the record on its machine was made with.
func TestImportedNodeTimeouts(t *testing.T) {
	limit := func(text string) timeouts.Value {
		of := map[string]attr.Type{"create": types.StringType}
		return timeouts.Value{Object: types.ObjectValueMust(of, map[string]attr.Value{"create": types.StringValue(text)})}
	}
	host := types.ObjectNull(connect.MachineTypes())
	recorded, declared := nodeModel{Timeouts: limit("1h")}, nodeModel{Timeouts: limit("2h")}
	recorded.Host, declared.Host = host, host
	recorded.adopt(t.Context(), declared)
	if !recorded.Timeouts.Equal(limit("2h")) {
		t.Errorf("timeouts are %v", recorded.Timeouts)
	}
}
