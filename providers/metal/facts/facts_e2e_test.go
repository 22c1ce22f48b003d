//go:build e2e && linux

package facts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// counting counts commands.
type counting struct {
	host.Machine
	ran int
}

func (c *counting) Run(ctx context.Context, cmd host.Command) (ssh.Output, error) {
	c.ran++
	return c.Machine.Run(ctx, cmd)
}

// TestFacts compares every fact of a machine with what another command says of
// it there.
func TestFacts(t *testing.T) {
	ctx := context.Background()
	m := lab.New(t).Machine("facts-1", lab.PCI(lab.H100, lab.H100, lab.NVSwitch))
	m.Exec("ip", "link", "add", "br-lab", "type", "bridge")
	m.Exec("ip", "addr", "add", "172.30.0.1/16", "dev", "br-lab")
	m.Exec("ip", "link", "set", "br-lab", "up")
	m.Exec("ip", "route", "add", "192.168.77.0/24", "via", m.Address)
	m.Script(`echo 'http_proxy="http://user:canary@proxy.example:3128"' >> /etc/environment`)

	c := &counting{Machine: m.Remote()}
	started := time.Now()
	f, err := facts.Gather(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %d commands", time.Since(started).Round(time.Millisecond), c.ran)
	if c.ran > 2 {
		t.Errorf("%d commands", c.ran)
	}
	if len(f.Unread) > 0 {
		t.Errorf("not understood: %q", f.Unread)
	}
	say := func(script string) string { return strings.TrimSpace(m.Script(script)) }
	for name, is := range map[string][2]any{
		"hostname":          {f.Hostname, say("hostname")},
		"machine id":        {f.MachineID, say("cat /etc/machine-id")},
		"boot id":           {f.BootID, say("cat /proc/sys/kernel/random/boot_id")},
		"os":                {f.OS.ID + " " + f.OS.Version + " " + f.OS.Codename + " " + f.OS.Name, say(`. /etc/os-release; echo "$ID $VERSION_ID $VERSION_CODENAME $PRETTY_NAME"`)},
		"supported":         {f.OS.Supported, true},
		"kernel":            {f.Kernel.Running, say("uname -r")},
		"kernel that boots": {f.Kernel.Next, say("ls -v /boot | sed -n 's/^vmlinuz-//p' | tail -n 1")},
		"architecture":      {f.Architecture, say("dpkg --print-architecture")},
		"cpus":              {strconv.Itoa(f.CPUs), say("nproc")},
		"memory":            {fmt.Sprint(f.Memory / 1024), say("free -k | awk '/^Mem:/ {print $2}'")},
		"init":              {f.Init, say("ps -o comm= -p 1")},
		"systemd":           {fmt.Sprint(f.Systemd), say("dpkg-query -W -f '${Version}' systemd | cut -d. -f1 | cut -d- -f1")},
		"sudo":              {f.Sudo, facts.Sudo{Works: true, User: "ops"}},
		"container":         {f.Container, say("systemd-detect-virt --container")},
		"control groups":    {f.CgroupVersion == 2, say("stat -fc %T /sys/fs/cgroup") == "cgroup2fs"},
		"apt":               {f.Packages.APT, true},
		"reboot is due":     {f.Packages.RebootRequired, false},
		"needrestart":       {fmt.Sprint(f.Packages.Needrestart), say("[ -x /usr/sbin/needrestart ] && echo true || echo false")},
		"name servers":      {strings.Join(f.DNS.Servers, " "), say("awk '/^nameserver/ {printf s $2; s = \" \"}' /etc/resolv.conf")},
		"resolv.conf":       {f.DNS.File, "/etc/resolv.conf"},
		"nvswitch":          {f.NVSwitch, true},
		"proxy":             {f.Proxy["http_proxy"], "http://proxy.example:3128"},
		"swap":              {len(f.Swap), strings.Count(say("swapon --show --noheadings || :"), "\n")},
		"is a node":         {f.Node, facts.Node{}},
		"overlay":           {f.Features["overlay"], facts.Present},
		"nf_tables":         {f.Features["nf_tables"], facts.Present},
	} {
		if diff := cmp.Diff(is[1], is[0]); diff != "" {
			t.Errorf("%s (-command +fact): %s", name, diff)
		}
	}
	network(t, f, say)
	storage(t, f, say)
	gpus(t, f, say)
	if math.Abs(f.Clock.Offset) > 0 || f.Clock.Resolution > 1 {
		t.Errorf("the clock of the same kernel is off by %v ± %v", f.Clock.Offset, f.Clock.Resolution)
	}
	b, _ := json.Marshal(f)
	if strings.Contains(string(b), "canary") {
		t.Error("a password got into the facts")
	}
	if os.Getenv("STOKE_SHOW") != "" {
		b, _ := json.MarshalIndent(f, "", " ")
		t.Log(string(b))
	}
	stable(t, c, f)
}

func network(t *testing.T, f facts.Facts, say func(string) string) {
	t.Helper()
	var links []struct {
		Name      string `json:"ifname"`
		MAC       string `json:"address"`
		MTU       int    `json:"mtu"`
		State     string `json:"operstate"`
		Kind      string `json:"link_type"`
		Addresses []struct {
			Family, Local, Scope string
			Bits                 int `json:"prefixlen"`
		} `json:"addr_info"`
	}
	if err := json.Unmarshal([]byte(say("ip -j addr show")), &links); err != nil {
		t.Fatal(err)
	}
	want, got := []string{}, []string{}
	for _, l := range links {
		line := fmt.Sprint(l.Name, " ", l.MAC, " ", l.MTU, " ", strings.ToLower(l.State))
		for _, a := range l.Addresses {
			if a.Scope == "global" {
				line += fmt.Sprintf(" %s/%d", a.Local, a.Bits)
			}
		}
		if l.Kind != "loopback" && (len(l.Addresses) > 0) {
			want = append(want, line)
		}
	}
	for _, n := range f.NICs {
		got = append(got, strings.TrimSpace(fmt.Sprint(n.Name, " ", n.MAC, " ", n.MTU, " ", n.State, " ", strings.Join(n.Addresses, " "))))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("interfaces (-ip +facts): %s", diff)
	}
	var routes []struct{ Dst, Dev, Gateway string }
	if err := json.Unmarshal([]byte(say("ip -j route show")), &routes); err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		to := r.Dst
		if to == "default" {
			to = "0.0.0.0/0"
		}
		if !slices.ContainsFunc(f.Routes, func(x facts.Route) bool { return x.To == to && x.Dev == r.Dev && x.Via == r.Gateway }) {
			t.Errorf("route %+v is not among %+v", r, f.Routes)
		}
	}
	if len(f.Routes) < len(routes) || len(routes) < 3 {
		t.Errorf("%d routes, ip says %d", len(f.Routes), len(routes))
	}
	ssh := slices.ContainsFunc(f.Listeners, func(l facts.Listener) bool {
		return l.Protocol == "tcp" && l.Port == 22 && (l.Process == "sshd" || l.Process == "systemd")
	})
	if !ssh {
		t.Errorf("nobody listens on port 22: %+v", f.Listeners)
	}
}

func storage(t *testing.T, f facts.Facts, say func(string) string) {
	t.Helper()
	for _, path := range []string{"/", "/var/lib/containerd"} {
		s, ok := f.SpaceAt(path)
		if !ok {
			t.Errorf("nothing is known of %s", path)
			continue
		}
		size, _ := strconv.ParseInt(say("df -B1 --output=size / | tail -n 1"), 10, 64)
		free, _ := strconv.ParseInt(say("df -B1 --output=avail / | tail -n 1"), 10, 64)
		if s.Size != size || math.Abs(float64(s.Free-free)) > 64<<20 || s.Mount != "/" {
			t.Errorf("%s: %+v; df says %d of %d", path, s, free, size)
		}
	}
	for _, d := range f.Disks {
		if size := say("cat /sys/block/" + d.Name + "/size"); size != fmt.Sprint(d.Size/512) {
			t.Errorf("disk %+v has %s sectors", d, size)
		}
	}
}

func gpus(t *testing.T, f facts.Facts, say func(string) string) {
	t.Helper()
	var got []string
	for _, g := range f.GPUs {
		got = append(got, g.Address+" "+g.ID+" "+g.Driver+" "+g.Name)
	}
	want := []string{"0000:01:00.0 10de:2330 nouveau H100 SXM5 80GB", "0000:02:00.0 10de:2330 nouveau H100 SXM5 80GB"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("GPUs: %s", diff)
	}
}

// stable: what is stored does not change from one look to the next.
func stable(t *testing.T, m host.Machine, before facts.Facts) {
	t.Helper()
	f, err := facts.Gather(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Stable(), f.Stable()); diff != "" {
		t.Errorf("another look, other facts: %s", diff)
	}
}

// TestFactsOfDriver: what a driver tells, and one that is in trouble.
func TestFactsOfDriver(t *testing.T) {
	ctx := context.Background()
	l := lab.New(t)
	m := l.Machine("facts-3", lab.PCI(lab.H100, lab.T4))
	r := l.Repository(l.DriverPackages("580.126.20")...)
	r.AddTo(m)
	m.Exec("apt-get", "-qq", "install", "nvidia-open")
	look := func() facts.Facts {
		t.Helper()
		f, err := facts.Gather(ctx, m.Remote())
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Unread) > 0 {
			t.Errorf("not understood: %q", f.Unread)
		}
		return f
	}
	if f := look(); f.NVIDIADriver != "" || f.GPUs[0].Driver != "nouveau" || f.GPUs[0].Memory != 0 {
		t.Errorf("before the driver is loaded: %q, %+v", f.NVIDIADriver, f.GPUs)
	}
	m.Script("modprobe -r nouveau")
	look()
	if out, err := m.Try("test", "-e", "/sys/module/nvidia"); err == nil {
		t.Errorf("a look has loaded the driver: %s", out)
	}
	m.Script("modprobe nvidia")
	f := look()
	want := []facts.GPU{
		{Address: "0000:01:00.0", ID: "10de:2330", Vendor: "nvidia", Name: "H100 80GB HBM3", Driver: "nvidia", Memory: 81559 << 20, UUID: "GPU-00000000-0000-0000-0000-000000000000"},
		{Address: "0000:02:00.0", ID: "10de:1eb8", Vendor: "nvidia", Name: "Tesla T4", Driver: "nvidia", Memory: 15360 << 20, UUID: "GPU-00000000-0000-0000-0000-000000000001"},
	}
	if diff := cmp.Diff(want, f.GPUs); diff != "" || f.NVIDIADriver != "580.126.20" || f.NVSwitch {
		t.Errorf("driver %q, switch %v, %s", f.NVIDIADriver, f.NVSwitch, diff)
	}
	m.Script("echo 'Unable to determine the device handle for GPU0000:01:00.0: Unknown Error' > /run/machine/gpu-failure")
	if f := look(); f.NVIDIADriver != "580.126.20" || f.GPUs[0].Memory != 0 || f.GPUs[0].Name == "" {
		t.Errorf("a driver in trouble: %q, %+v", f.NVIDIADriver, f.GPUs)
	}
	if left := strings.TrimSpace(m.Script("ls /tmp /var/tmp | grep '^tmp' || :")); left != "" {
		t.Errorf("left behind: %s", left)
	}
	if os.Getenv("STOKE_SLOW") != "" { // twenty seconds
		m.Script("printf '#!/bin/sh\\ntrap \"\" TERM HUP\\nsleep 300\\n' > \"$(command -v nvidia-smi)\"")
		started := time.Now()
		if f := look(); f.NVIDIADriver == "" {
			t.Errorf("a driver that hangs: %+v", f.GPUs)
		}
		t.Log(time.Since(started).Round(time.Second))
	}
}

// TestFactsWithoutRoot: a machine whose user may not become root is looked at
// all the same, and says so.
func TestFactsWithoutRoot(t *testing.T) {
	m := lab.New(t).Machine("facts-2")
	m.Exec("rm", "/etc/sudoers.d/stoke")
	f, err := facts.Gather(context.Background(), m.Remote())
	if err != nil {
		t.Fatal(err)
	}
	if f.Sudo.Works || f.Sudo.User != "ops" || !strings.Contains(f.Sudo.Error, "password") {
		t.Errorf("sudo: %+v", f.Sudo)
	}
	if len(f.Unread) > 0 || f.Hostname != "facts-2" || f.CPUs == 0 || len(f.NICs) == 0 {
		t.Errorf("the rest: %+v", f)
	}
	found := false
	for _, p := range facts.Preflight(f, facts.Needs{}) {
		found = found || p.Summary == "No root by sudo"
	}
	if !found {
		t.Error("nobody is told")
	}
}

// TestReach: three machines, one of which drops large packets, and one name
// server that answers nothing.
func TestReach(t *testing.T) {
	ctx := context.Background()
	l := lab.New(t)
	machines := l.Machines("reach-1", "reach-2", "reach-3")
	a, b, c := machines[0], machines[1], machines[2]
	c.Script(`nft -f - <<'R'
table inet hole {
	chain in { type filter hook input priority -300; meta l4proto { icmp, udp } meta length > 1000 drop; }
}
R`)
	const nowhere = "10.255.255.254"
	a.Script(`printf '%s reach-2.example\n' "$(hostname -I | cut -d' ' -f1)" >> /etc/hosts`)
	ask := func(what string) {
		started := time.Now()
		r, err := facts.Reachable(ctx, a.Remote(), 1500, []string{b.Address, c.Address, nowhere}, []string{"reach-2.example", "nobody.invalid"})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s %+v", what, time.Since(started).Round(time.Millisecond), r)
		if r.Peers[b.Address] != facts.Through || r.Peers[c.Address] != facts.OnlySmall || r.Peers[nowhere] == facts.Through {
			t.Errorf("%s: peers %v", what, r.Peers)
		}
		if r.Names["reach-2.example"] != facts.Through || r.Names["nobody.invalid"] == facts.Through {
			t.Errorf("%s: names %v", what, r.Names)
		}
	}
	a.Script("command -v ping || apt-get install -y -q iputils-ping")
	ask("by ping")
	a.Exec("ip", "route", "add", b.Address, "dev", "host0", "mtu", "1400")
	r, err := facts.Reachable(ctx, a.Remote(), 1500, []string{b.Address}, nil)
	if err != nil || r.Peers[b.Address] != facts.Smaller {
		t.Errorf("a smaller MTU on the way: %v, %v", r.Peers, err)
	}
	a.Exec("ip", "route", "del", b.Address, "dev", "host0")
	a.Exec("ip", "route", "flush", "cache")
	a.Script(`mv "$(command -v ping)" /root/ping`)
	ask("without ping")
}
