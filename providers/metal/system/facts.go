package system

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Facts are what a machine showed.
type Facts struct {
	Name    *NameFacts
	Swap    *SwapFacts
	Modules map[string]ModuleFacts
	Sysctl  map[string]SysctlFacts
	// Beside are the values that the kernel sets with what turns forwarding on, by
	// path, where that is declared.
	Beside   map[string]string
	Docker   bool // it starts at boot
	Time     *TimeFacts
	Timezone string
	Files    map[string]FileFacts
	zoneSeen bool
	// Unknown are the time zone, users and groups that the machine does not have,
	// such as "user prometheus".
	Unknown map[string]bool
}

// FileFacts is a file as it is.
type FileFacts struct {
	Type         string // as stat calls it, "absent", or "blocked" where its folder is none
	Missing      string // the topmost folder on the way to it that there is not
	Digest       string // of a regular file, with the salt that was asked for
	Content      []byte // of a small open file whose digest is another than the one asked for
	Mode         fs.FileMode
	Owner, Group [2]string // number and name
	Size         int64
	Fixed        string // what nobody can change there (chattr +i): the file, or its folder
}

// parser reads what look prints, and gathers what belongs to several facts.
type parser struct {
	f                *Facts
	modules, sysctls []confFile
}

func newParser() *parser {
	return &parser{f: &Facts{Modules: map[string]ModuleFacts{}, Sysctl: map[string]SysctlFacts{}, Beside: map[string]string{}, Files: map[string]FileFacts{}, Unknown: map[string]bool{}}}
}

func (p *parser) lines() host.Lines {
	f := p.f
	lines := host.Lines{
		"hostname": host.Data(4, func(l []string) error {
			f.Name = &NameFacts{Live: l[0], Static: strings.TrimSpace(l[1]), Cloud: l[2], Hosts: l[3]}
			return nil
		}),
		"module":         host.Fields(2, func(l []string) error { return p.module(l[0], l[1]) }),
		"modules-load.d": host.Data(1, func(l []string) error { p.modules = readConf(l[0]); return nil }),
		"sysctl": host.Data(3, func(l []string) error {
			state := SysctlState(l[1])
			if !slices.Contains([]SysctlState{SysctlValue, SysctlMissing, SysctlUnreadable, SysctlReadOnly}, state) {
				return fmt.Errorf("%s is %q", l[0], state)
			}
			f.Sysctl[l[0]] = SysctlFacts{State: state, Live: normalise(l[2])}
			return nil
		}),
		"beside":   host.Fields(2, func(l []string) error { f.Beside[l[0]] = l[1]; return nil }),
		"docker":   host.Fields(1, host.FirstFieldIs(&f.Docker, "enabled")),
		"sysctl.d": host.Data(1, func(l []string) error { p.sysctls = readConf(l[0]); return nil }),
		"unknown":  host.Fields(2, func(l []string) error { f.Unknown[l[0]+" "+l[1]] = true; return nil }),
		"file":     host.Fields(0, p.file),
		"fixed": host.Fields(2, func(l []string) error {
			file, ok := f.Files[l[0]]
			if !ok {
				return fmt.Errorf("file %q was not asked for", l[0])
			}
			file.Fixed = l[1]
			f.Files[l[0]] = file
			return nil
		}),
		"timezone": host.Fields(1, func(l []string) error {
			f.zoneSeen = true
			if _, name, ok := strings.Cut(l[0], "zoneinfo/"); ok {
				f.Timezone = name
			}
			return nil
		}),
		"timeservices": host.Data(1, func(l []string) error { f.time().services = host.ReadUnits(l[0]); return nil }),
		"timefile":     host.Data(2, func(l []string) error { f.time().files[l[0]] = l[1]; return nil }),
	}
	for _, kind := range []string{"swaps", "fstab", "swapunits", "swapservices"} {
		lines[kind] = host.Data(1, func(l []string) error {
			if f.Swap == nil {
				f.Swap = &SwapFacts{}
			}
			f.Swap.read(kind, l[0])
			return nil
		})
	}
	return lines
}

func (f *Facts) time() *TimeFacts {
	if f.Time == nil {
		f.Time = &TimeFacts{files: map[string]string{}}
	}
	return f.Time
}

func (p *parser) settle() {
	atBoot := modulesAtBoot(p.modules)
	for name, mod := range p.f.Modules {
		mod.AtBoot = mod.State == ModuleBuiltin || mod.State == ModuleFeature || atBoot[underscored(name)]
		p.f.Modules[name] = mod
	}
	values := sysctlAtBoot(p.sysctls)
	for k, s := range p.f.Sysctl {
		canonical, _ := sysctlPath(k)
		s.AtBoot, s.From = values[canonical].value, values[canonical].file
		p.f.Sysctl[k] = s
	}
}

func (p *parser) file(l []string) error {
	if len(l) != 5 && len(l) != 11 {
		return fmt.Errorf("it has %d fields", len(l))
	}
	content, err := base64.StdEncoding.DecodeString(l[3])
	if err != nil {
		return fmt.Errorf("%s: %w", l[0], err)
	}
	f := FileFacts{Type: l[4], Missing: l[1], Digest: l[2], Content: content}
	if len(l) == 11 {
		mode, err := strconv.ParseUint(l[5], 8, 16)
		size, err2 := strconv.ParseInt(l[10], 10, 64)
		if err != nil || err2 != nil {
			return fmt.Errorf("%s: mode %q, size %q", l[0], l[5], l[10])
		}
		f.Mode, f.Size = fs.FileMode(mode), size
		f.Owner, f.Group = [2]string{l[6], l[7]}, [2]string{l[8], l[9]}
	}
	if f.Regular() && !hexSHA.MatchString(f.Digest) {
		return fmt.Errorf("%s has no digest", l[0])
	}
	p.f.Files[l[0]] = f
	return nil
}

func (f Facts) answers(want Spec) error {
	missing := func(what string) error { return fmt.Errorf("no answer about %s", what) }
	switch {
	case want.Hostname != "" && f.Name == nil:
		return missing("the host name")
	case want.SwapOff && f.Swap == nil:
		return missing("swap")
	case want.Time != nil && f.Time == nil:
		return missing("the clock")
	case want.Timezone != "" && !f.zoneSeen:
		return missing("the time zone")
	}
	for _, name := range want.Modules {
		if _, ok := f.Modules[name]; !ok {
			return missing("kernel module " + name)
		}
	}
	for k := range want.Sysctl {
		if _, ok := f.Sysctl[k]; !ok {
			return missing("sysctl " + k)
		}
	}
	for name := range want.Files {
		if _, ok := f.Files[name]; !ok {
			return missing("file " + name)
		}
	}
	return nil
}

// confFile is a file NAME.conf as systemd reads it: of those with one name the
// first counts, and they are read in the order of their names.
type confFile struct {
	path  string
	lines []string
}

// readConf splits what look's conf printed and puts it into the order in which
// it is read. A file outside of the folders, without the ending, comes last.
func readConf(data string) []confFile {
	parts := strings.Split(data, "\x00")
	var files, beside []confFile
	seen := map[string]bool{}
	for i := 0; i+1 < len(parts); i += 2 {
		c := confFile{path: parts[i], lines: strings.Split(parts[i+1], "\n")}
		name := path.Base(c.path)
		if !strings.HasSuffix(path.Dir(c.path), ".d") {
			beside = append(beside, c)
			continue
		}
		if !seen[name] {
			seen[name] = true
			files = append(files, c)
		}
	}
	slices.SortStableFunc(files, func(a, b confFile) int { return strings.Compare(path.Base(a.path), path.Base(b.path)) })
	return append(files, beside...)
}

func boots(state string) bool {
	return slices.Contains([]string{"enabled", "enabled-runtime", "generated", "static", "linked", "alias"}, state)
}
