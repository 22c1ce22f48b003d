package dataset

import (
	"os"

	"golang.org/x/sys/unix"
)

// prefetchBytes is the size of one request: of a larger one the kernel reads only
// as much as the readahead of the device, by default this.
const prefetchBytes = 128 << 10

// prefetch makes the kernel read a part of the file into the page cache. After an
// error the records are read later, by Read.
func prefetch(f *os.File, offset, length int64) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		for end := offset + length; offset < end; {
			n := min(prefetchBytes-offset%prefetchBytes, end-offset)
			if unix.Fadvise(int(fd), offset, n, unix.FADV_WILLNEED) != nil {
				return
			}
			offset += n
		}
	})
}
