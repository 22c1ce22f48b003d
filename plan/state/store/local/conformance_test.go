package local

import (
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Place: func(t testing.TB) func() state.Store {
			path := filepath.Join(t.TempDir(), "terraform.tfstate")
			return func() state.Store { return newStore(t, path) }
		},
		Info: true, Unbreakable: true,
	})
}
