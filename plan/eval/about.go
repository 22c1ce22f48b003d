package eval

import "github.com/hashicorp/hcl/v2"

// subject is the Extra of a diagnostic that is about one object.
type subject struct {
	address string
	next    any
}

// DiagnosticAddress is the object's address.
func (a subject) DiagnosticAddress() string { return a.address }

// UnwrapDiagnosticExtra is what else is known of the diagnostic.
func (a subject) UnwrapDiagnosticExtra() any { return a.next }

// AddSubject notes down in diagnostics which object they are about.
func AddSubject(address string, diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		d.Extra = subject{address, d.Extra}
	}
	return diags
}

// addressOf is the object that a diagnostic is about, "" for none.
func addressOf(d *hcl.Diagnostic) string {
	if a, ok := d.Extra.(subject); ok {
		return a.address
	}
	return ""
}
