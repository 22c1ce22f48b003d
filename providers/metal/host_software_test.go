package metal

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// A version in full is one of upstream's: the revisions are as the repositories
// of Docker, Debian 12 and 13, and Ubuntu 22.04 and 24.04 have them.
func TestRuntimeVersion(t *testing.T) {
	for _, c := range []struct {
		version, source, os string
		takes, leaves       []string
	}{
		{"2.2.1", "docker", "debian", []string{"2.2.1-1~debian.12~bookworm"}, []string{"2.2.10-1~debian.12~bookworm", "2.2.2-1~debian.12~bookworm"}},
		{"2.2.1", "", "ubuntu", []string{"2.2.1-1~ubuntu.24.04~noble"}, []string{"2.2.11-1~ubuntu.24.04~noble"}},
		{"2.2", "docker", "ubuntu", []string{"2.2.1-1~ubuntu.24.04~noble", "2.2.10-1~ubuntu.24.04~noble"}, []string{"2.20.1-1~ubuntu.24.04~noble"}},
		{"2", "docker", "debian", []string{"2.2.1-1~debian.12~bookworm"}, []string{"1.7.28-2~debian.12~bookworm"}},
		{"1.6.20", "distribution", "debian", []string{"1.6.20~ds1-1+deb12u1"}, []string{"1.6.2~ds1-1"}},
		{"1.7.24", "distribution", "debian", []string{"1.7.24~ds1-6+b4"}, []string{"1.7.24~rc.1~ds1-1"}},
		{"1.7", "distribution", "debian", []string{"1.7.24~ds1-6+b4"}, nil},
		{"1.7.28", "distribution", "ubuntu", []string{"1.7.28-0ubuntu1~24.04.1"}, []string{"1.7.2-0ubuntu1"}},
		{"2.2.1-1~debian.12~bookworm", "docker", "debian", []string{"2.2.1-1~debian.12~bookworm"}, []string{"2.2.1-2~debian.12~bookworm"}},
		{"*", "distribution", "debian", []string{"1.6.20~ds1-1+deb12u1"}, nil},
	} {
		p := softwarePackage{Version: types.StringValue(c.version), Source: types.StringValue(c.source)}
		for _, v := range c.takes {
			if !packages.Matches(p.pattern(c.os), v) {
				t.Errorf("%s of %s on %s is %s, which does not take %s", c.version, c.source, c.os, p.pattern(c.os), v)
			}
		}
		for _, v := range c.leaves {
			if packages.Matches(p.pattern(c.os), v) {
				t.Errorf("%s of %s on %s is %s, which takes %s", c.version, c.source, c.os, p.pattern(c.os), v)
			}
		}
	}
}

// What apt does is one list, whose lines fit a page, and no longer than anybody reads.
func TestActionLines(t *testing.T) {
	list := []packages.Action{{Package: "curl", New: "8.1"}, {Package: "jq", New: "1.6"}, {Package: "bash", Old: "5.1", New: "5.2"}, {Package: "nano", Old: "7"}, {Package: "vim", Old: "9"}}
	want := []string{"install curl 8.1, jq 1.6", "upgrade bash 5.1 → 5.2", "remove nano 7, vim 9"}
	if got := actionLines(list); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for range 40 {
		list = append(list, packages.Action{Package: "linux-modules-nvidia", New: "580.95.05-0ubuntu1"})
	}
	got := actionLines(list)
	if len(got) > 15 || got[len(got)-1] != "and 25 more" {
		t.Errorf("%d lines: %q", len(got), got)
	}
	for _, line := range got {
		if len(line) > 100 {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
	if got := actionLines(nil); len(got) > 0 {
		t.Errorf("nothing to do: %q", got)
	}
}

// An answer that cannot be read is named once, and by its machine.
func TestLookAtPackagesFails(t *testing.T) {
	for _, answer := range []string{"", "nonsense\nend\n", "os\tdebian 12\napt\t\nend\n"} {
		m := &hosttest.Machine{Answer: func(host.Command) (hosttest.Answer, bool) { return hosttest.Answer{Stdout: answer}, true }}
		_, _, want := machineThatDeclares(t, `{"packages": {"jq": {}}}`)
		part := packagesSection{&settings{shared: newShared()}}
		for _, err := range []error{part.observe(t.Context(), m, want, new(hostModel)), part.apply(t.Context(), m, nil, want)} {
			if err == nil || strings.Count(err.Error(), "look at") != 1 {
				t.Errorf("%q: %v", answer, err)
			}
		}
	}
}

// What a plan says of packages stands at the argument that they come from.
func TestPlace(t *testing.T) {
	software := declaredSoftware{containerd: &softwarePackage{Source: types.StringValue(fromDistribution)}, cuda: &softwarePackage{}}
	by := declaredPackages{packages: map[string]packageModel{"jq": {}}, repositories: map[string]repositoryModel{"mine": {}}}
	for _, c := range []struct{ at, want []string }{
		{[]string{"packages", "jq", "version"}, []string{"packages", "jq", "version"}},
		{[]string{"packages", "containerd", "hold"}, []string{"containerd_package", "version"}},
		{[]string{"packages", "cuda-toolkit-12-9", "version"}, []string{"cuda_toolkit", "version"}},
		{[]string{"repositories", "mine", "uris"}, []string{"apt_repositories", "mine", "uris"}},
		{[]string{"repositories", "docker", "uris"}, []string{"containerd_package", "repository"}},
		{[]string{"repositories", "cuda-debian12-x86-64", "uris"}, []string{"cuda_toolkit", "repository"}},
		{[]string{"absent", "docker.io"}, []string{"absent_packages"}},
		{[]string{"dpkg"}, []string{"packages"}},
	} {
		if got := software.place(by, c.at); !slices.Equal(got, c.want) {
			t.Errorf("%q stands at %q, want %q", c.at, got, c.want)
		}
	}
}

func TestInCluster(t *testing.T) {
	null := types.StringNull()
	for _, c := range []struct {
		address, private, role types.String
		at                     string // of the error, "" for none
	}{
		{types.StringValue("2001:db8::1"), null, null, ""},
		{types.StringValue("2001:db8::1"), null, types.StringValue("worker"), "address"},
		{types.StringValue("2001:db8::1"), types.StringValue("10.0.0.1"), types.StringValue("worker"), ""},
		{types.StringValue("192.0.2.1"), types.StringValue("fd00::1"), null, "private_address"},
		{types.StringValue("192.0.2.1"), types.StringValue("10.0.0.1,fd00::1"), null, "private_address"},
		{types.StringValue("192.0.2.1"), types.StringValue("10.0.0.1/24"), null, "private_address"},
		{types.StringValue("gpu1.example.com"), null, types.StringValue("worker"), ""},
		{types.StringUnknown(), null, types.StringValue("worker"), ""},
	} {
		var diags diag.Diagnostics
		m := &hostModel{Address: c.address, PrivateAddress: c.private, Role: c.role, Cluster: null}
		m.inCluster(&diags)
		at := ""
		if len(diags) == 1 {
			at = diags[0].(diag.DiagnosticWithPath).Path().String()
		}
		if at != c.at || len(diags) > 1 {
			t.Errorf("%s, %s, %s: %v", c.address, c.private, c.role, diags)
		}
	}
}
