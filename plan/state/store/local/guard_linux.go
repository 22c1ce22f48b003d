package local

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// guard is a lock on the snapshot itself, of the kind that Terraform takes
// (fcntl), so that the two keep each other out. It belongs to an open file
// and not to the process, so that reading the snapshot does not lose it.
type guard struct{ f *os.File }

var errGuarded = errors.New("another program has locked the file")

// newGuard locks the file at path, if there is one; file systems without such
// locks go unguarded.
func newGuard(path string) (*guard, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &guard{}, nil
	}
	if err != nil {
		return nil, err
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		f.Close()
		return nil, errGuarded
	}
	return &guard{f}, nil
}

func (g *guard) release() {
	if g != nil && g.f != nil {
		g.f.Close()
	}
}
