package wire

import (
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// handle is a descriptor of memory without a name.
type handle struct{ fd int }

func (h *handle) close() { unix.Close(h.fd) } //nolint:errcheck // nothing is written through it

// seals keep the memory's size: access behind its end would kill the process.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// newMemory makes and maps memory of so many bytes.
func newMemory(size int) ([]byte, *handle, error) {
	fd, err := unix.MemfdCreate("stoke", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // Linux before 6.3
		fd, err = unix.MemfdCreate("stoke", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, nil, err
	}
	h := &handle{fd}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		err = unix.Fallocate(fd, 0, 0, int64(size)) // too little memory is an error here, and a signal later
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	var mem []byte
	if err == nil {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		h.close()
		return nil, nil, err
	}
	return mem, h, nil
}

// mapMemory maps memory that another process has made, of least to most bytes.
func (h *handle) mapMemory(least, most int64) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(h.fd, &st); err != nil {
		return nil, err
	}
	if got, err := unix.FcntlInt(uintptr(h.fd), unix.F_GET_SEALS, 0); err != nil || got&seals != seals {
		return nil, fmt.Errorf("its size is not sealed (%#x, %v)", got, err)
	}
	if st.Size < least || st.Size > most {
		return nil, fmt.Errorf("%d bytes: want %d to %d", st.Size, least, most)
	}
	return unix.Mmap(h.fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapMemory(mem []byte) { unix.Munmap(mem) } //nolint:errcheck // it was mapped as it is

// readShared reads from a socket. It passes attached descriptors to the segment.
func readShared(c *net.UnixConn, p []byte, s *segment) (int, error) {
	var control [64]byte
	n, m, _, _, err := c.ReadMsgUnix(p, control[:])
	if m > 0 {
		if gerr := giveRights(control[:m], s); err == nil {
			err = gerr
		}
	}
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return max(n, 0), err // below 0 after an error
}

// giveRights gives the first descriptor to the segment, and closes all others.
func giveRights(control []byte, s *segment) error {
	messages, err := unix.ParseSocketControlMessage(control)
	for i := range messages {
		fds, ferr := unix.ParseUnixRights(&messages[i])
		if ferr != nil {
			err = ferr
		}
		for _, fd := range fds {
			if gerr := s.give(&handle{fd}); gerr != nil {
				err = gerr
			}
		}
	}
	return err
}

// writeShared writes the first bytes of a frame with the memory of its body.
func writeShared(c *net.UnixConn, p []byte, h *handle) (int, error) {
	defer h.close()
	n, _, err := c.WriteMsgUnix(p, unix.UnixRights(h.fd), nil)
	return n, err
}
