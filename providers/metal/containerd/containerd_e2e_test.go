//go:build e2e && linux

package containerd_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/containerd"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// archive is an image of one file under each reference.
func archive(t *testing.T, content string, refs ...string) containerd.Image {
	t.Helper()
	name := lab.ImageArchive(t, content, refs...)
	open := func() (io.ReadCloser, error) { return os.Open(name) }
	digest, err := containerd.ArchiveDigest(open)
	if err != nil {
		t.Fatal(err)
	}
	return containerd.Image{Archive: digest, Open: open, Pin: true}
}

type world struct {
	*testing.T
	m      *lab.Machine
	remote *host.Remote
	rec    *host.Record
}

func (w world) look(want containerd.Spec) (containerd.Facts, []host.Change) {
	w.Helper()
	have, err := containerd.Observe(w.Context(), w.remote, want)
	if err != nil {
		w.Fatal(err)
	}
	return have, containerd.Table.Diff(want, have)
}

func (w world) apply(want containerd.Spec) {
	w.Helper()
	have, _ := w.look(want)
	if err := containerd.Apply(w.Context(), w.remote, w.rec, want, have); err != nil {
		w.Fatal(err)
	}
	if _, left := w.look(want); len(left) > 0 {
		w.Errorf("after it was applied there is: %+v", left)
	}
}

const (
	refA, refB = "registry.lan/a:1", "registry.lan/b:1"
	refC       = "registry.lan/c:1"
)

func TestContainerd(t *testing.T) {
	m := lab.New(t).Machine("a")
	install(t, m)
	pool := &ssh.Pool{Patience: time.Minute}
	defer pool.Close()
	w := world{T: t, m: m, remote: &host.Remote{Pool: pool, Target: m.Target()}}
	image := archive(t, "one", refA, refB)
	want := containerd.Spec{
		Config: true, Sandbox: "registry.lan/pause:3.10.1", BinDir: "/usr/lib/cni",
		Mirrors: map[string]containerd.Mirror{
			"docker.io": {Endpoints: []containerd.Endpoint{{URL: "https://mirror.lan:5000"}}}, "registry.lan:5000": {Endpoints: []containerd.Endpoint{{URL: "http://10.0.0.1"}}},
		},
		Proxy:  &containerd.Proxy{HTTP: "http://proxy.lan:3128", No: "10.0.0.0/8,.lan"},
		Images: map[string]containerd.Image{refA: image, refB: {Archive: image.Archive, Open: image.Open}},
	}
	if err := want.Validate(); err != nil {
		t.Fatal(err)
	}
	before := m.Snapshot()
	var err error
	if w.rec, err = host.NewRecord(t.Context(), w.remote, "host", "id-1", "metal_host.a"); err != nil {
		t.Fatal(err)
	}
	have, changes := w.look(want)
	t.Logf("containerd %s: %d changes, %s", have.Version, len(changes), host.Greatest(changes))
	if host.Greatest(changes) != host.RestartsContainer {
		t.Errorf("the first apply: %s", host.Greatest(changes))
	}
	w.apply(want)
	dump := m.Script("containerd config dump 2>&1")
	if strings.Contains(dump, "Ignoring unknown key") {
		t.Errorf("containerd ignores a key:\n%s", dump)
	}
	for _, says := range []string{"SystemdCgroup = true", "registry.lan/pause:3.10.1", "/usr/lib/cni", "/etc/containerd/certs.d"} {
		if !strings.Contains(dump, says) {
			t.Errorf("containerd's configuration has nothing of %q", says)
		}
	}
	if env := m.Exec("systemctl", "show", "-p", "Environment", "--value", "containerd"); !strings.Contains(env, "HTTP_PROXY=http://proxy.lan:3128") {
		t.Errorf("the service's environment is %q", env)
	}
	if images := m.Exec("ctr", "-n", "k8s.io", "images", "ls"); strings.Count(images, "pinned=pinned") != 1 {
		t.Errorf("images:\n%s", images)
	}
	w.refusals(want)
	w.drifts(want)

	m.Reboot()
	if _, left := w.look(want); len(left) > 0 {
		t.Errorf("after a reboot there is: %+v", left)
	}
	// somebody else's addition is nobody's drift, and in use
	m.Script(`printf 'version = 2\n[debug]\n  level = "debug"\n' >/etc/containerd/conf.d/99-mine.toml`)
	if _, left := w.look(want); len(left) > 0 {
		t.Errorf("an addition shows as %+v", left)
	}
	if dump := m.Exec("containerd", "config", "dump"); !strings.Contains(dump, "level = 'debug'") && !strings.Contains(dump, `level = "debug"`) {
		t.Errorf("the addition is not in use")
	}
	m.Exec("rm", "/etc/containerd/conf.d/99-mine.toml")

	want.Proxy = nil
	delete(want.Mirrors, "registry.lan:5000")
	delete(want.Images, refB)
	w.apply(want)
	if env := m.Exec("systemctl", "show", "-p", "Environment", "--value", "containerd"); strings.Contains(env, "PROXY") {
		t.Errorf("the proxy is still in use: %q", env)
	}
	if images := m.Exec("ctr", "-n", "k8s.io", "images", "ls", "-q"); !strings.Contains(images, refA) || strings.Contains(images, refB) {
		t.Errorf("images: %s", images)
	}

	outcomes, err := containerd.Restore(t.Context(), w.remote, w.rec)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		t.Logf("%s: %s %s", o.Fact, o.Fate, o.Why)
	}
	if err := w.rec.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if images := m.Exec("ctr", "-n", "k8s.io", "images", "ls", "-q"); images != "" {
		t.Errorf("images left: %s", images)
	}
	if diff := lab.Diff(before, m.Snapshot(), "content /var/lib/containerd/...", "file /var/lib/containerd/...", "folder /var/lib/containerd/...", "listener tcp 127.0.0.1:*"); len(diff) > 0 {
		t.Errorf("not as before:\n%s", strings.Join(diff, "\n"))
	}
}

// install installs Debian's containerd, with the programs containerd and ctr of
// another version in its place where STOKE_CONTAINERD names a folder with them.
func install(t *testing.T, m *lab.Machine) {
	began := time.Now()
	m.Script("apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -qqy install --no-install-recommends containerd >/dev/null 2>&1; systemctl is-active containerd")
	if dir := os.Getenv("STOKE_CONTAINERD"); dir != "" {
		m.Exec("systemctl", "stop", "containerd")
		for _, name := range []string{"containerd", "ctr"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			pool := &ssh.Pool{}
			defer pool.Close()
			remote := &host.Remote{Pool: pool, Target: m.Target()}
			cmd := host.Command{Args: []string{"sh", "-c", `cat >"$1" && chmod 0755 "$1"`, "sh", "/usr/bin/" + name},
				Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
			if _, err := remote.Run(t.Context(), cmd); err != nil {
				t.Fatal(err)
			}
		}
		m.Exec("systemctl", "start", "containerd")
	}
	t.Logf("installed in %s", time.Since(began).Round(time.Millisecond))
}

// refusals are mistakes that leave everything as it is.
func (w world) refusals(want containerd.Spec) {
	w.Helper()
	pid := w.m.Exec("systemctl", "show", "-p", "MainPID", "--value", "containerd")
	for _, c := range []struct {
		name   string
		change func(*containerd.Image)
		says   string
	}{
		{"no such image in it", func(*containerd.Image) {}, "the archive has no image " + refC},
		{"another archive than planned", func(i *containerd.Image) { i.Archive = strings.Repeat("0", 64) }, "plan again"},
		{"cut off", func(i *containerd.Image) {
			i.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("half")), nil }
		}, ""},
		{"no file", func(i *containerd.Image) {
			i.Open = func() (io.ReadCloser, error) { return os.Open("/nonexistent") }
		}, "no such file"},
	} {
		image := archive(w.T, c.name, refB)
		c.change(&image)
		spec := containerd.Spec{Images: map[string]containerd.Image{refA: want.Images[refA], refB: want.Images[refB], refC: image}, Config: want.Config, Sandbox: want.Sandbox, BinDir: want.BinDir, Mirrors: want.Mirrors, Proxy: want.Proxy}
		now, _ := w.look(spec)
		began := time.Now()
		err := containerd.Apply(w.Context(), w.remote, w.rec, spec, now)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			w.Errorf("%s: %v", c.name, err)
		}
		if time.Since(began) > 30*time.Second {
			w.Errorf("%s: tried for %s", c.name, time.Since(began))
		}
	}
	w.apply(want)
	// the refused archives were other images of one of the names
	w.m.Script(`ctr -n k8s.io images ls | awk 'NR > 1 && $1 ~ /^sha256:/ { print $1, $3 }' | while read -r id d; do
	ctr -n k8s.io images ls | grep -v ^sha256: | grep -q "$d" || ctr -n k8s.io images rm "$id"; done`)
	if now := w.m.Exec("systemctl", "show", "-p", "MainPID", "--value", "containerd"); now != pid {
		w.Errorf("images restarted containerd")
	}
}

func (w world) drifts(want containerd.Spec) {
	w.Helper()
	for _, d := range []struct {
		fact, script string
		d            host.Disruption
	}{
		{"containerd's configuration", "sed -i 's/SystemdCgroup = true/SystemdCgroup = false/' /etc/containerd/config.toml", host.RestartsContainer},
		{"containerd's configuration", "rm /etc/containerd/config.toml", host.RestartsContainer},
		{"mirror of docker.io", "echo >>/etc/containerd/certs.d/docker.io/hosts.toml", host.None},
		{"mirror of registry.lan:5000", "rm -r /etc/containerd/certs.d/registry.lan:5000", host.None},
		{"containerd's proxy", "sed -i s/3128/3129/ /etc/systemd/system/containerd.service.d/http-proxy.conf", host.RestartsContainer},
		{"containerd", "systemctl stop containerd", host.None},
		{"containerd", "systemctl disable containerd", host.None},
		{"image " + refA, "ctr -n k8s.io images rm " + refA, host.None},
		{"image " + refA, "ctr -n k8s.io images rm " + refA + " && ctr -n k8s.io images tag " + refB + " " + refA + " && ctr -n k8s.io images label " + refA + " dev.stoke.archive=", host.None},
		{"pin of image " + refA, "ctr -n k8s.io images label " + refA + " io.cri-containerd.pinned=", host.None},
		{"pin of image " + refB, "ctr -n k8s.io images label " + refB + " io.cri-containerd.pinned=pinned", host.None},
	} {
		w.m.Script(d.script)
		_, changes := w.look(want)
		seen := false
		for _, c := range changes {
			seen = seen || c.Fact == d.fact
			w.Logf("%s: %s", c.Fact, c.Disruption)
		}
		if !seen || host.Greatest(changes) != d.d {
			w.Errorf("%q shows as %+v", d.script, changes)
		}
		w.apply(want)
	}
}
