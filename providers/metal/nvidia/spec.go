package nvidia

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

// What may be declared.
const (
	Open        = "open"        // the open kernel modules
	Proprietary = "proprietary" // the closed ones

	Distribution = "distribution" // Ubuntu's or Debian's own packages
	NVIDIA       = "nvidia"       // NVIDIA's repository

	Auto   = "auto"   // the fabric manager: where there are NVSwitches
	Always = "always" // the fabric manager: in any case
	Never  = "never"  // no fabric manager; no reboot

	IfNeeded = "if-needed" // reboot where nothing else helps
)

// Spec is the driver as it is declared.
type Spec struct {
	Branch  string // such as "580"
	Version string // exact, such as "580.126.20"; "" for any of the branch
	Modules string // Open or Proprietary
	Source  string // Distribution or NVIDIA
	Server  bool   // Ubuntu's -server packages; elsewhere it means nothing

	FabricManager string // Auto, Always or Never
	Toolkit       string // the container toolkit's version, such as "1.20.0"; "" for none
	Persistence   bool   // the persistence daemon runs
	NoNouveau     bool   // nouveau is blacklisted
	Reboot        string // Never or IfNeeded

	agreed string // the version that driver and fabric manager both come in; see agree

	// Repositories of a mirror; the zero value means NVIDIA's and Debian's own.
	DriverRepository, ToolkitRepository, DebianRepository Repository
}

// Repository overrides where packages come from. What is empty keeps its default.
type Repository struct {
	URL         string
	KeyURL      string
	Fingerprint string // of the primary key, 40 hexadecimal digits
}

var (
	branchForm  = pattern.New(`^[1-9][0-9]{2}$`)
	versionForm = pattern.New(`^[1-9][0-9]{2}(\.[0-9]{1,4}){1,2}$`)
	toolkitForm = pattern.New(`^[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}([~-][a-z0-9.]{1,20})?$`)
	printForm   = pattern.New(`^[0-9A-F]{40}$`)
)

// Mistake is one that can be seen without a machine.
type Mistake struct{ Argument, Text string }

// Mistakes are all of them.
func (s Spec) Mistakes() (all []Mistake) {
	check := func(argument string, right bool, format string, args ...any) {
		if !right {
			all = append(all, Mistake{argument, fmt.Sprintf(format, args...)})
		}
	}
	check("branch", branchForm.MatchString(s.Branch), "branch %q: want three digits, such as 580", s.Branch)
	if len(all) == 0 {
		check("version", s.Version == "" || versionForm.MatchString(s.Version) && strings.HasPrefix(s.Version, s.Branch+"."), "version %q: want one of branch %s in full, such as %[2]s.126.20", s.Version, s.Branch)
	}
	for _, f := range []struct {
		name, have string
		want       []string
	}{
		{"modules", s.Modules, []string{Open, Proprietary}},
		{"source", s.Source, []string{Distribution, NVIDIA}},
		{"fabric_manager", s.FabricManager, []string{Auto, Always, Never}},
		{"reboot", s.Reboot, []string{Never, IfNeeded}},
	} {
		check(f.name, slices.Contains(f.want, f.have), "%s %q: want %s", f.name, f.have, strings.Join(f.want, " or "))
	}
	check("toolkit", s.Toolkit == "" || toolkitForm.MatchString(s.Toolkit), "toolkit %q: want a version such as 1.20.0", s.Toolkit)
	for name, r := range map[string]Repository{"driver_repository": s.DriverRepository, "toolkit_repository": s.ToolkitRepository, "debian_repository": s.DebianRepository} {
		check(name, r.Fingerprint == "" || printForm.MatchString(r.Fingerprint), "fingerprint %q: want 40 hexadecimal digits in upper case", r.Fingerprint)
	}
	return all
}

// Validate is the first mistake.
func (s Spec) Validate() error {
	if all := s.Mistakes(); len(all) > 0 {
		return errors.New(all[0].Text)
	}
	return nil
}

func (s Spec) branch() int { n, _ := strconv.Atoi(s.Branch); return n }

// satisfied reports whether a driver's version is what is declared. A package's
// version may be given with its revision.
func (s Spec) satisfied(version string) bool {
	if s.Version == "" {
		return strings.HasPrefix(version, s.Branch+".")
	}
	rest, ok := strings.CutPrefix(version, s.Version)
	return ok && (rest == "" || rest[0] == '-')
}

// versionText is the version as people read it in a plan.
func (s Spec) versionText() string {
	if s.Version != "" {
		return s.Version
	}
	return s.Branch
}
