package system

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Facts are what a machine showed.
type Facts struct {
	Name     *NameFacts
	Swap     *SwapFacts
	Modules  map[string]ModuleFacts
	Sysctl   map[string]SysctlFacts
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

const mostLines = 100_000

// parse reads what look printed.
func parse(out []byte) (Facts, error) {
	f := Facts{Modules: map[string]ModuleFacts{}, Sysctl: map[string]SysctlFacts{}, Files: map[string]FileFacts{}, Unknown: map[string]bool{}}
	lines := strings.Split(string(out), "\n")
	if len(lines) < 2 || lines[len(lines)-1] != "" || lines[len(lines)-2] != "end" {
		return Facts{}, fmt.Errorf("only a part of the answer arrived")
	}
	if len(lines) > mostLines {
		return Facts{}, fmt.Errorf("it answered %d lines", len(lines))
	}
	p := parser{f: &f}
	for i, line := range lines[:len(lines)-2] {
		if err := p.line(strings.Split(line, "\t")); err != nil {
			return Facts{}, fmt.Errorf("line %d of the answer: %w", i+1, err)
		}
	}
	p.settle()
	return f, nil
}

// parser gathers what belongs to several facts.
type parser struct {
	f                *Facts
	modules, sysctls []confFile
}

// shapes is how many fields each kind of line has.
var shapes = map[string]int{
	"hostname": 5, "swaps": 2, "fstab": 2, "swapunits": 2, "swapservices": 2, "module": 3, "modules-load.d": 2,
	"sysctl": 4, "sysctl.d": 2, "timeservices": 2, "timefile": 3, "timezone": 2, "unknown": 3, "fixed": 3,
}

func (p *parser) line(fields []string) error {
	kind := fields[0]
	if kind == "file" {
		return p.file(fields)
	}
	if n, ok := shapes[kind]; !ok || len(fields) != n {
		return fmt.Errorf("%.80q with %d fields is no fact", kind, len(fields))
	}
	var data []byte // the last field, where it is encoded
	if !slices.Contains([]string{"module", "timezone", "unknown", "fixed"}, kind) {
		b, err := base64.StdEncoding.DecodeString(fields[len(fields)-1])
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		data = b
	}
	f := p.f
	switch kind {
	case "hostname":
		f.Name = &NameFacts{Live: fields[1], Static: strings.TrimSpace(fields[2]), Cloud: fields[3], Hosts: string(data)}
	case "swaps", "fstab", "swapunits", "swapservices":
		if f.Swap == nil {
			f.Swap = &SwapFacts{}
		}
		return f.Swap.read(kind, string(data))
	case "module":
		return p.module(fields[1], fields[2])
	case "modules-load.d":
		p.modules = readConf(data)
	case "sysctl":
		state := SysctlState(fields[2])
		if !slices.Contains([]SysctlState{SysctlValue, SysctlMissing, SysctlUnreadable, SysctlReadOnly}, state) {
			return fmt.Errorf("sysctl %s is %q", fields[1], fields[2])
		}
		f.Sysctl[fields[1]] = SysctlFacts{State: state, Live: normalise(string(data))}
	case "sysctl.d":
		p.sysctls = readConf(data)
	case "timeservices", "timefile":
		if f.Time == nil {
			f.Time = &TimeFacts{}
		}
		return f.Time.read(kind, fields[1], string(data))
	case "unknown":
		f.Unknown[fields[1]+" "+fields[2]] = true
	case "fixed":
		file, ok := f.Files[fields[1]]
		if !ok {
			return fmt.Errorf("file %q was not asked for", fields[1])
		}
		file.Fixed = fields[2]
		f.Files[fields[1]] = file
	case "timezone":
		f.zoneSeen = true
		if _, name, ok := strings.Cut(fields[1], "zoneinfo/"); ok {
			f.Timezone = name
		}
	}
	return nil
}

// settle says of each value what the configuration files will make of it.
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

func (p *parser) file(fields []string) error {
	if len(fields) != 6 && len(fields) != 12 {
		return fmt.Errorf("a file with %d fields", len(fields))
	}
	content, err := base64.StdEncoding.DecodeString(fields[4])
	if err != nil {
		return fmt.Errorf("%s: %w", fields[1], err)
	}
	f := FileFacts{Type: fields[5], Missing: fields[2], Digest: fields[3], Content: content}
	if len(fields) == 12 {
		mode, err := strconv.ParseUint(fields[6], 8, 16)
		if err != nil {
			return fmt.Errorf("%s: mode %q", fields[1], fields[6])
		}
		size, err := strconv.ParseInt(fields[11], 10, 64)
		if err != nil {
			return fmt.Errorf("%s: size %q", fields[1], fields[11])
		}
		f.Mode, f.Size = fs.FileMode(mode), size
		f.Owner, f.Group = [2]string{fields[7], fields[8]}, [2]string{fields[9], fields[10]}
	}
	if strings.HasPrefix(f.Type, "regular") && !hexSHA.MatchString(f.Digest) {
		return fmt.Errorf("%s has no digest", fields[1])
	}
	p.f.Files[fields[1]] = f
	return nil
}

// answers checks that every question was answered.
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
func readConf(data []byte) []confFile {
	parts := strings.Split(string(data), "\x00")
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

// unitState is a unit as systemctl show tells of it.
type unitState struct{ load, active, file string }

// readUnits reads blocks of properties as systemctl show prints them. Several
// may be about one unit.
func readUnits(text string) map[string]unitState {
	units := map[string]unitState{}
	for block := range strings.SplitSeq(text, "\n\n") {
		is := map[string]string{}
		for line := range strings.SplitSeq(block, "\n") {
			if k, v, ok := strings.Cut(line, "="); ok {
				is[k] = v
			}
		}
		u := units[is["Id"]]
		for k, to := range map[string]*string{"LoadState": &u.load, "ActiveState": &u.active, "UnitFileState": &u.file} {
			if v, ok := is[k]; ok {
				*to = v
			}
		}
		units[is["Id"]] = u
	}
	delete(units, "")
	return units
}

// boots tells whether a unit file in this state is started at boot.
func boots(state string) bool {
	return slices.Contains([]string{"enabled", "enabled-runtime", "generated", "static", "linked", "alias"}, state)
}
