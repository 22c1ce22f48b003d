package programtest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
)

// Loopback returns a loopback address for one test alone. A port at 127.0.0.1 may go
// to another test while the process that listened there is away; a port at this address
// does not. Only Linux has all of 127.0.0.0/8: other systems share 127.0.0.1.
func Loopback() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}
