package usage

import (
	"path/filepath"
	"strings"
	"time"
)

// sampleGroup reads the files of a control group, as the kernel's cgroup-v2.rst
// describes them. Processor time and memory are needed; the rest may be missing.
func (m *Meter) sampleGroup(s *Sample) error {
	cpu, err := m.readKeys("cpu.stat")
	if err != nil {
		return err
	}
	memory, err := m.readKeys("memory.stat")
	if err != nil {
		return err
	}
	s.CPU = time.Duration(cpu["usage_usec"]) * time.Microsecond
	s.Memory = memory["anon"] + memory["shmem"]
	if text, err := m.readGroup("memory.max"); err == nil {
		s.Limit = number(strings.TrimSpace(text))
	}
	if text, err := m.readGroup("cgroup.procs"); err == nil { // pids.current counts threads
		s.Processes = strings.Count(text, "\n")
	}
	text, err := m.readGroup("io.stat")
	if err != nil {
		s.Partly = err.Error()
		return nil
	}
	for field := range strings.FieldsSeq(text) {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "rbytes":
			s.Read += number(value)
		case "wbytes":
			s.Written += number(value)
		}
	}
	return nil
}

func (m *Meter) readGroup(name string) (string, error) {
	text, err := m.read(filepath.Join(m.group, name))
	return string(text), err
}

func (m *Meter) readKeys(name string) (map[string]int64, error) {
	text, err := m.readGroup(name)
	if err != nil {
		return nil, err
	}
	values := make(map[string]int64)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			values[key] = number(value)
		}
	}
	return values, nil
}
