//go:build e2e && linux

package lab

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// Lab is a network with machines on it, for one test. It ends with the test.
type Lab struct {
	// Key is the private key, in PEM, that the users ops and admin of every
	// machine log in with.
	Key string

	t          testing.TB
	slot       slot
	codename   string
	root       string // the file system that machines start from
	recipe     string // testdata/machines
	authorized string // Key's public half as an authorized_keys line
	pool       ssh.Pool

	mu           sync.Mutex
	machines     []*Machine
	repositories int // made so far
}

// New makes a lab. The test runs in parallel with others that have labs of their
// own: machines mostly wait. Where there cannot be one, because this is not
// Linux, not root, or something is missing, the test is skipped with the reason;
// with STOKE_E2E_REQUIRE=1 in the environment it fails instead.
func New(t testing.TB) *Lab {
	t.Helper()
	return Of(t, Bookworm)
}

// Of is New with machines of another release of Debian.
func Of(t testing.TB, codename string) *Lab {
	t.Helper()
	if p, ok := t.(interface{ Parallel() }); ok {
		p.Parallel()
	}
	return begin(t, codename)
}

// Alone is New for a test that has the machine that it runs on for itself.
func Alone(t testing.TB) *Lab {
	t.Helper()
	return begin(t, Bookworm)
}

// allowWatches raises how many inotify instances root may have, as far as the
// kernel allows: the programs of all machines together need several for each
// machine, and with the usual 128 a dozen machines at a time do not boot.
func allowWatches() {
	const limit, enough = "/proc/sys/fs/inotify/max_user_instances", 1024
	text, err := os.ReadFile(limit)
	if err != nil {
		return
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n < enough {
		_ = os.WriteFile(limit, []byte(strconv.Itoa(enough)), 0o644) // machines that do not boot say why
	}
}

func begin(t testing.TB, codename string) *Lab {
	t.Helper()
	l := &Lab{t: t, codename: codename}
	if why := missing(); why != "" {
		l.refuse(why)
	}
	allowWatches()
	recipe, err := findRecipe()
	if err != nil {
		t.Fatal(err)
	}
	l.recipe = recipe
	if l.root, err = rootfs(t.Logf, recipe, codename); err != nil {
		t.Fatalf("build the machines' root file system: %v", err)
	}
	if l.Key, l.authorized, err = newKey(); err != nil {
		t.Fatal(err)
	}
	if l.slot, err = claim(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.end)
	if err := l.slot.up(); err != nil {
		t.Fatal(err)
	}
	if err := serveProxy(l); err != nil {
		t.Fatal(err)
	}
	return l
}

// refuse ends the test without a lab.
func (l *Lab) refuse(why string) {
	l.t.Helper()
	if os.Getenv("STOKE_E2E_REQUIRE") == "1" {
		l.t.Fatalf("no lab here: %s", why)
	}
	l.t.Skipf("no lab here: %s", why)
}

// end removes everything, in the order in which nothing is in the way of the
// next.
func (l *Lab) end() {
	l.pool.Close()
	for _, m := range l.machines {
		if l.t.Failed() {
			m.logEnd()
		}
		m.cut()
	}
	if err := l.slot.sweep(); err != nil {
		l.t.Errorf("take the lab down: %v", err)
	}
	l.slot.release()
}

// missing says what keeps this machine from holding a lab, "" for nothing.
func missing() string {
	if os.Geteuid() != 0 {
		return "it needs root"
	}
	for tool, from := range map[string]string{
		"systemd-nspawn": "systemd-container", "nsenter": "util-linux", "ip": "iproute2", "mmdebstrap": "mmdebstrap", "gpg": "gnupg",
	} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is not installed (package " + from + "; testdata/machines/install brings all that is needed)"
		}
	}
	if cap := lacking(); cap != "" {
		return "it needs the capability " + cap
	}
	groups, err := cgroups("stoke-lab-probe")
	if err != nil {
		return err.Error()
	}
	for _, g := range groups {
		if err := os.MkdirAll(g, 0o755); err != nil {
			return "control groups cannot be made: " + err.Error()
		}
		_ = os.Remove(g) // another lab may have been quicker
	}
	if _, err := sources(Bookworm); err != nil {
		return err.Error()
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err == nil && !strings.Contains(string(filesystems), "\toverlay\n") {
		// As a module it is loaded by the first mount, if root may.
		if out, err := exec.Command("modprobe", "overlay").CombinedOutput(); err != nil {
			return "the kernel has no overlayfs: " + strings.TrimSpace(string(out))
		}
	}
	return ""
}

// lacking names a capability that is needed and not there, "" for none: root in
// a container may have few.
func lacking() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(status)) {
		hex, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		have, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		for _, c := range []struct {
			bit  uint
			name string
		}{{12, "CAP_NET_ADMIN"}, {18, "CAP_SYS_CHROOT"}, {21, "CAP_SYS_ADMIN"}, {27, "CAP_MKNOD"}} {
			if err == nil && have&(1<<c.bit) == 0 {
				return c.name
			}
		}
	}
	return ""
}

// newKey makes an SSH key: its private half in PEM, its public half as an
// authorized_keys line.
func newKey() (private, public string, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	block, err := gossh.MarshalPrivateKey(priv, "stoke lab")
	if err != nil {
		return "", "", err
	}
	key, err := gossh.NewPublicKey(pub)
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(block)), strings.TrimSpace(string(gossh.MarshalAuthorizedKey(key))), nil
}
