package containerd

import (
	"encoding/base64"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile("testdata/"+name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s:\n%s", name, diff)
	}
}

func TestConfig(t *testing.T) {
	s := Spec{Config: true, Sandbox: "registry.k8s.io/pause:3.10.1"}
	for version, file := range map[string]string{"1.6.20~ds1": "config-v2.toml", "1.7.28": "config-v2.toml", "2.1.0": "config-v3.toml", "v2.2.1": "config-v3.toml"} {
		text, err := s.configFor(version)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, file, text)
	}
	// 2.0 takes one folder of CNI plugins, and knows no other key for it.
	first, err := s.configFor("2.0.5")
	if later, _ := s.configFor("2.1.0"); err != nil || first != strings.Replace(later, `bin_dirs = ["/opt/cni/bin"]`, `bin_dir = "/opt/cni/bin"`, 1) || first == later {
		t.Errorf("2.0.5: %v\n%s", err, first)
	}
	for _, version := range []string{"", "0.9", "x", "buildkit"} {
		if text, err := s.configFor(version); err == nil {
			t.Errorf("version %q: %s", version, text)
		}
	}
}

func TestMirror(t *testing.T) {
	m := Mirror{Endpoints: []Endpoint{{URL: "https://mirror.lan:5000", CA: "/etc/ssl/lan.pem"}, {URL: "http://10.0.0.1/v2/hub", SkipVerify: true, OverridePath: true}}}
	golden(t, "hosts.toml", m.Text("docker.io"))
}

func TestValidate(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	mirror := func(url string) Spec {
		return Spec{Mirrors: map[string]Mirror{"docker.io": {Endpoints: []Endpoint{{URL: url}}}}}
	}
	for _, c := range []struct {
		name string
		spec Spec
		says string
	}{
		{"nothing", Spec{}, ""},
		{"all", Spec{Config: true, Sandbox: "registry.k8s.io/pause:3.10.1", BinDir: "/usr/lib/cni", Proxy: &Proxy{HTTP: "http://proxy.lan:3128", No: "localhost,10.0.0.0/8,.lan"},
			Mirrors: map[string]Mirror{"registry.lan:5000": {Endpoints: []Endpoint{{URL: "https://m.lan"}}}}, Images: map[string]Image{"docker.io/library/busybox:1.37": {Archive: sum}}}, ""},
		{"credentials", mirror("https://me:secret@m.lan"), "credentials"},
		{"not a URL", mirror("m.lan:5000"), "URL"},
		{"a quote", mirror(`https://m.lan/"`), "characters"},
		{"a line", mirror("https://m.lan/\n[x]"), "URL"},
		{"no endpoint", Spec{Mirrors: map[string]Mirror{"docker.io": {}}}, "endpoint"},
		{"registry that climbs", Spec{Mirrors: map[string]Mirror{"..": {Endpoints: []Endpoint{{URL: "https://m"}}}}}, "registry"},
		{"registry with a path", Spec{Mirrors: map[string]Mirror{"a/b": {Endpoints: []Endpoint{{URL: "https://m"}}}}}, "registry"},
		{"short reference", Spec{Images: map[string]Image{"busybox": {Archive: sum}}}, "in full"},
		{"no tag", Spec{Images: map[string]Image{"docker.io/library/busybox": {Archive: sum}}}, "in full"},
		{"port, no tag", Spec{Images: map[string]Image{"lan:5000/busybox": {Archive: sum}}}, "in full"},
		{"option", Spec{Images: map[string]Image{"-x/y:1": {Archive: sum}}}, "in full"},
		{"no archive", Spec{Images: map[string]Image{"docker.io/library/busybox:1": {}}}, "archive"},
		{"proxy with a password", Spec{Proxy: &Proxy{HTTPS: "http://u:p@proxy"}}, "credentials"},
		{"exceptions that end the line", Spec{Proxy: &Proxy{No: "a\"\nExecStart=x"}}, "exceptions"},
		{"relative", Spec{BinDir: "opt/cni"}, "absolute"},
	} {
		err := c.spec.Validate()
		if (c.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want something of %q", c.name, err, c.says)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the password is in %v", c.name, err)
		}
	}
}

// parse reads what look printed.
func parse(out string, asked []string) (Facts, error) {
	f, lines := reader(asked)
	err := lines.Read([]byte(out))
	return *f, err
}

// answer is what look prints.
func answer(version, active, restart, config, images string) string {
	b := base64.StdEncoding.EncodeToString
	return "version\t" + version + "\nactive\t" + active + "\nenabled\tenabled\nreload\tno\nrestart\t" + restart +
		"\nfile\t" + ConfigFile + "\t" + b([]byte(config)) + "\nimages\t" + b([]byte(images)) + "\nend\n"
}

const debian = "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3"

func TestParse(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	d := "sha256:" + strings.Repeat("cd", 32)
	images := "REF TYPE DIGEST SIZE PLATFORMS LABELS \n" +
		"docker.io/library/a:1 application/vnd.oci.image.manifest.v1+json " + d + " 2.6 KiB linux/amd64 dev.stoke.archive=" + sum + "@" + d + ",io.cri-containerd.image=managed,io.cri-containerd.pinned=pinned \n" +
		"docker.io/library/b:1 application/vnd.oci.image.manifest.v1+json " + d + " 2.6 KiB linux/amd64 dev.stoke.archive=" + sum + "@sha256:ef \n" +
		"docker.io/library/c:1 application/vnd.oci.image.manifest.v1+json " + d + " 2.6 KiB - - \n"
	f, err := parse(answer(debian, "active", "due", "old\n", images), []string{ConfigFile, "images"})
	if err != nil {
		t.Fatal(err)
	}
	want := Facts{Version: "1.6.20", Active: true, Enabled: true, Stale: true, Config: "old\n", Seen: true, Files: map[string]string{}, Images: map[string]ImageFacts{
		"docker.io/library/a:1": {Digest: d, Archive: sum, Pinned: true},
		"docker.io/library/b:1": {Digest: d}, // somebody gave the name to another image
		"docker.io/library/c:1": {Digest: d},
	}}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
	for _, out := range []string{"", "end\n", "x\nend\n", answer(debian, "", "", "", "")[1:], answer("docker 1", "", "", "", ""), answer(debian, "", "", "", "a b c d\n"),
		strings.Replace(answer(debian, "", "", "", ""), ConfigFile, "/etc/shadow", 1), answer(debian, "", "", "", "") + "more\n"} {
		if f, err := parse(out, []string{ConfigFile, "images"}); err == nil {
			t.Errorf("%q is read as %+v", out, f)
		}
	}
}

// What systemd 257 says of every unit once one was enabled without a reload is no
// reason for a restart: the files of containerd's own unit are.
func TestNeedsReload(t *testing.T) {
	const unit, dropIn = "/etc/systemd/system/containerd.service", "/etc/systemd/system/containerd.service.d/a.conf"
	for _, c := range []struct {
		name, says, since string
		files             []string // that there are
		stale             bool
	}{
		{"nothing was changed", "no", "1", []string{unit}, false},
		{"another unit was enabled", "yes", "4102444800", []string{unit}, false},
		{"its unit was changed", "yes", "1", []string{unit}, true},
		{"a drop-in is new", "yes", "1", []string{dropIn}, true},
		{"a drop-in is as old as it", "yes", "4102444800", []string{dropIn}, false},
		{"its unit is gone", "yes", "4102444800", nil, true},
	} {
		m := hosttest.NewTree(t)
		program := "#!/bin/sh\ncase \"$*\" in *--quiet*) exit 3;; *NeedDaemonReload*) echo " + c.says + ";; *ActiveEnterTimestamp*) echo @" + c.since + ";; *FragmentPath*) "
		if !slices.Contains(c.files, dropIn) {
			program += "echo " + m.Root + unit + ";"
		}
		program += ";; *is-active*) echo active;; *is-enabled*) echo enabled;; esac\n"
		if err := os.WriteFile(m.Root+"/bin/systemctl", []byte(strings.ReplaceAll(program, ";;;", ";;")), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range c.files {
			m.Sh(`mkdir -p "${1%/*}"; : >"$1"`, file)
		}
		f, err := Observe(t.Context(), m, Spec{Config: true})
		if err != nil || f.Stale != c.stale || !f.Active {
			t.Errorf("%s: %v %+v", c.name, err, f)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(answer(debian, "active", "", "x", "REF\na b sha256:1 2 KiB - -\n"))
	want := Spec{Config: true, Proxy: &Proxy{}, Mirrors: map[string]Mirror{"a": {}}, Images: map[string]Image{"a/b:1": {}}}
	f.Fuzz(func(t *testing.T, out string) {
		if have, err := parse(out, []string{ConfigFile, "images"}); err == nil {
			Table.Diff(want, have)
		}
	})
}

func TestDiff(t *testing.T) {
	list := hosttest.NewChecks(t, "containerd")
	want := Spec{Config: true}
	text, err := want.configFor("1.6.20")
	if err != nil {
		t.Fatal(err)
	}
	good := Facts{Version: "1.6.20", Active: true, Enabled: true, Config: text}
	with := func(change func(*Facts)) Facts { f := good; change(&f); return f }
	for _, c := range []struct {
		name string
		have Facts
		d    host.Disruption
		fact string
	}{
		{"as declared", good, host.None, ""},
		{"another configuration", with(func(f *Facts) { f.Config += "x" }), host.RestartsContainer, "configuration"},
		{"another one, stopped", with(func(f *Facts) { f.Config, f.Active = "", false }), host.None, "containerd"},
		{"not restarted since", with(func(f *Facts) { f.Stale = true }), host.RestartsContainer, "configuration"},
		{"not enabled", with(func(f *Facts) { f.Enabled = false }), host.None, "containerd"},
		{"not installed", Facts{}, host.None, "containerd"},
	} {
		changes := Table.Diff(want, c.have)
		list.Case("%s", c.name)
		list.Say("service: %s", c.have.Service())
		list.Changes(changes)
		if (len(changes) == 0) != (c.fact == "") || host.Greatest(changes) != c.d || len(changes) > 0 && !strings.Contains(changes[0].Fact, c.fact) {
			t.Errorf("%s: %+v", c.name, changes)
		}
	}
	uses := with(func(f *Facts) {
		f.Config, f.Docker, f.Along = "", true, []string{"b.service", "a.service", "b.service"}
	})
	bound := with(func(f *Facts) { f.Config, f.Docker, f.Along = "", true, []string{"docker.service"} })
	quiet := with(func(f *Facts) { f.Docker, f.Along = true, []string{"docker.service"} })
	for _, c := range []struct {
		have Facts
		says []string
	}{
		{uses, []string{"a.service restarts with containerd", "b.service restarts with containerd", "Docker loses containerd while it restarts, and connects again; its containers go on"}},
		{bound, []string{"docker.service restarts with containerd"}}, {quiet, nil},
	} {
		if diff := cmp.Diff(c.says, RestartEffects(c.have, Table.Diff(want, c.have))); diff != "" {
			t.Error(diff)
		}
	}
	all := Spec{Config: true, Sandbox: "registry.k8s.io/pause:3.10.1", Proxy: &Proxy{HTTP: "http://proxy:3128", No: ".svc"},
		Mirrors: map[string]Mirror{"docker.io": {Endpoints: []Endpoint{{URL: "https://mirror.lan"}}}},
		Images:  map[string]Image{"a/b:1": {Archive: strings.Repeat("ab", 32), Pin: true}, "a/c:1": {Archive: strings.Repeat("cd", 32)}}}
	seen := with(func(f *Facts) {
		f.Seen, f.Images = true, map[string]ImageFacts{"a/b:1": {Digest: "sha256:01", Archive: strings.Repeat("ef", 32)}, "a/c:1": {Digest: "sha256:02", Pinned: true}}
	})
	for _, c := range []struct {
		name string
		want Spec
		have Facts
	}{{"all, of a service that runs", all, seen}, {"all, of one that does not", all, with(func(f *Facts) { f.Active = false })}, {"images alone", Spec{Images: all.Images}, Facts{}}, {"version 2", all, with(func(f *Facts) { f.Version = "2.2.1" })}} {
		list.Case("%s", c.name)
		list.Changes(Table.Diff(c.want, c.have))
	}
}
