// Package facts describes a machine: its operating system, kernels, hardware,
// network, clock and running software (Gather, one script in one round trip),
// the obstacles to a declaration (Preflight, Together), and whether machines
// reach each other (Reach).
//
// It changes nothing on a machine. The answer of a machine may be odd or
// hostile: texts are cleaned and bounded, and lines that cannot be parsed are
// listed (Facts.Unread), never guessed.
package facts
