package coordinator

import (
	"fmt"
	"strings"
)

// admitNewcomers lets newcomers become holders of the parameters where that costs the least:
// no unit of the next update is computed yet, or too few holders are left.
func admitNewcomers(c *coordinator) bool {
	names := c.parameters.newcomers()
	if len(names) == 0 {
		return false
	}
	holders, begun := 0, c.evaluation != nil
	for _, m := range c.members {
		if c.parameters.serves(m.Member) {
			holders++
		}
	}
	if len(c.updates) > 0 {
		begun = begun || c.updates[0].missing < len(c.updates[0].units) || c.isMade()
	}
	if begun && holders >= c.Spec.Worker.MinReplicas {
		return false
	}
	c.parameters.drop(fmt.Errorf("%s joins", strings.Join(names, ", ")))
	return true
}
