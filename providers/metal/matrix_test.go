package metal

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/stokehq/stoke/providers/metal/containerd"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/providers/metal/system"
)

// sample is a fact that the matrix tries. What there is of it is read and
// changed by scripts, which hold for the double and for machines of the lab.
type sample struct {
	key     string   // of its note in the record
	path    []string // of the argument
	value   any      // what is declared, which a list gets appended
	names   []string // what changes of it are called in plans
	read    string   // prints what there is
	write   string   // makes it $1, as somebody does by hand
	right   string   // for write: as declared
	before  string   // something else, that was there before us
	drift   string   // and what somebody makes of it later
	with    bool     // it comes and goes with the one before
	apt     bool     // it needs a real apt, so that the double has none of it
	double  bool     // the machines of the lab share it with others, or lack the program
	prepare string   // for the double
}

// sampled are a section's samples, and the keys of its table: a kind without a
// sample fails.
type sampled struct {
	keys    []string
	samples []sample
	// tried says where facts are tried that have no samples here, or why there are
	// none to try.
	tried string
}

const unitRead = `systemctl is-active -- %[1]s; systemctl is-enabled -- %[1]s; :`
const unitWrite = `case $1 in "active enabled") systemctl enable -- %[1]s; systemctl start -- %[1]s ;; *) systemctl stop -- %[1]s; systemctl disable -- %[1]s ;; esac`

// matrixOf are the samples of all sections, and of the resources beside metal_host,
// by their types. A new one has to be here.
func matrixOf(owner, image string, a archive) map[string]sampled {
	const mirror = "/etc/containerd/certs.d/docker.io/hosts.toml"
	const fileWrite = `mkdir -p "$(dirname %[1]s)"; if [ "$1" = - ]; then rm -f %[1]s; else printf '%%s' "$1" >%[1]s; fi`
	const sysctlWrite = `echo "$1" >/proc/sys/net/ipv4/%[1]s; [ "$1" != %[2]s ] || echo "net.ipv4.%[1]s = %[2]s" >/etc/sysctl.d/50-%[1]s.conf`
	mirrors := containerd.Mirror{Endpoints: []containerd.Endpoint{{URL: "https://mirror.lan"}}}
	config, _ := containerd.Rendered(containerd.Spec{Config: true}, containerd.Facts{Version: "1.7.28"})
	sum, _ := containerd.ArchiveDigest(open(image))
	return map[string]sampled{
		"metal.systemSection": {keys: system.Table.Keys(), samples: []sample{
			{key: "system hostname", path: []string{"hostname"}, value: "declared", names: []string{"host name"},
				read:  `echo "$(cat /etc/hostname) $(cat /proc/sys/kernel/hostname)"; grep ^127.0.1.1 /etc/hosts | tr '\t' ' '`,
				write: `printf '%s\n' "$1" >/etc/hostname; printf '%s\n' "$1" >/proc/sys/kernel/hostname; sed -i /^127.0.1.1/d /etc/hosts; echo "127.0.1.1 $1" >>/etc/hosts`,
				right: "declared", before: "before", drift: "drifted", double: true},
			{key: "system swap", path: []string{"swap"}, value: "off", names: []string{"swap"},
				read: `grep -v '^#' /etc/fstab; sed 1d /proc/swaps`,
				write: `[ "$1" = /swap.drifted ] || { echo "UUID=1 / ext4 defaults 0 1" >/etc/fstab; printf 'Filename Type Size Used Priority\n' >/proc/swaps; }
					[ "$1" = off ] || { echo "$1 none swap sw 0 0" >>/etc/fstab; printf '%s file 1 0 -2\n' "$1" >>/proc/swaps; }`,
				right: "off", before: "/swap.before", drift: "/swap.drifted", double: true},
			{key: "system module overlay", path: []string{"kernel_modules"}, value: []any{"overlay"}, names: []string{"kernel module overlay"},
				read: `cat /etc/modules-load.d/*.conf 2>/dev/null | grep -v '^#' | sort -u; :`, prepare: `mkdir -p /etc/modules-load.d; echo overlay >>/lib/modules/all`,
				write: `case $1 in
					boots) echo overlay >/proc/modules.new; echo overlay >/etc/modules-load.d/mine.conf; echo "overlay 0 0" >/proc/modules ;;
					*) : >/proc/modules ;; esac`,
				right: "boots", before: "absent", drift: "unloaded", double: true},
			{key: "system sysctl net.ipv4.ip_forward", path: []string{"sysctl", "net.ipv4.ip_forward"}, value: "1", names: []string{"sysctl net.ipv4.ip_forward"},
				read: `cat /proc/sys/net/ipv4/ip_forward`, prepare: `mkdir -p /proc/sys/net/ipv4`,
				write: fmt.Sprintf(sysctlWrite, "ip_forward", "1"), right: "1", before: "0", drift: "0"},
			{key: "system sysctl net.ipv4.tcp_keepalive_time", path: []string{"sysctl", "net.ipv4.tcp_keepalive_time"}, value: "600", names: []string{"sysctl net.ipv4.tcp_keepalive_time"},
				read: `cat /proc/sys/net/ipv4/tcp_keepalive_time`, prepare: `mkdir -p /proc/sys/net/ipv4`,
				write: fmt.Sprintf(sysctlWrite, "tcp_keepalive_time", "600"), right: "600", before: "7200", drift: "900"},
			{key: "system time chrony", path: []string{"time_sync"}, value: map[string]any{"service": "chrony"}, names: []string{"time service"},
				read: fmt.Sprintf(unitRead, "chrony.service"), write: fmt.Sprintf(unitWrite, "chrony.service"), prepare: `echo "inactive disabled" >/run/units/chrony.service`,
				right: "active enabled", before: "inactive disabled", drift: "inactive disabled", double: true},
			{key: "system timezone", path: []string{"timezone"}, value: "Asia/Tokyo", names: []string{"time zone"},
				read: `readlink /etc/localtime; cat /etc/timezone`, prepare: `for z in Asia/Tokyo Europe/Paris America/Lima; do mkdir -p "/usr/share/zoneinfo/${z%/*}"; touch "/usr/share/zoneinfo/$z"; done; touch /etc/timezone`,
				write: `ln -sfn "/usr/share/zoneinfo/$1" /etc/localtime; echo "$1" >/etc/timezone`, right: "Asia/Tokyo", before: "Europe/Paris", drift: "America/Lima"},
			{key: "system file /etc/motd.d/a", path: []string{"files", "/etc/motd.d/a"}, value: map[string]any{"content": "declared", "mode": "0644", "owner": owner, "group": owner},
				names: []string{"/etc/motd.d/a"}, read: `cat /etc/motd.d/a 2>/dev/null; :`, write: fmt.Sprintf(fileWrite, "/etc/motd.d/a"),
				right: "declared", before: "before", drift: "drifted"},
			{key: "system file /etc/motd.d/b", path: []string{"files", "/etc/motd.d/b"}, value: map[string]any{"content": "declared", "mode": "0644", "owner": owner, "group": owner},
				names: []string{"/etc/motd.d/b"}, read: `cat /etc/motd.d/b 2>/dev/null; :`, write: fmt.Sprintf(fileWrite, "/etc/motd.d/b"),
				right: "declared", before: "-", drift: "-"},
		}},
		// What belongs to one argument comes and goes together.
		"metal.containerdSection": {keys: containerd.Table.Keys(), samples: []sample{
			{key: "containerd service", path: []string{"containerd"}, value: map[string]any{"registry_mirrors": map[string]any{"docker.io": map[string]any{"endpoints": []any{"https://mirror.lan"}}}},
				names: []string{"containerd"}, prepare: `mkdir -p /etc/containerd/certs.d/docker.io`,
				read: fmt.Sprintf(unitRead, "containerd.service"), write: fmt.Sprintf(unitWrite, "containerd.service"),
				right: "active enabled", before: "inactive disabled", drift: "inactive disabled", double: true},
			{key: "containerd file " + containerd.ConfigFile, with: true, names: []string{"containerd's configuration", "containerd gets back what it had before"},
				read: `cat /etc/containerd/config.toml`, write: fmt.Sprintf(fileWrite, "/etc/containerd/config.toml"),
				right: config, before: "version = 2", drift: "version = 3", double: true},
			{key: "containerd file " + mirror, with: true, names: []string{"mirror of docker.io", "file " + mirror},
				read: "cat " + mirror, write: fmt.Sprintf(fileWrite, mirror),
				right: mirrors.Text("docker.io"), before: "x = 1", drift: "x = 2", double: true},
			{key: "containerd image docker.io/library/a:1", with: true, path: []string{"images", "docker.io/library/a:1"}, value: map[string]any{"archive": image},
				names: []string{"image docker.io/library/a:1"},
				read:  `awk '{ print $1, $3 }' /run/images`,
				write: `l=dev.stoke.archive=` + sum + `@$1; [ "$1" != - ] || { : >/run/images; exit; }
					echo "docker.io/library/a:1 x $1 1 KiB linux/amd64 $l" >/run/images`,
				right: "sha256:cd", before: "-", drift: "-", double: true},
		}},
		"metal.packagesSection":    packagesSamples(a),
		"metal.factsSection":       {tried: "it looks, and changes nothing"},
		"*metal.firewallResource":  firewallSamples(),
		"*metal.gpuDriverResource": {keys: nvidia.Table.Keys(), tried: "nvidia.TestMatrixDriver"},
		"*metal.clusterResource":   {tried: "a cluster is made and reset as a whole; its packages are those of the table of packages, and what changes in place is in TestClusterChanges"},
		"*metal.nodeResource":      {tried: "its packages are packages.Table's; kubeadm and the API have the rest, and take it back by kubeadm reset: TestNode"},
	}
}

// declaring is the model that declares the samples of the groups that are wanted.
func declaring(t *testing.T, rec *host.Record, samples []sample, wanted func(group int) bool) *hostModel {
	t.Helper()
	all := map[string]any{}
	for i, s := range samples {
		if len(s.path) == 0 || !wanted(together(samples, i)) {
			continue
		}
		at := all
		for _, name := range s.path[:len(s.path)-1] {
			if at[name] == nil {
				at[name] = map[string]any{}
			}
			at = at[name].(map[string]any)
		}
		at[s.path[len(s.path)-1]] = s.value
	}
	said, err := json.Marshal(all)
	if err == nil {
		err = rec.Declare(t.Context(), said)
	}
	m := &hostModel{}
	if _, ok := loadDeclaredFromHost(t.Context(), rec, hostSchema(), m); err != nil || !ok {
		t.Fatalf("%v: %s", err, said)
	}
	m.config = m
	return m
}

// together is which samples come and go together: those whose first has the
// argument of the others.
func together(samples []sample, i int) int {
	for ; samples[i].with; i-- {
	}
	return i
}

// matrix is one machine with its samples.
type matrix struct {
	*testing.T
	s       *settings
	m       host.Machine
	rec     *host.Record
	parts   []section
	samples []sample
	sh      func(script string, args ...string) string
}

// ahead is what apply would do: what differs of what is declared, and what is
// declared no more.
func (x *matrix) ahead(want *hostModel) []host.Change {
	x.Helper()
	var diags diag.Diagnostics
	var changes []host.Change
	if want != nil {
		for _, part := range x.parts {
			part.plan(x.Context(), nil, want, &diags)
			changes = append(changes, part.changes(x.Context(), x.m, want, &diags)...)
		}
	}
	changes = append(changes, plannedRestores(x.Context(), x.s, x.m, x.rec, want, &diags)...)
	for _, d := range diags {
		if d.Summary() != "Effect of this change" { // a note, where no engine takes it
			x.Fatal(diags)
		}
	}
	return changes
}

func (x *matrix) read() []string {
	all := make([]string, len(x.samples))
	for i, s := range x.samples {
		all[i] = x.sh(s.read)
	}
	return all
}

// step carries out what work does, and compares with what the plan said: what
// changes was planned, and what is planned to interrupt something is all that does.
func (x *matrix) step(name string, want *hostModel, planned func(i int) bool, work func() error) []string {
	x.Helper()
	ahead, was := x.ahead(want), x.read()
	x.sh(`: >/run/did`)
	if err := work(); err != nil {
		x.Fatalf("%s: %v", name, err)
	}
	is := x.read()
	for i, s := range x.samples {
		says := slices.ContainsFunc(ahead, func(c host.Change) bool {
			return slices.ContainsFunc(s.names, func(n string) bool {
				return c.Fact == n || strings.HasPrefix(c.Fact, n+" ") || n[0] == '/' && strings.Contains(c.Fact, n)
			})
		})
		if is[i] != was[i] && !says {
			x.Errorf("%s: %s was %q and is %q, and the plan does not say so: %v", name, s.key, was[i], is[i], ahead)
		}
		if planned != nil && planned(i) != says {
			x.Errorf("%s: %s is planned: %v: %v", name, s.key, says, ahead)
		}
	}
	did, most, reloads := x.sh(`cat /run/did`), host.Greatest(ahead), false
	for _, c := range ahead {
		reloads = reloads || c.Reloads || c.Disruption == host.ReloadsSystemd
	}
	if stops := strings.Contains(did, "restart containerd") || strings.Contains(did, "stop containerd"); stops && most < host.RestartsContainer {
		x.Errorf("%s: containerd restarts, and the plan says at most %s: %v", name, most, ahead)
	}
	if strings.Contains(did, "daemon-reload") && !reloads {
		x.Errorf("%s: systemd reloads, and the plan does not say so: %v", name, ahead)
	}
	if left := x.ahead(want); want != nil && len(left) > 0 {
		x.Errorf("%s: it is not as declared: %v", name, left)
	}
	return is
}

// isTried reports whether a matrix tries the case whose circumstances are the bits of n.
func isTried(n int) bool { return allCases || bits.OnesCount(uint(n))%2 == 0 }

// live tries (right before us | changed by us) × (drifted by hand | not) ×
// (declared no more | destroyed): the nth machine and the ith group are in one
// of the eight cases, and eight machines in all of them. Without allCases four machines are
// tried, and each pair of these circumstances occurs in them.
func (x *matrix) live(n int) {
	is := func(i, bit int) bool { return (n^together(x.samples, i))>>bit&1 == 1 }
	right := func(i int) bool { return is(i, 0) }
	drifts := func(i int) bool { return is(i, 1) }
	destroyed := func(i int) bool { return is(i, 2) }
	for i, s := range x.samples {
		x.sh(s.write, map[bool]string{true: s.right, false: s.before}[right(i)])
	}
	before := x.read()
	apply := func(want *hostModel) func() error {
		return func() error {
			for _, part := range x.parts {
				if err := part.apply(x.Context(), x.m, x.rec, want); err != nil {
					return err
				}
			}
			return nil
		}
	}
	all := declaring(x.T, x.rec, x.samples, func(int) bool { return true })
	x.step("create", all, func(i int) bool { return !right(i) }, apply(all))
	for i, s := range x.samples {
		if drifts(i) {
			x.sh(s.write, s.drift)
		}
		if keys := x.rec.Keys(s.key); len(keys) != 1 {
			x.Errorf("create notes of %s: %v", s.key, keys)
		}
	}
	x.step("drift", all, drifts, apply(all))
	some := declaring(x.T, x.rec, x.samples, func(g int) bool { return destroyed(g) })
	now := x.step("declared no more", some, nil, apply(some))
	for i, s := range x.samples {
		if !destroyed(i) && now[i] != before[i] {
			x.Errorf("%s is declared no more, was %q before us, and is %q", s.key, before[i], now[i])
		}
	}
	now = x.step("destroy", nil, nil, func() error {
		for _, part := range slices.Backward(x.parts) {
			if _, err := part.restore(x.Context(), x.m, x.rec); err != nil {
				return err
			}
		}
		return nil
	})
	for i, s := range x.samples {
		if now[i] != before[i] {
			x.Errorf("%s was %q before us, and after destroy it is %q", s.key, before[i], now[i])
		}
	}
	if keys := x.rec.Keys(""); len(keys) > 0 {
		x.Errorf("the record still has %v", keys)
	}
}

// TestMatrixIsWhole: every section of metal_host, and every resource beside it, has a
// table, and every kind of it is tried.
func TestMatrixIsWhole(t *testing.T) {
	all := matrixOf("root", "", archive{})
	var parts []string
	for _, part := range sections(&settings{shared: newShared()}) {
		parts = append(parts, fmt.Sprintf("%T", part))
	}
	for _, of := range new(metalProvider).Resources(t.Context()) {
		if r := of(); fmt.Sprintf("%T", r) != "*metal.hostResource" { // which is its sections
			parts = append(parts, fmt.Sprintf("%T", r))
		}
	}
	for _, part := range parts {
		of := all[part]
		if len(of.keys) == 0 && of.tried == "" {
			t.Errorf("%s has no table: add it to matrixOf", part)
		}
		for _, key := range of.keys {
			if of.tried == "" && !slices.ContainsFunc(of.samples, func(s sample) bool { return strings.HasPrefix(s.key, key) }) {
				t.Errorf("%s: %q has no sample: add one to matrixOf", part, key)
			}
		}
	}
	for part := range all {
		if !slices.Contains(parts, part) {
			t.Errorf("%s is no section and no resource", part)
		}
	}
}

// TestMatrix runs the scripts of all sections in a folder that stands for the
// machine.
func TestMatrix(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(image, []byte("an image"), 0o600); err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &settings{shared: newShared()}
	var samples []sample
	var parts []section
	for _, part := range sections(s) {
		of, known := matrixOf(me.Username, image, archive{})[fmt.Sprintf("%T", part)]
		if !known {
			t.Fatalf("%T has no samples: add it to matrixOf", part)
		}
		here := slices.DeleteFunc(slices.Clone(of.samples), func(s sample) bool { return s.apt })
		if samples = append(samples, here...); len(here) > 0 {
			parts = append(parts, part)
		}
	}
	for n := range 8 {
		if !isTried(n) {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			m := hosttest.NewTree(t)
			l, err := net.Listen("unix", m.Root+"/run/containerd.sock")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			m.Sh(`echo "active enabled" >/run/units/containerd.service; mkdir -p /run/containerd /etc/motd.d; ln -s /run/containerd.sock /run/containerd/containerd.sock; : >/etc/hosts`)
			for _, s := range samples {
				m.Sh(s.prepare)
			}
			rec, err := host.NewRecord(t.Context(), m, hostRecord, "id", "metal_host.a")
			if err != nil {
				t.Fatal(err)
			}
			(&matrix{T: t, s: s, m: m, rec: rec, parts: parts, samples: samples, sh: m.Sh}).live(n)
		})
	}
}
