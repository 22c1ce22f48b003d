package eval

import "github.com/hashicorp/hcl/v2"

// about is the Extra of a diagnostic that is about one object.
type about struct {
	address string
	next    any
}

// DiagnosticAddress is the object's address.
func (a about) DiagnosticAddress() string { return a.address }

// UnwrapDiagnosticExtra is what else is known of the diagnostic.
func (a about) UnwrapDiagnosticExtra() any { return a.next }

// About notes down in diagnostics which object they are about.
func About(address string, diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		d.Extra = about{address, d.Extra}
	}
	return diags
}

// addressOf is the object that a diagnostic is about, "" for none.
func addressOf(d *hcl.Diagnostic) string {
	if a, ok := d.Extra.(about); ok {
		return a.address
	}
	return ""
}
