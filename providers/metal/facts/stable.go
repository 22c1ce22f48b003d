package facts

import (
	"math"
	"slices"
)

// Stable are the facts that do not change by themselves from one look to the
// next, for where they are stored and compared: without free space, listeners and
// the MAC addresses that bridges make up at each boot, and with a clock that is
// only told where it is too far off.
func (f Facts) Stable() Facts {
	f.Filesystems = slices.Clone(f.Filesystems)
	for i := range f.Filesystems {
		f.Filesystems[i].Free = 0
	}
	f.Space = slices.Clone(f.Space)
	for i := range f.Space {
		f.Space[i].Free, f.Space[i].FreeInodes = 0, 0
	}
	f.Listeners = []Listener{}
	f.NICs = slices.Clone(f.NICs)
	for i := range f.NICs {
		if !ofItsOwn(f.NICs[i]) { // docker0 and the like
			f.NICs[i].MAC = ""
		}
	}
	f.Clock.Resolution = 0
	if math.Abs(f.Clock.Offset) < MaxOffset {
		f.Clock.Offset = 0
	}
	return f
}
