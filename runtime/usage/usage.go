package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Sample has the usage of a set of processes. Processor time and bytes are totals
// since the Meter was made or, for a control group, since the group was.
type Sample struct {
	At        time.Time     `json:"at"`
	CPU       time.Duration `json:"cpu"`
	Memory    int64         `json:"memory"`          // resident bytes, without the page cache
	Limit     int64         `json:"limit,omitempty"` // of memory, in bytes; 0: none is known
	Received  int64         `json:"received"`        // bytes of the network namespace, see Meter.Network
	Sent      int64         `json:"sent"`            // bytes
	Read      int64         `json:"read"`            // bytes from disks
	Written   int64         `json:"written"`         // bytes to disks
	Processes int           `json:"processes"`
	Partly    string        `json:"partly,omitempty"` // why numbers are missing
}

// CPUSince returns the mean number of busy processors since an earlier sample.
func (s Sample) CPUSince(earlier Sample) float64 {
	passed := s.At.Sub(earlier.At)
	if passed <= 0 {
		return 0
	}
	return max(0, (s.CPU-earlier.CPU).Seconds()/passed.Seconds())
}

// Meter takes samples. Only one goroutine calls its methods at a time.
type Meter struct {
	// Network is true where the network namespace belongs to the measured processes, as
	// in a pod. Otherwise network bytes stay 0: Linux does not count them for each
	// process.
	Network bool

	group string // folder of a control group; "" is processes
	roots func() []int
	proc  string
	read  func(name string) ([]byte, error)
	list  func(dir string) ([]string, error)
	page  int64

	known map[int]counts // measured in the sample before
	ended counts         // sums of processes that have ended since
	rest  int            // samples until the next search for new processes
}

// NewProcesses returns a meter of the processes that roots returns and of all
// their descendants. The time of a process that ends is counted until the last
// sample before its end.
func NewProcesses(roots func() []int) *Meter {
	return &Meter{roots: roots, proc: "/proc", read: os.ReadFile, list: listNames, page: int64(os.Getpagesize())}
}

// NewGroup returns a meter of a control group by its folder.
func NewGroup(folder string) *Meter {
	m := NewProcesses(nil)
	m.group = folder
	return m
}

// OwnGroup returns the folder of the control group (version 2) of this process,
// where it counts memory: the group of a container or of a service. Other
// processes may share it.
func OwnGroup() (folder string, ok bool) { return ownGroup("/proc/self/cgroup", "/sys/fs/cgroup") }

func ownGroup(list, root string) (string, bool) {
	text, err := os.ReadFile(list)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			folder := filepath.Join(root, filepath.Clean("/"+name))
			_, err := os.ReadFile(filepath.Join(folder, "memory.stat"))
			_, rooted := os.Stat(filepath.Join(folder, "memory.current")) // the machine's own group has none
			return folder, err == nil && rooted == nil
		}
	}
	return "", false
}

func listNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// Sample measures. Numbers that cannot be read are 0, and Partly says why.
func (m *Meter) Sample(now time.Time) (Sample, error) {
	s := Sample{At: now}
	var err error
	if m.group != "" {
		err = m.sampleGroup(&s)
	} else {
		err = m.sampleProcesses(&s)
	}
	if err != nil {
		return Sample{}, fmt.Errorf("measure usage: %w", err)
	}
	if m.Network {
		if err := m.sampleNetwork(&s); err != nil {
			s.Partly = err.Error()
		}
	}
	return s, nil
}

// sampleNetwork sums the interfaces of the namespace, except loopback: its bytes
// do not leave the machine.
func (m *Meter) sampleNetwork(s *Sample) error {
	text, err := m.read(filepath.Join(m.proc, "self/net/dev"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		name, numbers, ok := strings.Cut(line, ":")
		fields := strings.Fields(numbers)
		if !ok || len(fields) < 9 || strings.TrimSpace(name) == "lo" {
			continue
		}
		s.Received += number(fields[0])
		s.Sent += number(fields[8])
	}
	return nil
}

// number returns 0 for a text that is not a number, such as "max".
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
