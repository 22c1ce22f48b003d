package containerd_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/metal/containerd"
	"github.com/stokehq/stoke/providers/metal/nvidia"
)

// settings are those of TOML of which each is on one line, by table and key.
type settings map[string]string

var plain = strings.NewReplacer("'", `"`, " ", "")

func settingsOf(text string) settings {
	all, table := settings{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if key, value, found := strings.Cut(line, "="); found && !strings.HasPrefix(line, "#") {
			all[table+" "+strings.TrimSpace(key)] = plain.Replace(value)
		} else if strings.HasPrefix(line, "[") {
			table = plain.Replace(line)
		}
	}
	return all
}

// real is the containerd 2 that was built.
type real struct {
	program, version string
	known            settings // that it has by itself
}

func realContainerd(t *testing.T) *real {
	t.Helper()
	c := &real{program: filepath.Join(kubetest.Programs(t, "containerd/install", "containerd", "make e2e-pods"), "containerd")}
	said, _ := c.run(t, "--version")
	release := regexp.MustCompile(` v(2\.[0-9.]+)`).FindStringSubmatch(said)
	if release == nil {
		t.Fatalf("containerd is %s", said)
	}
	c.version = release[1]
	said, _ = c.run(t, "config", "default")
	c.known = settingsOf(said)
	return c
}

func (c *real) run(t *testing.T, args ...string) (out, warned string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(c.program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("containerd %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// of is the runtime that a setting is of: each has what runc has.
var of = regexp.MustCompile(`\.containerd\.runtimes\.[a-z]+`)

// complaints has it read a configuration with a file that adds to it, and print what
// it has. They are what it warned of, settings that it prints with another value, and
// those that it has not by itself: of some tables it takes every key, and uses none of
// these.
func (c *real) complaints(t *testing.T, config, addition string, want settings) (all []string) {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	// The files in the folder of additions are the test's, not this machine's.
	file := put("config.toml", strings.Replace(config, containerd.DropIns+"/*", dir+"/addition*", 1))
	put("addition.toml", addition)
	dump, warned := c.run(t, "--config", file, "config", "dump")
	if warned != "" {
		all = append(all, warned)
	}
	printed := settingsOf(dump)
	if !strings.Contains(printed[" imports"], dir) {
		all = append(all, "imports: "+printed[" imports"])
	}
	for key, value := range want {
		switch _, known := c.known[of.ReplaceAllString(key, ".containerd.runtimes.runc")]; {
		case key == " imports":
		case printed[key] != value:
			all = append(all, key+" = "+printed[key]+", want "+value)
		case !known:
			all = append(all, key+": containerd has no such setting")
		}
	}
	return all
}

// TestContainerdTakesThem: the real containerd 2 prints all back that is written for
// it, by metal_host and by metal_gpu_driver, and ignores no key.
func TestContainerdTakesThem(t *testing.T) {
	c := realContainerd(t)
	rendered := func(spec containerd.Spec, version string) string {
		t.Helper()
		text, known := containerd.Rendered(spec, containerd.Facts{Version: version})
		if !known {
			t.Fatalf("nothing is written for containerd %s", version)
		}
		return text
	}
	full := containerd.Spec{Config: true, Sandbox: "registry.example/pause:3.10.1", BinDir: "/usr/lib/cni",
		Mirrors: map[string]containerd.Mirror{"docker.io": {Endpoints: []containerd.Endpoint{{URL: "https://mirror.lan"}}}}}
	config := rendered(full, c.version)
	want := settingsOf(config)
	for key, value := range settingsOf(nvidia.Runtime) {
		want[key] = value
	}
	if len(want) < 13 {
		t.Fatalf("only %d settings are written: %v", len(want), want)
	}
	for _, says := range c.complaints(t, config, nvidia.Runtime, want) {
		t.Error(says)
	}
	least := rendered(containerd.Spec{Config: true}, c.version)
	for _, says := range c.complaints(t, least, "version = 3\n", settingsOf(least)) {
		t.Errorf("of a configuration without values: %s", says)
	}
	// As a machine has it whose containerd was 1.7 until now. Beside an addition of
	// version 3, containerd takes all of it for that version.
	migrated := settingsOf(config)
	delete(migrated, " version")
	for _, says := range c.complaints(t, rendered(full, "1.7.27"), "version = 2\n", migrated) {
		t.Errorf("of what was written for version 1: %s", says)
	}
	for _, broken := range [][2]string{{"bin_dirs", "bin_folders"}, {"config_path", "config_folder"}, {"sandbox", "sandbox_image"}, {"SystemdCgroup", "SystemdCgroups"},
		{"default_runtime_name", "default_runtime"}, {"enable_cdi", "enable_cdis"}, {"io.containerd.internal.v1.opt", "io.containerd.internal.v1.opts"}} {
		text, addition := strings.ReplaceAll(config, broken[0], broken[1]), strings.ReplaceAll(nvidia.Runtime, broken[0], broken[1])
		wrong := settingsOf(text)
		for key, value := range settingsOf(addition) {
			wrong[key] = value
		}
		if len(c.complaints(t, text, addition, wrong)) == 0 {
			t.Errorf("containerd takes %s in place of %s", broken[1], broken[0])
		}
	}
}
