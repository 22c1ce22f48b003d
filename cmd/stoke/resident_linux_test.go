package main

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was relocated or may be written is not in the file: given back, it
// would come back as it was before.
func TestReadMappings(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 08:01 42                         /opt/stoke
Size:               1024 kB
Rss:                 512 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
00500000-00600000 r--p 00100000 08:01 42                         /opt/stoke
Rss:                 512 kB
Anonymous:             0 kB
00600000-00610000 r--p 00200000 08:01 42                         /opt/stoke
Rss:                  64 kB
Anonymous:            64 kB
00610000-00620000 rw-p 00210000 08:01 42                         /opt/stoke
Anonymous:             0 kB
00620000-00630000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
00630000-00640000 r--p 00000000 08:01 43                         /opt/stoke-trainer
Anonymous:             0 kB
00640000-00650000 r--p 00000000 08:01 42                         /opt/stoke
00650000-00660000 r--p 00000000 08:01 42                         /opt/stoke (deleted)
Anonymous:             0 kB
`
	want := mappings{{0x400000, 0x500000}, {0x500000, 0x600000}}
	if diff := cmp.Diff(want, readMappings(strings.NewReader(smaps), "/opt/stoke")); diff != "" {
		t.Error(diff)
	}
}

func TestForgetProgram(t *testing.T) {
	if len(programPages()) == 0 {
		t.Skip("this system does not say where the program is")
	}
	forgetProgram()
	for range 3 {
		runtime.GC()
	}
}
