package providers

import "github.com/zclconf/go-cty/cty"

// Limits is how much at the same time a provider thinks good for what it works
// on; whoever runs the command may say otherwise. 0 is no limit.
type Limits struct {
	// AtOnce is how many of the provider's operations do no harm at the same
	// time because they do little but wait, each for another machine. Where more
	// than the usual number, a command that uses the provider works on so many,
	// and on no more than the usual number of each other provider's.
	AtOnce     int
	Operations int            // of the provider, whatever their types
	Types      map[string]int // of one type of resource or data source
	// PerHost limits operations on the same machine, of whatever type: Host
	// returns its name, "" if there is none or it is not known yet. The object is
	// the configuration, or the stored object for a deletion or a read.
	PerHost int
	Host    func(typeName string, object cty.Value) string
}
