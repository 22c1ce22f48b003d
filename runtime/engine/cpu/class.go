package cpu

import (
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/cpu"
)

// Class names what the results of the engine depend on beside its input: the
// architecture and its level that Go compiles for, which decides whether it
// rounds once or twice where it multiplies and adds; and whether the processor
// has FMA, which Go's exponential function uses where it finds it. gonum's
// kernels are chosen by the architecture alone and use SSE on amd64. How many
// threads there are changes nothing in a deterministic run.
func (maker) Class() string {
	class := runtime.GOARCH
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "GOAMD64", "GOARM64", "GOPPC64", "GORISCV64":
				class += " " + s.Value
			}
		}
	}
	if cpu.X86.HasAVX && cpu.X86.HasFMA {
		class += " fma"
	}
	return class
}
