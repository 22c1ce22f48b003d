package nvidia

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/gpu"
)

type reader struct {
	s       State
	version string // of the module in the kernel
	smi     []string
	smirc   int
}

func newReader() *reader {
	return &reader{s: State{Packages: map[string]string{}, Free: map[string]int64{}, Units: map[string]Unit{}, CDI: map[string]string{}, Files: map[string]string{}}}
}

func (r *reader) lines() host.Lines {
	s := &r.s
	return host.Lines{
		"kernel": host.Fields(6, r.kernel),
		"loaded": host.Fields(0, func(f []string) error {
			s.LoadedOpen, s.Loaded = strings.Contains(f[0], "Open Kernel Module"), versionIn(f[0])
			return nil
		}),
		"module": host.Fields(1, func(f []string) error {
			if r.version = f[0]; !versionForm.MatchString(f[0]) {
				return fmt.Errorf("%q is not a version of the driver", f[0])
			}
			return nil
		}),
		"nouveau": host.Fields(1, func(f []string) error {
			refs, loaded := strings.CutPrefix(f[0], "loaded")
			s.Nouveau = s.Nouveau || loaded
			s.NouveauBusy = s.NouveauBusy || loaded && strings.TrimSpace(refs) != "0" // a console uses it, most likely
			s.NouveauOff = s.NouveauOff || f[0] == "blacklisted"
			return nil
		}),
		"smirc":   host.Fields(1, func(f []string) (err error) { r.smirc, err = strconv.Atoi(f[0]); return err }),
		"smi":     host.Fields(1, host.Append(&r.smi)),
		"health":  host.Data(1, func(f []string) error { s.Health = gpu.Judge(readingsOf(f[0]), gpu.Expectation{}); return nil }),
		"user":    host.Fields(4, r.user),
		"mok":     host.Fields(1, host.FirstFieldIs(&s.MOK)),
		"runfile": host.Fields(1, host.Text(&s.RunFile)),
		"holder":  host.Fields(1, host.Append(&s.Holders)),
		"drm":     host.Fields(1, func(f []string) error { s.Displays = f[0] != "0"; return nil }),
		"rival":   host.Fields(2, func(f []string) error { s.Rivals = append(s.Rivals, Rival{f[0], f[1]}); return nil }),
		"pkg": host.Fields(3, func(f []string) error {
			if len(f[2]) >= 2 && f[2][1] == 'i' { // installed, whether wanted, held or half gone
				s.Packages[f[0]] = f[1]
			}
			return nil
		}),
		"hold": host.Fields(1, host.Append(&s.Held)),
		"pin":  host.Fields(3, func(f []string) error { s.Pins = append(s.Pins, Pin{f[0], f[1], f[2]}); return nil }),
		"free": host.Fields(2, func(f []string) error {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil { // where there is no such directory there is no number
				s.Free[f[0]] = n
			}
			return nil
		}),
		"units": host.Data(1, func(f []string) error {
			for name, u := range host.ReadUnits(f[0]) {
				s.Units[name] = Unit{Exists: u.Load == "loaded", Active: u.Active == "active" || u.Active == "activating", Enabled: strings.HasPrefix(u.File, "enabled"), File: u.File}
			}
			return nil
		}).ExactlyOnce(),
		"cdi": host.Fields(2, func(f []string) error { s.CDI[f[0]] = strings.TrimPrefix(f[1], "libcuda.so."); return nil }),
		"ctdversion": host.Fields(1, func(f []string) error {
			s.Containerd.Configured = true
			s.Containerd.Version, _ = strconv.Atoi(f[0])
			return nil
		}),
		"ctdimports": host.Fields(1, func([]string) error { s.Containerd.Configured, s.Containerd.Imports = true, true; return nil }),
		"oldinitrd":  host.Fields(1, host.Append(&s.OldInitrd)),
		"stopped":    host.Fields(1, host.Append(&s.Stopped)),
		"unread":     host.Fields(1, host.FirstFieldIs(&s.Unread, "due")),
		"file":       host.Data(2, func(f []string) error { s.Files[f[0]] = f[1]; return nil }),
	}
}

func (r *reader) finish() State {
	if r.version != "" {
		r.s.Loaded = r.version
	}
	if r.smirc != 0 || len(r.smi) > 0 {
		r.s.GPUs, r.s.Smi = parseSmi(r.smi, r.smirc)
	}
	return r.s
}

func (r *reader) kernel(f []string) error {
	if f[4] != "" && !versionForm.MatchString(f[4]) {
		return fmt.Errorf("%s: %q is not a version of the driver", f[0], f[4])
	}
	r.s.Kernels = append(r.s.Kernels, Kernel{Release: f[0], Image: f[1] == "y", Modules: f[2] == "y", Headers: f[3] == "y", Version: f[4], License: f[5]})
	return nil
}

func (r *reader) user(f []string) error {
	pid, err := strconv.Atoi(f[0])
	r.s.Users = append(r.s.Users, User{PID: pid, Name: f[1], Device: f[2], Container: f[3]})
	return err
}

// versionIn finds the driver's version in the first line of
// /proc/driver/nvidia/version; "" where there is none.
func versionIn(line string) string {
	for _, w := range strings.Fields(line) {
		if versionForm.MatchString(w) {
			return w
		}
	}
	return ""
}

// parseSmi reads nvidia-smi's table; why is its output where that is not a
// table.
func parseSmi(lines []string, rc int) (gpus []GPU, why string) {
	if rc != 0 {
		if rc == 124 {
			return nil, "it did not answer within two minutes"
		}
		return nil, fmt.Sprintf("%s (exit status %d)", strings.TrimSpace(strings.Join(lines, " ")), rc)
	}
	for _, line := range lines {
		f := strings.Split(line, ", ")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "No devices were found") {
			continue
		}
		if len(f) != 7 {
			return nil, fmt.Sprintf("it said %.100q", line)
		}
		g := GPU{Bus: busAddress(f[1]), Name: f[2], UUID: f[3], Driver: f[5], MIG: f[6] == "Enabled"}
		var err error
		if g.Index, err = strconv.Atoi(f[0]); err != nil {
			return nil, fmt.Sprintf("it said %.100q", line)
		}
		g.Memory, _ = strconv.ParseInt(f[4], 10, 64) // [N/A] on machines with unified memory
		gpus = append(gpus, g)
	}
	return gpus, ""
}

// busAddress turns nvidia-smi's 00000000:3B:00.0 into sysfs' 0000:3b:00.0.
func busAddress(s string) string {
	s = strings.ToLower(s)
	if len(s) > 12 && strings.HasPrefix(s, "0000") {
		s = s[len(s)-12:]
	}
	return s
}
