package pjrt

import "golang.org/x/sys/unix"

// mapMemory maps memory that is not Go's heap.
func mapMemory(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}

func unmapMemory(data []byte) error { return unix.Munmap(data) }
