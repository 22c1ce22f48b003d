// Package firewall is the part of a machine that says who may connect to it:
// rules that follow from what the machine is (its role, the other nodes, the
// pods' network, the network plugin), kept in an nftables table of stoke's own
// (inet stoke), or as rules of ufw where the machine uses ufw.
//
// Spec is what is declared. It is turned into openings (who may reach what),
// and those into an NftTable or into commands of ufw; Observe reads the same lines
// back from the machine, so that a difference is a line. Connections lists who
// listens and who is connected, and Cuts which of them rules would cut.
//
// New rules are live before they are persistent: Apply arms a timer on the
// machine, loads them, and comes back by a connection of its own to confirm.
// Where that does not succeed, the machine itself goes back to the rules it
// had. Nobody else's table is ever touched, and traffic that is forwarded
// (between pods, say) is not judged.
package firewall
