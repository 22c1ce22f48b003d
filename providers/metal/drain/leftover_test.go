package drain

import "github.com/stokehq/stoke/providers/metal/host"

// Leftover is what a run that was cut off left to be undone: a node that it
// cordoned. Do undoes it.
func (n *Node) Leftover() []host.Change {
	if n == nil || n.Mark == nil {
		return nil
	}
	return []host.Change{{Fact: "node " + n.Name, Path: []string{"node"}, Have: "cordoned by " + n.Mark.String(), Want: "schedulable"}}
}
