package dataset

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// mostMapped is the size of the longest file that is mapped.
const mostMapped = 1 << 30

// mapped is a file whose pages are mapped: a short record at a random place is read without
// a system call. The file may be changed or cut meanwhile, as with any other read; a short one
// is read once, into memory of the process.
type mapped struct {
	file  *os.File
	short bool // it is copied when its first records are read
	hold  sync.Once
	mu    sync.RWMutex
	mem   []byte // its pages, or a copy of them; nil: it is closed
}

// mostCopied is the size of the longest file that is copied to memory of the process when its
// first records are read. The pages of a file lie at any places of the machine's memory: for each
// record at a random place, the processor looks up where its page is. On a virtual machine, that
// took five times as long as the read of a record of 789 bytes.
const mostCopied = 64 << 20

// mapFile maps a file of so many bytes; nil: it is read as other files are.
func mapFile(f *os.File, size int64) *mapped {
	if size <= 0 || size > mostMapped || isRemote(f) {
		return nil
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	return &mapped{file: f, short: size <= mostCopied, mem: mem}
}

// remoteSystems are the file systems of other machines and of programs, by the numbers of
// statfs(2). A page of theirs may take seconds, in which the whole process would stand still:
// Go's scheduler does not know of the wait for a page.
var remoteSystems = []int64{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, 0xff534d42, 0xfe534d42, // CIFS and SMB 2
	unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC,
}

// isRemote reports whether a file's pages may take long.
func isRemote(f *os.File) bool {
	var s unix.Statfs_t
	err := unix.Fstatfs(int(f.Fd()), &s)
	return err != nil || slices.Contains(remoteSystems, int64(s.Type)&0xffffffff)
}

// ReadAt implements io.ReaderAt. A page that cannot be read, because the file is shorter now or
// its device fails, is an error.
func (m *mapped) ReadAt(p []byte, at int64) (n int, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.mem == nil {
		return 0, os.ErrClosed
	}
	if at < 0 || at > int64(len(m.mem)) {
		return 0, io.EOF
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			if n, err = m.file.ReadAt(p, at); err == nil { // the page is there again
				return
			}
			if err != io.EOF {
				err = fmt.Errorf("%w (%v)", err, fault)
			}
		}
	}()
	if n = copy(p, m.mem[at:]); n < len(p) {
		err = io.EOF
	}
	return n, err
}

// load loads so many bytes at each place into the processor's caches. The processor waits for
// many places at a time, where copies of one after the other wait for each.
func (m *mapped) load(places []int64, size int) {
	m.hold.Do(m.copyShort)
	const line = 64 // bytes that a cache loads together
	var sum byte
	m.mu.RLock()
	defer m.mu.RUnlock()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }() // ReadAt reports it
	for _, at := range places {
		for end := min(at+int64(size), int64(len(m.mem))); at < end; at += line {
			sum ^= m.mem[at]
		}
	}
	runtime.KeepAlive(sum)
}

// isCopied reports whether all of the file is read with its first records.
func (m *mapped) isCopied() bool { return m.short }

// copyShort copies a short file. Where it cannot be read, its pages stay: ReadAt reports it.
func (m *mapped) copyShort() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mem == nil || !m.short {
		return
	}
	held, err := unix.Mmap(-1, 0, len(m.mem), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return
	}
	if _, err := m.file.ReadAt(held, 0); err != nil {
		unix.Munmap(held) //nolint:errcheck // it was mapped as it is
		return
	}
	unix.Munmap(m.mem) //nolint:errcheck // likewise
	m.mem = held
}

// close unmaps the file.
func (m *mapped) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mem != nil {
		unix.Munmap(m.mem) //nolint:errcheck // it was mapped as it is
		m.mem = nil
	}
}
