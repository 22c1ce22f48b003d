package providers

import (
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Deferred is a provider's answer that it cannot plan or read something yet;
// a later plan, after others were applied, will. It is given only where the
// request says MayDefer.
type Deferred uint8

const (
	NotDeferred             Deferred = iota
	DeferredConfigUnknown            // the object's configuration has to be known
	DeferredProviderUnknown          // the provider's own configuration has to be known
	DeferredAbsent                   // something that it needs is not there yet
)

func deferral(d *tfprotov6.Deferred) Deferred {
	if d == nil {
		return NotDeferred
	}
	switch d.Reason {
	case tfprotov6.DeferredReasonResourceConfigUnknown:
		return DeferredConfigUnknown
	case tfprotov6.DeferredReasonProviderConfigUnknown:
		return DeferredProviderUnknown
	}
	return DeferredAbsent
}
