//go:build e2e && linux

package metal

import (
	"fmt"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// TestMatrixLab is TestMatrix on machines with a real apt, as far as they have
// facts of their own: the samples that are not for the double, and a package.
func TestMatrixLab(t *testing.T) {
	l := lab.New(t)
	r := l.Repository(lab.DemoPackage("1.0"))
	s := &settings{shared: newShared()}
	samples := []sample{{
		key: "packages was", path: []string{"packages", "stoke-demo"}, value: map[string]any{}, names: []string{"package stoke-demo"},
		read:  `dpkg-query -W -f '${db:Status-Abbrev}' stoke-demo 2>/dev/null; :`,
		write: `case $1 in there) v=install ;; *) v=purge ;; esac; DEBIAN_FRONTEND=noninteractive apt-get -qq -y $v stoke-demo >&2`,
		right: "there", before: "-", drift: "-",
	}}
	for _, sample := range matrixOf("root", "")["metal.systemSection"].samples {
		if !sample.double {
			samples = append(samples, sample)
		}
	}
	names := []string{"m-0", "m-1", "m-2", "m-3"}
	for i, m := range l.MachinesWith([]lab.Option{lab.NoMirror()}, names...) {
		t.Run(names[i], func(t *testing.T) {
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
			(&matrix{T: t, s: s, m: on, rec: rec, parts: parts, samples: samples, sh: sh}).live(i * 2)
		})
	}
}
