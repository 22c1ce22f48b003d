package metal

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestSlowSudo: whoever waits hears why while it waits, and the plan says it again.
func TestSlowSudo(t *testing.T) {
	s := newSettings(connect.SSHSettings{}, newShared())
	defer s.close()
	var said []string
	ctx := providers.WithCall(context.Background(), &providers.Call{Progress: func(p providers.Progress) { said = append(said, p.Step) }})
	m := &hosttest.Machine{}
	s.pool.Slow(ctx, m.Name(), `add the line "127.0.1.1 gpu1" there`)
	var diags diag.Diagnostics
	s.noteSlowSudo(m, &diags)
	if len(said) != 1 || !strings.Contains(said[0], "sudo on 192.0.2.1 takes long") || len(diags) != 1 || !strings.Contains(diags[0].Detail(), "127.0.1.1 gpu1") {
		t.Errorf("said %q, and %v", said, diags)
	}
}
