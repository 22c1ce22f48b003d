//go:build e2e && linux

package metal_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// canary begins every secret of TestCanaries; a word behind it says which.
const canary = "Kanarienvogel7x"

// users are who works on the machine, by key and password and with a password
// for sudo, and who is only on the way there.
const users = `for u in worker jump; do useradd -m -s /bin/bash $u; done
printf 'worker:%s\njump:%s\n' "$1" "$2" | chpasswd
install -d -m 0700 -o worker /home/worker/.ssh
printf '%s\n' "$3" >/home/worker/.ssh/authorized_keys
chown worker /home/worker/.ssh/authorized_keys
echo 'worker ALL=(ALL:ALL) ALL' >/etc/sudoers.d/worker
printf 'PasswordAuthentication yes\nMatch User worker\n  AuthenticationMethods publickey,password\n' >/etc/ssh/sshd_config.d/canary.conf
systemctl reload ssh
mkdir /closed; mount -t tmpfs -o ro,mode=0755 closed /closed`

// aviary is a project with a machine, in neither of which anything may let the
// canary out.
type aviary struct {
	*project
	machine *lab.Machine
	secrets [][]byte // in all forms
	env     map[string]string
}

func newAviary(t *testing.T) *aviary {
	l := lab.New(t)
	p := newProject(t, l)
	a := &aviary{project: p, machine: l.Machine("node-1", lab.NoMirror())}
	signer, private := sshtest.NewKey(t)
	locked := sshtest.PEM(t, private, canary+"phrase")
	a.machine.Script(users, canary+"login", canary+"bastion", sshtest.Line(signer.PublicKey()))
	for _, text := range []string{canary, strings.Split(locked, "\n")[2]} {
		a.secrets = append(a.secrets, []byte(text), []byte(hex.EncodeToString([]byte(text))))
		for shift := range 3 { // where it stands within groups of three bytes
			coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + text))
			a.secrets = append(a.secrets, []byte(coded[4:len(coded)-4]))
		}
	}
	a.env = map[string]string{
		"TF_VAR_key": locked, "TF_VAR_passphrase": canary + "phrase", "TF_VAR_password": canary + "login", "TF_VAR_sudo_password": canary + "login",
		"TF_VAR_jump_password": canary + "bastion", "TF_VAR_token": canary + "content",
		"HOME": filepath.Join(p.dir, "home"), "TMPDIR": filepath.Join(p.dir, "tmp"), // where something may be left, too
		"TF_LOG": "trace", "TF_LOG_PATH": filepath.Join(p.dir, "stoke.log"),
	}
	for _, name := range []string{"HOME", "TMPDIR"} {
		if err := os.Mkdir(a.env[name], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a.provider("")
	return a
}

// provider writes the provider block.
func (a *aviary) provider(more string) {
	a.file("provider.tf", `terraform {
  required_providers {
    metal = { source = "stokehq/metal" }
  }
}
variable "key" { sensitive = true }
variable "passphrase" {
  sensitive = true
  ephemeral = true
}
variable "password" { sensitive = true }
variable "sudo_password" {
  sensitive = true
  ephemeral = true
}
variable "jump_password" { sensitive = true }
variable "token" {
  sensitive = true
  ephemeral = true
}
provider "metal" {
  ssh {
    user          = "worker"
    private_key   = var.key
    passphrase    = var.passphrase
    password      = var.password
    sudo_password = var.sudo_password
    credentials   = { jump = { user = "jump", password = var.jump_password, sudo = false } }
  }
`+more+"}\n")
}

// host declares the machine.
func (a *aviary) host(more string) {
	a.write(`resource "metal_host" "node" {
  address  = %[1]q
  host_key = %[2]q
  bastion {
    address    = %[1]q
    host_key   = %[2]q
    credential = "jump"
  }
  hostname = "gpu-1"
  sysctl   = { "net.ipv4.ip_forward" = 1 }
%s
}`, a.machine.Address, a.machine.HostKey, more)
}

// start is a command that has the secrets, not started.
func (a *aviary) start(args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd, out := a.command(args...), &bytes.Buffer{}
	for name, value := range a.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// does runs a command and looks at all that it says and writes here.
func (a *aviary) does(ok bool, args ...string) string {
	a.t.Helper()
	cmd, out := a.start(args...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || (err == nil) != ok {
		a.t.Fatalf("stoke %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	what := "stoke " + strings.Join(args, " ")
	a.clean("what "+what+" says", out.Bytes())
	a.cleanFolder(what)
	return out.String()
}

// clean fails where a secret is in a text, or in an archive.
func (a *aviary) clean(what string, text []byte) {
	a.t.Helper()
	for _, secret := range a.secrets {
		if i := bytes.Index(text, secret); i >= 0 {
			a.t.Errorf("a secret is in %s: …%q…", what, text[max(0, i-100):min(len(text), i+len(secret)+20)])
			return
		}
	}
	archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return
	}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			a.t.Fatal(err)
		}
		inner, err := io.ReadAll(r)
		if err != nil {
			a.t.Fatal(err)
		}
		a.clean(what+", "+f.Name, inner)
	}
}

// cleanFolder looks at every file here: none holds a secret by design.
func (a *aviary) cleanFolder(after string) {
	a.t.Helper()
	err := filepath.WalkDir(a.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		a.clean(e.Name()+" after "+after, text)
		return err
	})
	if err != nil {
		a.t.Error(err)
	}
}

// root is the machine's file system as the machine sees it: that of its first
// process, which lives as long as the machine is on. Other processes may be gone
// before their folder has been read.
func (a *aviary) root() string {
	a.t.Helper()
	leader := a.machine.Leader()
	if leader == 0 {
		a.t.Fatal("the machine is off")
	}
	return fmt.Sprintf("/proc/%d/root/", leader)
}

// watch looks at the arguments and the environment of everything that runs on
// the machine until it is stopped.
func (a *aviary) watch() (stop func()) {
	root, over, seenSudo := a.root(), make(chan struct{}), false
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(10 * time.Millisecond):
			}
			processes, _ := filepath.Glob(root + "proc/[0-9]*")
			for _, process := range processes {
				for _, what := range []string{"cmdline", "environ"} {
					text, err := os.ReadFile(filepath.Join(process, what))
					if err != nil {
						continue // it has ended
					}
					seenSudo = seenSudo || what == "cmdline" && bytes.HasPrefix(text, []byte("sudo\x00-S"))
					a.clean(what+" of a process", text)
				}
			}
		}
	})
	return func() {
		close(over)
		all.Wait()
		if !seenSudo {
			a.t.Error("nobody who watches the machine sees sudo run: is anything seen at all?")
		}
	}
}

// remote looks at every file of the machine, and at its journal: the secrets are
// in these files alone.
func (a *aviary) remote(want ...string) {
	a.t.Helper()
	a.clean("the machine's journal", []byte(a.machine.Exec("journalctl", "--no-pager", "--quiet", "--output=export")))
	root := a.root()
	patterns := filepath.Join(a.t.TempDir(), "patterns")
	if err := os.WriteFile(patterns, append(bytes.Join(a.secrets, []byte("\n")), '\n'), 0o600); err != nil {
		a.t.Fatal(err)
	}
	grep := exec.Command("grep", "-rlaF", "-D", "skip", "-f", patterns, "--exclude-dir=proc", "--exclude-dir=sys", root)
	var complaints bytes.Buffer
	grep.Stderr = &complaints
	out, err := grep.Output() // its exit status says only whether anything was found
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		a.t.Fatalf("grep: %v", err)
	}
	for line := range strings.Lines(complaints.String()) {
		if !strings.HasSuffix(line, "No such file or directory\n") || strings.HasSuffix(line, root+": No such file or directory\n") {
			a.t.Fatalf("grep could not read all: %s", line)
		}
	}
	found := strings.Fields(strings.ReplaceAll(string(out), root, "/"))
	slices.Sort(found)
	if strings.Join(found, " ") != strings.Join(want, " ") {
		a.t.Errorf("secrets are in %q, want %q", found, want)
	}
}

// tried is how often the machine's journal says something.
func (a *aviary) tried(text string) int {
	return strings.Count(a.machine.Exec("journalctl", "--no-pager", "--quiet", "--output=cat"), text)
}

// TestCanaries has the whole program work with every kind of secret: plans,
// applies, one that fails and one that is killed, wrong passwords, destroy. They
// are nowhere: not in what it says, logs or writes, nor in any process's
// arguments or environment on the machine, nor in any file there but the one
// meant. A wrong password is given once.
func TestCanaries(t *testing.T) {
	a := newAviary(t)
	const token = `files = { "/etc/app/token" = { sensitive_content = var.token, mode = "0600" } }`
	a.host(token)
	stop := a.watch()
	a.does(true, "plan", "-json", "-out=p")
	a.does(true, "show", "p")
	a.does(true, "apply", "-json", "p")
	a.remote("/etc/app/token")
	a.env["TF_VAR_token"] = canary + "changed"
	a.host(`files = {
    "/etc/app/token"  = { sensitive_content = var.token, mode = "0600" }
    "/closed/to/all"  = { sensitive_content = var.token, mode = "0600" }
  }`)
	a.does(false, "apply", "-auto-approve")

	a.machine.Script("mount -o remount,rw /closed")
	cmd, out := a.start("apply", "-auto-approve")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2000 { // until it has begun to change something
		if _, err := a.machine.Try("test", "-e", "/closed/to"); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	cmd.Process.Kill()
	cmd.Wait()
	a.clean("what a killed apply says", out.Bytes())
	a.cleanFolder("a killed apply")
	delete(a.env, "TF_LOG_PATH") // to the terminal
	a.does(true, "apply", "-auto-approve")
	a.remote("/closed/to/all", "/etc/app/token")
	a.does(true, "show", "-json")
	stop()

	a.wrong()
	a.does(true, "destroy", "-auto-approve")
	a.remote()
}

// wrong gives secrets where they are not taken, or are wrong.
func (a *aviary) wrong() {
	a.t.Helper()
	password := a.env["TF_VAR_sudo_password"]
	a.host(`timezone = "Etc/GMT+3"`) // so that there is something to do
	a.env["TF_VAR_sudo_password"] = canary + "wrong"
	a.does(false, "apply", "-auto-approve")
	if n := a.tried("incorrect password attempt"); n != 1 {
		a.t.Errorf("sudo was given %d wrong passwords", n)
	}
	a.env["TF_VAR_sudo_password"], a.env["TF_VAR_password"] = password, canary+"wrong"
	a.does(false, "apply", "-auto-approve")
	if n := a.tried("Failed password for worker"); n != 1 {
		a.t.Errorf("sshd was given %d wrong passwords", n)
	}
	a.env["TF_VAR_password"], a.env["TF_VAR_passphrase"] = password, canary+"wrong"
	a.does(false, "apply", "-auto-approve")
	a.env["TF_VAR_passphrase"] = canary + "phrase"

	a.file("urls.tf", "variable \"url\" { sensitive = true }\n")
	a.provider("  mirrors = { \"https://download.docker.com\" = var.url }\n  proxy {\n    http = var.url\n  }\n")
	for _, url := range []string{"http://user:" + canary + "proxy@10.0.0.1:3128", "http://" + canary + "token%zz@10.0.0.1"} {
		a.env["TF_VAR_url"] = url
		a.has(a.does(false, "plan"), "Invalid mirror", "Invalid proxy")
	}
	if err := os.Remove(filepath.Join(a.dir, "urls.tf")); err != nil {
		a.t.Fatal(err)
	}
	a.provider("")
	a.host("")
}
