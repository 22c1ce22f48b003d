package nvidia

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// made is a package that was made up: name, version and dependencies.
type made struct{ name, version, depends string }

// kernelArchive is a kernel of an archive, with the driver's modules for it: in one package, or in objects and signatures.
func kernelArchive(number int, split bool) []made {
	release, meta := fmt.Sprintf("6.8.0-%d-generic", number), fmt.Sprintf("6.8.0.%d.%d", number, number)
	const driver = "nvidia-580-server-open-"
	all := []made{
		{"linux-image-" + release, "6.8.0-" + fmt.Sprint(number), ""}, {"linux-headers-" + release, "6.8.0-" + fmt.Sprint(number), ""},
		{"linux-image-generic", meta, "linux-image-" + release}, {"linux-headers-generic", meta, "linux-headers-" + release},
		{"linux-generic", meta, "linux-image-generic (= " + meta + "), linux-headers-generic (= " + meta + ")"},
	}
	if !split {
		return append(all, made{"linux-modules-" + driver + release, meta, "linux-image-" + release}, made{"linux-modules-" + driver + "generic", meta, "linux-modules-" + driver + release})
	}
	return append(all, made{"linux-objects-" + driver + release, meta, ""}, made{"linux-signatures-nvidia-" + release, meta, ""},
		made{"linux-modules-" + driver + release, meta, "linux-objects-" + driver + release + ", linux-signatures-nvidia-" + release},
		made{"linux-modules-" + driver + "generic", meta, "linux-modules-" + driver + release})
}

func (m made) stanza(more string) string {
	text := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: nobody <nobody@example.org>\n%s", m.name, m.version, more)
	if m.depends != "" {
		text += "Depends: " + m.depends + "\n"
	}
	return text + "Description: made up\n\n"
}

// apt is apt's own solver on a machine in a folder.
type apt struct {
	*testing.T
	dir string
}

func newApt(t *testing.T, installed, offered []made, held []string) apt {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("there is no apt-get")
	}
	a := apt{t, t.TempDir()}
	for _, d := range []string{"etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d", "lists/partial", "cache/archives/partial", "dpkg/updates", "repo"} {
		if err := os.MkdirAll(filepath.Join(a.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var status, index strings.Builder
	for _, m := range installed {
		want := "install"
		if slices.Contains(held, m.name) {
			want = "hold"
		}
		status.WriteString(m.stanza("Status: " + want + " ok installed\n"))
	}
	for _, m := range offered {
		index.WriteString(m.stanza("Filename: ./" + m.name + ".deb\nSize: 1\nSHA256: " + strings.Repeat("0", 64) + "\n"))
	}
	for name, text := range map[string]string{
		"dpkg/status": status.String(), "repo/Packages": index.String(), "etc/apt/sources.list": "deb [trusted=yes] file:" + a.dir + "/repo ./\n",
	} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a.run("update")
	return a
}

func (a apt) run(args ...string) string {
	a.Helper()
	config := filepath.Join(a.dir, "apt.conf")
	text := fmt.Sprintf("Dir::Etc %q;\nDir::State::lists %q;\nDir::State::status %q;\nDir::State %q;\nDir::Cache %q;\nAPT::Architecture \"amd64\";\nAPT::Architectures { \"amd64\"; };\nAPT::Sandbox::User \"root\";\nDebug::NoLocking \"true\";\n",
		a.dir+"/etc/apt", a.dir+"/lists", a.dir+"/dpkg/status", a.dir, a.dir+"/cache")
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		a.Fatal(err)
	}
	cmd := exec.Command("apt-get", args...)
	cmd.Env = append(os.Environ(), "APT_CONFIG="+config, "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		a.Fatalf("apt-get %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// installs are the packages that apt would install or upgrade.
func (a apt) installs(args ...string) []string {
	a.Helper()
	var all []string
	for line := range strings.Lines(a.run(append([]string{"-s", "-y"}, args...)...)) {
		if rest, ok := strings.CutPrefix(line, "Inst "); ok {
			name, _, _ := strings.Cut(rest, " ")
			all = append(all, name)
		}
	}
	return all
}

// TestKernelsWait: where the driver's modules come built, no update brings a kernel without them, by apt's own solver: kernels are held with
// the driver, and released with it. The command of the note brings both.
func TestKernelsWait(t *testing.T) {
	const image, module = "linux-image-6.8.0-60-generic", "linux-modules-nvidia-580-server-open-6.8.0-60-generic"
	for name, split := range map[string]bool{"modules": false, "objects and signatures": true} {
		t.Run(name, func(t *testing.T) {
			installed, offered := kernelArchive(51, split), append(kernelArchive(51, split), kernelArchive(60, split)...)
			s := State{OS: "ubuntu", Packages: map[string]string{}, offers: map[string]packages.Offer{}}
			for _, m := range installed {
				s.Packages[m.name] = m.version
			}
			for _, m := range offered {
				s.offers[m.name] = packages.Offer{Candidate: m.version}
			}
			upgrade := []string{"upgrade", "--with-new-pkgs"}
			// The driver's packages held, and no kernel: this is how a machine loses its GPUs.
			if got := newApt(t, installed, offered, s.Driver()).installs(upgrade...); !slices.Contains(got, image) || slices.Contains(got, module) {
				t.Errorf("with the driver held apt installs %v", got)
			}
			held := newApt(t, installed, offered, s.notHeld())
			for _, args := range [][]string{upgrade, {"dist-upgrade"}} {
				if got := held.installs(args...); len(got) > 0 {
					t.Errorf("%v installs %v", args, got)
				}
			}
			if got := newApt(t, installed, offered, nil).installs(upgrade...); !slices.Contains(got, image) || !slices.Contains(got, module) {
				t.Errorf("released, apt installs %v", got)
			}
			notes := s.Waiting()
			if len(notes) != 1 || !strings.Contains(notes[0], "6.8.0.60.60 is available") {
				t.Fatalf("the note is %q", notes)
			}
			_, command, _ := strings.Cut(notes[0], "apt-get ")
			if got := held.installs(strings.Fields(command)...); !slices.Contains(got, image) || !slices.Contains(got, module) {
				t.Errorf("%q installs %v", command, got)
			}
		})
	}
}

// TestKernelsHeld: kernels are held and kept from unattended upgrades with modules that come built, go back to how they were with the driver, and
// are left alone where dkms builds the modules.
func TestKernelsHeld(t *testing.T) {
	generic := "6.8.0-51-generic"
	b := ubuntu(generic, a100).with("linux-generic=6.8.0.51.52", "linux-image-generic=6.8.0.51.52", "linux-headers-generic=6.8.0.51.52", "linux-image-"+generic).sees(noble580(generic)...)
	b.held = []string{"linux-headers-generic", "vim"}
	b.archive["linux-modules-nvidia-580-server-open-generic"] = "6.8.0-51.52+1"
	b.done(t, spec("580"), b.hooks("580.173.02", true))
	for _, name := range []string{"linux-generic", "linux-image-generic", "linux-headers-generic", "linux-modules-nvidia-580-server-open-generic"} {
		if !slices.Contains(b.held, name) {
			t.Errorf("%s is not held", name)
		}
	}
	if text := string(b.Files[UpgradesFile].Content); !strings.Contains(text, `"^linux-image-generic$";`) || !strings.Contains(text, `"^nvlsm$";`) {
		t.Errorf("unattended upgrades are kept from %s", text)
	}
	rec, err := host.OpenRecord(t.Context(), b, "gpu-driver")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), b, rec, nil); err != nil || !slices.Equal(slices.Sorted(slices.Values(b.held)), []string{"linux-headers-generic", "vim"}) {
		t.Errorf("given back, these are held: %v (%v)", b.held, err)
	}
	d := debian("12", h100).sees("linux-headers-6.1.0-40-amd64")
	d.done(t, spec("580", fromNVIDIA), d.hooks("580.95.05", true))
	if slices.Contains(d.held, "linux-image-amd64") || strings.Contains(string(d.Files[UpgradesFile].Content), "linux-image") {
		t.Errorf("modules by dkms hold %v", d.held)
	}
}
