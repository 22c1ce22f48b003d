// Package facts is what a machine is: its operating system, kernels, hardware,
// network, clock and what already runs there (Gather, one script in one round
// trip), what of that stands in the way of what is wanted (Preflight, Together),
// and whether machines reach each other (Reach).
//
// It changes nothing on a machine. What a machine says may be odd or hostile:
// texts are cleaned and bounded, and what could not be made sense of is listed
// (Facts.Unread), never guessed.
package facts
