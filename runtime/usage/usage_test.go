package usage

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// machine is /proc and a control group in a folder; it counts reads.
type machine struct {
	t     *testing.T
	dir   string
	reads int
}

func newMachine(t *testing.T) *machine { return &machine{t: t, dir: t.TempDir()} }

func (m *machine) put(name, text string) {
	m.t.Helper()
	at := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// process writes the files of a process: ticks of user and system time, pages of
// memory, bytes read and written.
func (m *machine) process(pid, parent, start, user, system, pages, read, written int) {
	m.t.Helper()
	m.put(fmt.Sprintf("%d/stat", pid), fmt.Sprintf("%d (a ) (b) S %d 1 1 0 -1 0 0 0 0 0 %d %d 77 77 20 0 1 0 %d 99999 %d 0 0\n",
		pid, parent, user, system, start, pages))
	m.put(fmt.Sprintf("%d/io", pid), fmt.Sprintf("rchar: 9\nwchar: 9\nsyscr: 1\nsyscw: 1\nread_bytes: %d\nwrite_bytes: %d\ncancelled_write_bytes: 0\n", read, written))
}

func (m *machine) end(pid int) {
	m.t.Helper()
	if err := os.RemoveAll(filepath.Join(m.dir, fmt.Sprint(pid))); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) meter(roots ...int) *Meter {
	meter := NewProcesses(func() []int { return roots })
	meter.proc, meter.page = m.dir, 4096
	meter.read = func(name string) ([]byte, error) {
		m.reads++
		return os.ReadFile(name)
	}
	return meter
}

func (m *machine) sample(meter *Meter) Sample {
	m.t.Helper()
	m.reads = 0
	s, err := meter.Sample(time.Unix(100, 0))
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

func TestProcessesAndTheirDescendants(t *testing.T) {
	m := newMachine(t)
	m.process(1, 0, 1, 500, 500, 1000, 9, 9) // not ours
	m.process(10, 1, 5, 100, 50, 3, 1000, 2000)
	m.process(11, 10, 6, 10, 0, 2, 10, 20)
	m.process(12, 11, 7, 1, 1, 1, 1, 2)
	m.process(13, 1, 8, 9, 9, 9, 9, 9) // not ours
	meter := m.meter(10)
	s := m.sample(meter)
	want := Sample{At: time.Unix(100, 0), CPU: 1620 * time.Millisecond, Memory: 6 * 4096, Read: 1011, Written: 2022, Processes: 3}
	if s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	// A process that ends keeps its part in the totals; its number may be used again.
	m.process(11, 10, 60, 1, 0, 4, 1, 1)
	m.end(12)
	want = Sample{At: time.Unix(100, 0), CPU: 1630 * time.Millisecond, Memory: 7 * 4096, Read: 1012, Written: 2023, Processes: 2}
	if s := m.sample(meter); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	m.end(10)
	m.end(11)
	want = Sample{At: time.Unix(100, 0), CPU: 1630 * time.Millisecond, Read: 1012, Written: 2023}
	if s := m.sample(meter); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

func TestReadsOfASample(t *testing.T) {
	m := newMachine(t)
	const ours, others = 8, 2000
	m.process(10, 1, 1, 0, 0, 0, 0, 0)
	for i := range ours - 1 {
		m.process(11+i, 10, 1, 0, 0, 0, 0, 0)
	}
	for i := range others {
		m.process(1000+i, 1, 1, 0, 0, 0, 0, 0)
	}
	meter := m.meter(10)
	const samples = 40
	all, most := 0, 0
	for range samples {
		if s := m.sample(meter); s.Processes != ours {
			t.Fatalf("%d processes", s.Processes)
		}
		all += m.reads
		most = max(most, m.reads)
	}
	if limit := samples * (2*ours + searchReads + 32); all > limit {
		t.Errorf("%d samples read %d files, want at most %d", samples, all, limit)
	}
	if most < others {
		t.Error("new processes are not looked for")
	}
	m.process(50, 11, 1, 0, 0, 0, 0, 0)
	for range samples {
		if m.sample(meter).Processes == ours+1 {
			return
		}
	}
	t.Error("a new process was not found")
}

func TestFewProcessesAreSearchedEachTime(t *testing.T) {
	m := newMachine(t)
	m.process(10, 1, 1, 0, 0, 0, 0, 0)
	meter := m.meter(10)
	m.sample(meter)
	m.process(11, 10, 1, 0, 0, 0, 0, 0)
	if s := m.sample(meter); s.Processes != 2 {
		t.Errorf("%d processes", s.Processes)
	}
	if m.reads != 2+2*2 {
		t.Errorf("%d reads", m.reads)
	}
}

func TestControlGroup(t *testing.T) {
	m := newMachine(t)
	m.put("group/cpu.stat", "usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n")
	m.put("group/memory.stat", "anon 4096\nfile 999999\nkernel 12\nshmem 8192\n")
	m.put("group/memory.max", "1048576\n")
	m.put("group/cgroup.procs", "1\n20\n300\n")
	m.put("group/io.stat", "8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n8:16 rbytes=1 wbytes=2 rios=1 wios=1\n")
	m.put("self/net/dev", "Inter-|   Receive  |  Transmit\n face |bytes packets\n    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n  eth0:100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n eth1: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n")
	meter := m.meter()
	meter.group = filepath.Join(m.dir, "group")
	meter.Network = true
	s := m.sample(meter)
	want := Sample{At: time.Unix(100, 0), CPU: 1500 * time.Millisecond, Memory: 12288, Limit: 1 << 20,
		Received: 105, Sent: 206, Read: 11, Written: 22, Processes: 3}
	if s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	if m.reads > 6 {
		t.Errorf("%d reads", m.reads)
	}
	m.put("group/memory.max", "max\n")
	if err := os.Remove(filepath.Join(meter.group, "io.stat")); err != nil {
		t.Fatal(err)
	}
	if s := m.sample(meter); s.Limit != 0 || s.Partly == "" {
		t.Errorf("%+v", s)
	}
	if err := os.Remove(filepath.Join(meter.group, "cpu.stat")); err != nil {
		t.Fatal(err)
	}
	if _, err := meter.Sample(time.Now()); err == nil {
		t.Error("a group without processor time is measured")
	}
}

func TestOwnGroup(t *testing.T) {
	m := newMachine(t)
	list := filepath.Join(m.dir, "cgroup")
	m.put("cgroup", "2:cpu:/x\n0::/pod/../pod/c\n")
	if _, ok := ownGroup(list, m.dir); ok {
		t.Error("a group without memory")
	}
	m.put("pod/c/memory.stat", "anon 1\n")
	if _, ok := ownGroup(list, m.dir); ok {
		t.Error("the machine's own group")
	}
	m.put("pod/c/memory.current", "1\n")
	if folder, ok := ownGroup(list, m.dir); !ok || folder != filepath.Join(m.dir, "pod/c") {
		t.Error(folder, ok)
	}
	m.put("cgroup", "0::/../../pod/c\n") // outside of the namespace
	if folder, _ := ownGroup(list, m.dir); !strings.HasPrefix(folder, m.dir) {
		t.Error(folder)
	}
	if _, ok := ownGroup(filepath.Join(m.dir, "none"), m.dir); ok {
		t.Error("no list of groups")
	}
}

func TestUnreadableDiskBytes(t *testing.T) {
	m := newMachine(t)
	m.process(10, 1, 1, 1, 1, 1, 5, 5)
	meter := m.meter(10)
	read := meter.read
	meter.read = func(name string) ([]byte, error) {
		if filepath.Base(name) == "io" {
			return nil, fs.ErrPermission
		}
		return read(name)
	}
	if s := m.sample(meter); s.Partly == "" || s.Processes != 1 || s.Read != 0 {
		t.Errorf("%+v", s)
	}
}

func TestCPUSince(t *testing.T) {
	a := Sample{At: time.Unix(10, 0), CPU: time.Second}
	b := Sample{At: time.Unix(14, 0), CPU: 3 * time.Second}
	if got := b.CPUSince(a); got != 0.5 {
		t.Error(got)
	}
	if got := a.CPUSince(a) + a.CPUSince(b); got != 0 {
		t.Error(got)
	}
}

// TestRealProcesses measures this process and a child.
func TestRealProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc here")
	}
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	meter := NewProcesses(func() []int { return []int{os.Getpid()} })
	meter.Network = true
	for total := 0; ; { // until the kernel has counted some time of this process
		s, err := meter.Sample(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if s.Processes < 2 || s.Memory < 1<<20 || s.Partly != "" {
			t.Fatalf("%+v", s)
		}
		if s.CPU > 0 {
			break
		}
		for i := range 1 << 20 {
			total += i
		}
		runtime.KeepAlive(total)
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
}
