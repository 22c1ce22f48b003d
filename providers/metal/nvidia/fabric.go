package nvidia

import (
	"slices"

	"github.com/stokehq/stoke/providers/metal/packages"
)

func (s Spec) fabricPackages() (driver, fabric string) {
	switch {
	case s.Source == Distribution:
		series := s.Branch
		if s.Server {
			series += "-server"
		}
		return "libnvidia-compute-" + series, "nvidia-fabricmanager-" + s.Branch
	case s.Modules == Proprietary:
		driver, fabric = "cuda-drivers", "nvidia-fabricmanager"
	default:
		driver, fabric = "nvidia-open", "nvidia-fabricmanager"
	}
	if s.branch() < 580 {
		return driver + "-" + s.Branch, fabric + "-" + s.Branch
	}
	return driver, fabric
}

// agree is the version of driver and fabric manager where only the branch is
// declared. It has to be the same to the letter, or the fabric manager refuses to
// start (Fabric Manager User Guide, "Installing Fabric Manager"), and archives
// publish the two at different times. It is the one that is there, if that has a
// fabric manager, and else the newest that has; "" where apt does not know both.
func (s Spec) agree(have State) string {
	if s.Version != "" || !have.fabricManager(s) {
		return ""
	}
	driver, fabric := s.fabricPackages()
	has := func(name, version string) bool {
		return slices.ContainsFunc(all(have.offers[name]), func(v string) bool { return upstream(v) == version })
	}
	if is := have.Installed(); s.satisfied(is) && has(fabric, is) {
		return is
	}
	best := ""
	for _, v := range all(have.offers[driver]) {
		if v = upstream(v); s.satisfied(v) && versionForm.MatchString(v) && packages.Compare(v, best) > 0 && has(fabric, v) {
			best = v
		}
	}
	return best
}

func (c *checker) fabric() {
	if !c.have.fabricManager(c.want) || c.want.Source != Distribution {
		return
	}
	switch {
	case c.have.OS == "debian":
		c.problem("Debian has no fabric manager", "The GPUs are joined by NVSwitches and need the fabric manager of exactly the driver's version. Set source = \"nvidia\".")
	case c.have.OS == "ubuntu" && !c.want.Server: // it depends on nvidia-kernel-common-BRANCH-server-VERSION (packages.ubuntu.com/noble/nvidia-fabricmanager-580)
		c.problem("The fabric manager needs server packages", "The GPUs are joined by NVSwitches, and Ubuntu's "+
			"nvidia-fabricmanager-%s only fits the -server packages. Set server = true.", c.want.Branch)
	}
}

func (c *checker) fabricVersion() {
	if !c.have.fabricManager(c.want) || c.want.Version != "" || c.want.agree(c.have) != "" {
		return
	}
	driver, fabric := c.want.fabricPackages()
	if d, f := c.have.offers[driver].Candidate, c.have.offers[fabric].Candidate; d != "" && f != "" {
		c.problem("Driver and fabric manager do not match", "apt has %s %s and %s %s, and the fabric manager starts "+
			"only with a driver of exactly its version. Run apt-get update, wait until both are published, or declare a version that both have.", driver, d, fabric, f)
	}
}

func all(o packages.Offer) []string { return append([]string{o.Candidate}, o.Versions...) }
