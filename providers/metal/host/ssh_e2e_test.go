//go:build e2e && linux

package host_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// people makes users of all kinds on a Debian machine, and lets the keys in $1
// and the authority in $2 log in as each of them. $3 is their password.
const people = `
apt-get install -qq -y --no-install-recommends tcsh fish >/dev/null 2>&1 || { apt-get update -qq; apt-get install -qq -y --no-install-recommends tcsh fish >/dev/null 2>&1; }
add() { useradd -m -s "$2" "$1"; echo "$1:$3" | chpasswd; install -d -m 0700 -o "$1" "/home/$1/.ssh"; printf '%s\n' "$4" >"/home/$1/.ssh/authorized_keys"; chown "$1" "/home/$1/.ssh/authorized_keys"; }
for u in bash noisy leaves late unlisted terminal locked wrong files expired; do add $u /bin/bash "$3" "$1"; done
add dash /bin/sh "$3" "$1"; add csh /bin/tcsh "$3" "$1"; add fish /usr/bin/fish "$3" "$1"; add nologin /usr/sbin/nologin "$3" "$1"
for u in bash dash csh fish noisy leaves; do echo "$u ALL=(ALL:ALL) NOPASSWD: ALL"; done >/etc/sudoers.d/people
for u in wrong locked; do echo "$u ALL=(ALL:ALL) ALL"; done >>/etc/sudoers.d/people
printf 'Defaults:terminal requiretty\nterminal ALL=(ALL) NOPASSWD: ALL\n' >>/etc/sudoers.d/people
echo "printf 'Welcome without a line end'; printf 'and an error' >&2" | cat - /home/noisy/.bashrc >/home/noisy/new; mv /home/noisy/new /home/noisy/.bashrc
echo "exit 0" >/home/leaves/.bashrc
chage -d 0 expired
printf '%s\n' "$2" >/etc/ssh/authority.pub
ssh-keygen -q -t rsa -b 2048 -N '' -f /etc/ssh/ssh_host_rsa_key <<<y >/dev/null 2>&1 || true
[ -e /etc/ssh/ssh_host_rsa_key ] || ssh-keygen -q -t rsa -b 2048 -N '' -f /etc/ssh/ssh_host_rsa_key
[ -e /etc/ssh/ssh_host_ecdsa_key ] || ssh-keygen -q -t ecdsa -N '' -f /etc/ssh/ssh_host_ecdsa_key
cat >/etc/ssh/sshd_config.d/people.conf <<'END'
TrustedUserCAKeys /etc/ssh/authority.pub
HostKey /etc/ssh/ssh_host_ed25519_key
HostKey /etc/ssh/ssh_host_rsa_key
HostKey /etc/ssh/ssh_host_ecdsa_key
PasswordAuthentication yes
Match User files
  ForceCommand internal-sftp
END
systemctl reload ssh
server() { port=$1; shift; set -- "$@"; o=; for x; do o="$o -o $x"; done; systemd-run --quiet --unit="sshd-$port" /usr/sbin/sshd -D -f /etc/ssh/sshd_config -o "Port=$port" $o; }
server 2201 MaxSessions=1
server 2202 AllowTcpForwarding=no
server 2203 PasswordAuthentication=no KbdInteractiveAuthentication=yes PubkeyAuthentication=no
server 2204 AuthenticationMethods=publickey,password
server 2205 ClientAliveInterval=1 ClientAliveCountMax=0
server 2206 MaxStartups=1:100:1
for port in 2201 2202 2203 2204 2205 2206; do i=0; until ss -ltn | grep -q ":$port "; do i=$((i+1)); [ $i -lt 200 ]; sleep 0.05; done; done`

// world is a machine with all kinds of users, and the keys to it.
type world struct {
	*lab.Machine
	keys      map[string]any // private, by kind
	authority gossh.Signer
}

const userPassword = "canary-pw-1f6"

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{Machine: lab.New(t).Machine("ssh"), keys: map[string]any{}}
	_, w.keys["ed25519"] = sshtest.NewKey(t)
	w.authority, _ = sshtest.NewKey(t)
	var err error
	if w.keys["ecdsa"], err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if w.keys["rsa"], err = rsa.GenerateKey(rand.Reader, 3072); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, key := range w.keys {
		signer, err := gossh.NewSignerFromKey(key)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, sshtest.Line(signer.PublicKey()))
	}
	w.Exec("bash", "-euc", people, "bash", strings.Join(lines, "\n"), sshtest.Line(w.authority.PublicKey()), userPassword)
	return w
}

// as leads to the machine as a user, by the ed25519 key unless the credential
// says otherwise.
func (w world) as(t *testing.T, user string, port int, c ssh.Credential) ssh.Target {
	c.User = user
	if c.Password == "" && c.PrivateKey == "" && !c.Agent {
		c.PrivateKey = sshtest.PEM(t, w.keys["ed25519"], "")
	}
	return ssh.Target{Hop: ssh.Hop{Address: w.Address, Port: port, HostKey: w.HostKey, Credential: c}}
}

// try logs in and runs a command as root or as the user.
func try(t *testing.T, target ssh.Target, root bool) (string, error) {
	t.Helper()
	c, err := ssh.Dial(t.Context(), target, ssh.Timeouts{Begin: 20 * time.Second})
	if err != nil {
		return "", err
	}
	defer c.Close()
	out, err := c.Run(t.Context(), ssh.Command{Args: []string{"sh", "-c", `printf '%s|%s|' "$(id -un)" "$1"; cat`, "sh", "it's \\ ! $HOME `x`\n~é"}, Stdin: strings.NewReader("in"), Root: root})
	return string(out.Stdout), err
}

// TestSSH is everything about OpenSSH, PAM and sudo, on one machine.
func TestSSH(t *testing.T) {
	w := newWorld(t)
	t.Run("logins", w.logins)
	t.Run("servers", w.servers)
	t.Run("files", w.files) // it ends in power cuts
}

// logins is the table of ways to log in and to become root.
func (w world) logins(t *testing.T) {
	agent := realAgent(t, sshtest.PEM(t, w.keys["rsa"], ""))
	pem := func(kind, passphrase string) string { return sshtest.PEM(t, w.keys[kind], passphrase) }
	user, _ := gossh.NewSignerFromKey(w.keys["ed25519"])
	cert := func(name string) string {
		return sshtest.Line(sshtest.Certify(t, w.authority, user.PublicKey(), gossh.UserCert, name))
	}
	stranger, strangers := sshtest.NewKey(t)
	strangersCert := sshtest.Line(sshtest.Certify(t, w.authority, stranger.PublicKey(), gossh.UserCert, "bash"))
	sudo := ssh.Credential{Sudo: true}
	for _, c := range []struct {
		name, user string
		port       int
		c          ssh.Credential
		root       bool
		want       string // part of the error; "" for none
	}{
		{"ed25519", "bash", 22, ssh.Credential{PrivateKey: pem("ed25519", "")}, false, ""},
		{"ecdsa", "bash", 22, ssh.Credential{PrivateKey: pem("ecdsa", "")}, false, ""},
		{"rsa", "bash", 22, ssh.Credential{PrivateKey: pem("rsa", "")}, false, ""},
		{"encrypted", "bash", 22, ssh.Credential{PrivateKey: pem("rsa", "phrase"), Passphrase: "phrase"}, false, ""},
		{"agent", "bash", 22, ssh.Credential{Agent: true, AgentSocket: agent}, false, ""},
		{"certificate", "bash", 22, ssh.Credential{PrivateKey: sshtest.PEM(t, strangers, ""), Certificate: strangersCert}, false, ""},
		{"certificate for another", "dash", 22, ssh.Credential{PrivateKey: sshtest.PEM(t, strangers, ""), Certificate: strangersCert}, false, "does not let dash in"},
		{"certificate and key", "bash", 22, ssh.Credential{PrivateKey: pem("ed25519", ""), Certificate: cert("bash")}, false, ""},
		{"stranger", "bash", 22, ssh.Credential{PrivateKey: sshtest.PEM(t, strangers, "")}, false, "does not let bash in: tried ssh-ed25519 SHA256:"},
		{"nobody", "nobody-there", 22, ssh.Credential{}, false, "does not let nobody-there in"},
		{"password", "bash", 22, ssh.Credential{Password: userPassword}, false, ""},
		{"wrong password", "bash", 22, ssh.Credential{Password: "x"}, false, "does not let bash in: tried a password"},
		{"keyboard-interactive", "bash", 2203, ssh.Credential{Password: userPassword}, false, ""},
		{"keyboard-interactive, wrong", "bash", 2203, ssh.Credential{Password: "x"}, false, "does not let bash in"},
		{"keyboard-interactive, expired", "expired", 2203, ssh.Credential{Password: userPassword}, false, "asks for more than a password"},
		{"key and password", "bash", 2204, ssh.Credential{PrivateKey: pem("ecdsa", ""), Password: userPassword}, false, ""},
		{"key without the password", "bash", 2204, ssh.Credential{PrivateKey: pem("ecdsa", "")}, false, "does not let bash in"},
		{"expired", "expired", 22, ssh.Credential{}, false, "runs no commands"},
		{"dash", "dash", 22, sudo, true, ""},
		{"bash", "bash", 22, sudo, true, ""},
		{"csh", "csh", 22, sudo, true, ""},
		{"fish", "fish", 22, sudo, true, ""},
		{"noisy", "noisy", 22, sudo, true, ""},
		{"leaves", "leaves", 22, sudo, true, "(nothing)"},
		{"nologin", "nologin", 22, ssh.Credential{}, false, "This account is currently not available"},
		{"for files alone", "files", 22, ssh.Credential{}, false, "This service allows sftp connections only"},
		{"sudo unlisted", "unlisted", 22, sudo, true, "set sudo_password"},
		{"sudo unlisted, with password", "unlisted", 22, ssh.Credential{Sudo: true, SudoPassword: userPassword}, true, "unlisted is not in the sudoers file"},
		{"sudo with password", "wrong", 22, ssh.Credential{Sudo: true, SudoPassword: userPassword}, true, ""},
		{"sudo with a wrong password", "wrong", 22, ssh.Credential{Sudo: true, SudoPassword: "canary-no"}, true, "sudo does not take the password"},
		{"sudo without its password", "wrong", 22, sudo, true, "set sudo_password"},
		{"requiretty", "terminal", 22, sudo, true, "!requiretty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := try(t, w.as(t, c.user, c.port, c.c), c.root)
			who := c.user
			if c.root {
				who = "root"
			}
			switch want := who + "|it's \\ ! $HOME `x`\n~é|in"; {
			case (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want):
				t.Errorf("got %v, want %q", err, c.want)
			case err == nil && out != want:
				t.Errorf("got %q, want %q", out, want)
			case err != nil && !ssh.IsPermanent(err):
				t.Errorf("%v does not count as permanent", err)
			}
			if err != nil {
				t.Logf("it says: %v", err)
			}
			if strings.Contains(fmt.Sprint(err), "canary") {
				t.Errorf("tells a secret: %v", err)
			}
		})
	}
}

// realAgent is ssh-agent with a key in it.
func realAgent(t *testing.T, pem string) string {
	t.Helper()
	dir := t.TempDir()
	socket, key := filepath.Join(dir, "agent"), filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(pem), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Skipf("ssh-agent: %v", err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
	var said []byte
	for range 200 {
		add := exec.Command("ssh-add", key)
		add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
		var err error
		if said, err = add.CombinedOutput(); err == nil {
			return socket
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("ssh-add: %s", said)
	return ""
}

// servers is about how servers are set up, and about host keys.
func (w world) servers(t *testing.T) {
	ok := func(name string, target ssh.Target, want string) {
		t.Helper()
		_, err := try(t, target, false)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	target := w.as(t, "bash", 22, ssh.Credential{})
	for _, kind := range []string{"ed25519", "rsa", "ecdsa"} {
		to := target
		to.HostKey = w.Exec("cat", "/etc/ssh/ssh_host_"+kind+"_key.pub")
		ok("host key "+kind, to, "")
	}
	changed := target
	other, _ := sshtest.NewKey(t)
	changed.HostKey = sshtest.Line(other.PublicKey())
	ok("changed", changed, "shows the host key SHA256:")
	through := target
	through.Hops = []ssh.Hop{w.as(t, "dash", 22, ssh.Credential{}).Hop, w.as(t, "fish", 2201, ssh.Credential{}).Hop}
	ok("two bastions", through, "")
	through.Hops = []ssh.Hop{changed.Hop}
	ok("bastion changed", through, "hop "+w.Address+": "+w.Address+" shows the host key")
	through.Hops = []ssh.Hop{w.as(t, "bash", 2202, ssh.Credential{}).Hop}
	ok("bastion forwards nothing", through, "does not open connections to")
	down := w.as(t, "bash", 2299, ssh.Credential{})
	ok("nobody listens", down, "connection refused")
	down.Hops = []ssh.Hop{target.Hop}
	ok("nobody listens behind a bastion", down, "Connection refused")

	// Between sshd and the end of booting PAM lets nobody in: that passes.
	w.Script("echo 'System is booting up. Unprivileged users are not permitted to log in yet.' >/run/nologin")
	for name, c := range map[string]ssh.Credential{"key": {}, "password": {Password: userPassword}} {
		if _, err := try(t, w.as(t, "bash", 22, c), false); err == nil || ssh.IsPermanent(err) || !strings.Contains(err.Error(), "booting up") {
			t.Errorf("while it boots, by %s: permanent %v: %v", name, ssh.IsPermanent(err), err)
		}
	}
	w.Script("rm /run/nologin")

	p := &ssh.Pool{Patience: 20 * time.Second}
	defer p.Close()
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			out, err := p.Run(t.Context(), w.as(t, "bash", 2201, ssh.Credential{}), func() ssh.Command {
				return ssh.Command{Args: []string{"echo", fmt.Sprint(i)}}
			}, false)
			if err != nil || string(out.Stdout) != fmt.Sprintln(i) {
				t.Errorf("MaxSessions 1: %q %v", out.Stdout, err)
			}
		})
	}
	all.Wait()
	// A server that closes who is idle: the next command is none the wiser.
	idle := w.as(t, "bash", 2205, ssh.Credential{})
	for range 2 {
		if _, err := p.Run(t.Context(), idle, func() ssh.Command { return ssh.Command{Args: []string{"true"}} }, false); err != nil {
			t.Errorf("after the server closed: %v", err)
		}
		w.Exec("pkill", "-f", "sshd: bash")
	}
	// Many at once at a server that takes one login at a time.
	for range 6 {
		all.Go(func() {
			own := &ssh.Pool{Patience: time.Minute, Pause: 50 * time.Millisecond}
			defer own.Close()
			if _, err := own.Run(t.Context(), w.as(t, "bash", 2206, ssh.Credential{}), func() ssh.Command { return ssh.Command{Args: []string{"true"}} }, false); err != nil {
				t.Errorf("MaxStartups 1: %v", err)
			}
		})
	}
	all.Wait()
}

// files fills a disk and loses the power.
func (w world) files(t *testing.T) {
	p := &ssh.Pool{Patience: time.Minute}
	defer p.Close()
	target := w.as(t, "wrong", 22, ssh.Credential{Sudo: true, SudoPassword: userPassword})
	w.Script("mkdir /small; mount -t tmpfs -o size=1M,mode=0755 small /small; echo old >/small/f")
	large := bytes.Repeat([]byte("x"), 4<<20)
	err := p.Put(t.Context(), target, ssh.File{Path: "/small/f", Content: large, Mode: 0o600, Root: true})
	var failed *ssh.CommandError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "No space left on device") {
		t.Errorf("full disk: %v", err)
	}
	if got := w.Exec("sh", "-c", "cat /small/f; ls -A /small"); got != "old\nf" {
		t.Errorf("full disk: the folder has %q", got)
	}
	if err := p.Put(t.Context(), target, ssh.File{Path: "/root/large", Content: large, Mode: 0o640, Owner: "root:adm", Root: true}); err != nil {
		t.Error(err)
	}
	if got := w.Exec("stat", "-c", "%s %a %U:%G", "/root/large"); got != "4194304 640 root:adm" {
		t.Errorf("large file: %s", got)
	}

	w.Reboot()
	if _, err := p.Run(t.Context(), target, func() ssh.Command { return ssh.Command{Args: []string{"true"}} }, false); err != nil {
		t.Errorf("after a reboot: %v", err)
	}
	for range 3 {
		w.Crash()
		w.PowerOn()
		if err := p.Put(t.Context(), target, ssh.File{Path: "/root/after", Content: []byte("x"), Mode: 0o600, Root: true}); err != nil {
			t.Errorf("after a power cut: %v", err)
		}
	}
}
