//go:build e2e && linux

package metal

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// TestMatrixLab is TestMatrix on machines with a real apt, as far as they have
// facts of their own: the samples that are not for the double alone.
func TestMatrixLab(t *testing.T) {
	l := lab.New(t)
	plain := func(name string) lab.Package {
		return lab.Package{Name: name, Version: "1.0", All: true, Files: map[string]string{"/usr/share/" + name: name}}
	}
	r, declared := l.Repository(lab.DemoPackage("1.0"), plain("stoke-held"), plain("stoke-absent")), l.Repository()
	s := &settings{shared: newShared()}
	of := matrixOf("root", "", archive{declared.URL, declared.Key, declared.Fingerprint})
	var samples []sample
	for _, sample := range slices.Concat(of["metal.packagesSection"].samples, of["metal.systemSection"].samples) {
		if !sample.double {
			samples = append(samples, sample)
		}
	}
	names := []string{"m-0", "m-1", "m-2", "m-3", "m-4", "m-5", "m-6", "m-7"}
	for n, m := range l.MachinesWith([]lab.Option{lab.NoMirror()}, names...) {
		t.Run(names[n], func(t *testing.T) {
			r.AddTo(m)
			m.Script("mkdir -p /etc/motd.d")
			on := m.Remote()
			rec, err := host.NewRecord(t.Context(), on, hostRecord, "id", "metal_host.a")
			if err != nil {
				t.Fatal(err)
			}
			sh := func(script string, args ...string) string {
				t.Helper()
				return m.Exec(append([]string{"sh", "-c", script, "sh"}, args...)...)
			}
			parts := sections(s)[:2]
			if fmt.Sprintf("%T %T", parts[0], parts[1]) != "metal.packagesSection metal.systemSection" {
				t.Fatal("sections are in another order")
			}
			(&matrix{T: t, s: s, m: on, rec: rec, parts: parts, samples: samples, sh: sh}).live(n)
		})
	}
}

// TestMatrixFirewallLab is TestMatrixFirewall on a machine whose systemd and SSH
// are real, with each of the rules that may have been there before us.
func TestMatrixFirewallLab(t *testing.T) {
	m := lab.New(t).Machine("m")
	on := &redialled{Remote: m.Remote()}
	sh := func(script string, args ...string) string {
		t.Helper()
		return m.Exec(append([]string{"sh", "-c", script, "sh"}, args...)...)
	}
	for n, before := range []string{"nothing", "by hand", "another's", "as declared"} {
		t.Run(before, func(t *testing.T) {
			x := &fire{T: t, sample: firewallSamples().samples[0], m: on, sh: sh, rounds: func() int { return on.rounds }}
			x.live(before, n&1 > 0, n&2 > 0)
			m.Script("systemctl --quiet disable --now stoke-firewall.service 2>/dev/null || :; rm -rf /etc/stoke /etc/systemd/system/stoke-firewall.service /run/stoke-firewall; nft delete table inet stoke 2>/dev/null || :")
		})
	}
}

// redialled counts new connections.
type redialled struct {
	*host.Remote
	rounds int
}

func (r *redialled) Fresh(patience time.Duration) (host.Machine, func()) {
	r.rounds++
	return r.Remote.Fresh(patience)
}
