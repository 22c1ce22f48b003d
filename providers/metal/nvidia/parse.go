package nvidia

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// mostLines bounds what a machine may say.
const mostLines = 20000

// parse reads what the observing script printed.
func parse(out []byte) (State, error) {
	s := State{Packages: map[string]string{}, Free: map[string]int64{}, Units: map[string]Unit{}, CDI: map[string]string{}, Files: map[string]string{}}
	lines := strings.Split(string(bytes.ToValidUTF8(out, []byte("?"))), "\n")
	if len(lines) > mostLines {
		return State{}, fmt.Errorf("%d lines are more than a machine should say", len(lines))
	}
	if lines[0] != "format 1" {
		return State{}, fmt.Errorf("it begins with %.40q", lines[0])
	}
	r := reader{s: &s}
	for _, line := range lines[1:] {
		word, rest, _ := strings.Cut(line, " ")
		if word == "end" {
			r.finish()
			return s, nil
		}
		if err := r.driver(word, rest); err != nil {
			return State{}, err
		}
	}
	return State{}, errors.New("it ends too early")
}

type reader struct {
	s      *State
	smi    []string
	smirc  int
	unitOf map[string]string
}

// driver reads the lines about what is installed and loaded.
func (r *reader) driver(word, rest string) (err error) {
	s := r.s
	switch word {
	case "kernel":
		return r.kernel(rest)
	case "loaded":
		s.LoadedOpen = strings.Contains(rest, "Open Kernel Module")
		if v := versionIn(rest); s.Loaded == "" {
			s.Loaded = v
		}
	case "module":
		if s.Loaded = rest; !versionForm.MatchString(rest) {
			return fmt.Errorf("/sys/module/nvidia/version: %q is no version of the driver", rest)
		}
	case "nouveau":
		refs, loaded := strings.CutPrefix(rest, "loaded")
		s.Nouveau = s.Nouveau || loaded
		s.NouveauBusy = s.NouveauBusy || loaded && strings.TrimSpace(refs) != "0" // a console uses it, most likely
		s.NouveauOff = s.NouveauOff || rest == "blacklisted"
	case "smirc":
		r.smirc, err = strconv.Atoi(rest)
	case "smi":
		r.smi = append(r.smi, rest)
	case "user":
		return r.user(rest)
	case "mok":
		s.MOK = true
	case "runfile":
		s.RunFile = rest
	case "holder":
		s.Holders = append(s.Holders, rest)
	case "drm":
		s.Displays = rest != "0"
	case "rival":
		kind, file, _ := strings.Cut(rest, " ")
		s.Rivals = append(s.Rivals, Rival{kind, file})
	default:
		return r.system(word, rest)
	}
	return err
}

// system reads the lines about packages, units and files.
func (r *reader) system(word, rest string) error {
	s := r.s
	switch word {
	case "pkg":
		f, err := fields("package", rest, 3)
		if err != nil {
			return err
		}
		if len(f[2]) >= 2 && f[2][1] == 'i' { // installed, whether wanted, held or half gone
			s.Packages[f[0]] = f[1]
		}
	case "hold":
		s.Held = append(s.Held, rest)
	case "pin":
		f, err := fields("apt preference", rest, 3)
		if err != nil {
			return err
		}
		s.Pins = append(s.Pins, Pin{f[0], f[1], f[2]})
	case "free":
		dir, kib, _ := strings.Cut(rest, " ")
		if n, err := strconv.ParseInt(kib, 10, 64); err == nil { // where there is no such directory there is no number
			s.Free[dir] = n
		}
	case "unit":
		return r.unitLine(rest)
	case "enabled":
		r.endUnit()
		name, is, _ := strings.Cut(rest, " ")
		u := s.Units[name]
		u.Enabled, u.File = strings.HasPrefix(is, "enabled"), is
		s.Units[name] = u
	case "cdi":
		file, lib, _ := strings.Cut(rest, " ")
		s.CDI[file] = strings.TrimPrefix(lib, "libcuda.so.")
	case "ctdversion":
		s.Containerd.Configured = true
		s.Containerd.Version, _ = strconv.Atoi(rest)
	case "ctdimports":
		s.Containerd.Configured, s.Containerd.Imports = true, true
	case "file":
		name, content, _ := strings.Cut(rest, " ")
		b, err := base64.StdEncoding.DecodeString(content)
		if err != nil {
			return fmt.Errorf("file %s: %w", name, err)
		}
		s.Files[name] = string(b)
	case "oldinitrd":
		s.OldInitrd = append(s.OldInitrd, rest)
	case "stopped":
		s.Stopped = append(s.Stopped, rest)
	case "nofile", "":
	default:
		return fmt.Errorf("line %.60q is not known", word+" "+rest)
	}
	return nil
}

func (r *reader) kernel(rest string) error {
	f, err := fields("kernel", rest, 6)
	if err != nil {
		return err
	}
	if f[4] != "" && !versionForm.MatchString(f[4]) {
		return fmt.Errorf("kernel %s: %q is no version of the driver", f[0], f[4])
	}
	r.s.Kernels = append(r.s.Kernels, Kernel{
		Release: f[0], Image: f[1] == "y", Modules: f[2] == "y", Headers: f[3] == "y",
		Version: f[4], License: f[5],
	})
	return nil
}

func (r *reader) user(rest string) error {
	f, err := fields("user of a GPU", rest, 4)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(f[0])
	if err != nil {
		return fmt.Errorf("user of a GPU %q: %w", rest, err)
	}
	r.s.Users = append(r.s.Users, User{PID: pid, Name: f[1], Device: f[2], Container: f[3]})
	return nil
}

// unitLine reads a property; systemctl show separates units by empty lines, in
// an order of properties that is its own.
func (r *reader) unitLine(rest string) error {
	if rest == "" {
		r.endUnit()
		return nil
	}
	key, value, ok := strings.Cut(rest, "=")
	if !ok {
		return fmt.Errorf("unit: %.60q is no property", rest)
	}
	if r.unitOf == nil {
		r.unitOf = map[string]string{}
	}
	r.unitOf[key] = value
	return nil
}

func (r *reader) endUnit() {
	if u := r.unitOf; u["Id"] != "" {
		r.s.Units[u["Id"]] = Unit{
			Exists: u["LoadState"] == "loaded",
			Active: u["ActiveState"] == "active" || u["ActiveState"] == "activating",
		}
	}
	r.unitOf = nil
}

func (r *reader) finish() {
	r.endUnit()
	if r.smirc != 0 || len(r.smi) > 0 {
		r.s.GPUs, r.s.Smi = parseSmi(r.smi, r.smirc)
	}
}

// fields splits a line at its tabs into exactly n fields.
func fields(what, line string, n int) ([]string, error) {
	f := strings.Split(line, "\t")
	if len(f) != n {
		return nil, fmt.Errorf("%s: %.80q has %d fields, want %d", what, line, len(f), n)
	}
	return f, nil
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

// parseSmi reads nvidia-smi's table; why says what it said instead.
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
