package packages

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Offer is what apt has of a package.
type Offer struct {
	Candidate string   // what it would install; "" for nothing
	Versions  []string // that can be downloaded, newest first
	preferred string   // that foreign preferences put above ours
}

// parsePolicy reads what "apt-cache policy NAME…" prints:
//
//	kubelet:
//	  Installed: 1.36.3-1.1
//	  Candidate: 1.36.3-1.1
//	  Package pin: 1.36.3-1.1
//	  Version table:
//	     1.36.4-1.1 500
//	        500 https://pkgs.k8s.io/core:/stable:/v1.36/deb  Packages
//	 *** 1.36.3-1.1 995
//	        500 https://pkgs.k8s.io/core:/stable:/v1.36/deb  Packages
//	        100 /var/lib/dpkg/status
//
// A version that only dpkg knows cannot be installed again.
func parsePolicy(text string) (map[string]Offer, error) {
	all := map[string]Offer{}
	name, version, of := "", "", Offer{}
	begin := func(words []string) {
		version = words[0]
		if n, err := strconv.Atoi(words[1]); err == nil && n > pinPriority && of.preferred == "" {
			of.preferred = version
		}
	}
	done := func() {
		if name != "" {
			of.Versions = sortVersions(of.Versions)
			all[name] = of
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case indent == 0:
			n, ok := strings.CutSuffix(line, ":")
			if !ok {
				return nil, fmt.Errorf("apt-cache policy: line %.80q cannot be read", line)
			}
			done()
			name, version, of = n, "", Offer{}
		case name == "":
			return nil, fmt.Errorf("apt-cache policy: line %.80q belongs to no package", line)
		case words[0] == "Candidate:" && len(words) == 2:
			if words[1] != "(none)" {
				of.Candidate = words[1]
			}
		case words[0] == "***" && len(words) >= 3:
			begin(words[1:])
		case indent == 5 && len(words) >= 2:
			begin(words)
		case indent >= 8 && len(words) >= 2 && version != "" && words[1] != "/var/lib/dpkg/status":
			if !slices.Contains(of.Versions, version) {
				of.Versions = append(of.Versions, version)
			}
		}
	}
	done()
	return all, nil
}

const policyScript = `# ask apt for versions
export LC_ALL=C; exec apt-cache policy -- "$@"`

// Offers asks apt what it has of packages.
func Offers(ctx context.Context, m host.Machine, names []string) (map[string]Offer, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out, err := host.LookScript(ctx, m, policyScript, names...)
	if err != nil {
		return nil, fmt.Errorf("ask apt for versions: %w", err)
	}
	return parsePolicy(string(out))
}
