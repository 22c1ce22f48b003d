package eval

import (
	"sync"
	"testing"

	"github.com/stokehq/stoke/modules/address"
)

// Many tasks ask a node that is done, as the data sources of a resource do
// whose depends_on they share. The race detector watches.
func TestNodeResourcesTogether(t *testing.T) {
	a := address.Resource{Mode: address.Managed, Type: "t", Name: "a"}
	b := address.Resource{Mode: address.Managed, Type: "t", Name: "b"}
	through := &Node{deps: []*Node{{Resource: &Resource{Addr: b}}, {Resource: &Resource{Addr: a}}}}
	n := &Node{deps: []*Node{{Resource: &Resource{Addr: a}}, through}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := n.Resources(); len(got) != 3 || got[0] != a || got[1] != b {
				t.Errorf("Resources() = %v, want a, b and a again by another node", got)
			}
		})
	}
	wg.Wait()
}
