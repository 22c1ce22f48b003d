// Package certificate is a run's own certificate: its processes and whoever
// launched it know each other by it, and by nothing else. There is no
// authority, no name and no date to check: a connection is trusted when the
// other end proves to hold the key of exactly this certificate.
//
// Make makes one; Pin is what those need who only connect, Certificate what
// those need who listen. Both are PEM, to be handed on as files or text.
package certificate
