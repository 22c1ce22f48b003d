//go:build e2e && linux

package lab

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Repository is an apt repository on the lab's gateway, signed with a key of
// its own. It can be used as a flat one (suite "/") and as one with the suite
// "bookworm" and the components "main" and "stable", which have the same.
type Repository struct {
	URL         string // ends in a slash
	KeyURL      string // the public key, armored; Release.key beside it is the same
	Key         string // the same
	Fingerprint string // of the key: 40 hexadecimal digits

	lab  *Lab
	home string // of gpg
	path string // below which it lies on its server; "" or one that ends in a slash

	mu      sync.Mutex
	debs    map[string][]byte // by file name
	entries map[string]string // of Packages, by file name
	served  map[string][]byte // by path
	asked   []string          // the paths of all requests
}

// Repository makes a repository that has some packages.
func (l *Lab) Repository(packages ...Package) *Repository {
	l.t.Helper()
	return l.RepositoryAt("", packages...)
}

// RepositoryAt makes a repository in a folder of its server, such as
// "core:/stable:/v1.36/deb/".
func (l *Lab) RepositoryAt(path string, packages ...Package) *Repository {
	l.t.Helper()
	l.mu.Lock()
	l.repositories++
	name := fmt.Sprintf("gpg-%d", l.repositories)
	l.mu.Unlock()
	r := &Repository{lab: l, home: l.slot.folder(name), path: path, debs: map[string][]byte{}, entries: map[string]string{}}
	if err := r.newKey(); err != nil {
		l.t.Fatalf("make a key for a repository: %v", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(l.slot.gateway(), "0"))
	if err != nil {
		l.t.Fatal(err)
	}
	r.URL = "http://" + listener.Addr().String() + "/" + path
	r.KeyURL = r.URL + "key.asc"
	r.Publish(packages...)
	serve(l, listener, r)
	return r
}

// Publish adds packages, and signs everything anew.
func (r *Repository) Publish(packages ...Package) {
	r.lab.t.Helper()
	r.change(func() error {
		for _, p := range packages {
			deb, err := p.build()
			if err != nil {
				return fmt.Errorf("package %s: %w", p.Name, err)
			}
			r.debs[p.file()] = deb
			r.entries[p.file()] = fmt.Sprintf("%sFilename: pool/%s\nSize: %d\nSHA256: %x\n\n", p.control(), p.file(), len(deb), sha256.Sum256(deb))
		}
		return nil
	})
}

// Withdraw takes packages away.
func (r *Repository) Withdraw(packages ...Package) {
	r.lab.t.Helper()
	r.change(func() error {
		for _, p := range packages {
			delete(r.debs, p.file())
			delete(r.entries, p.file())
		}
		return nil
	})
}

// NewKey signs everything with another key from now on: for a machine that
// knows the old one, the repository is not to be trusted.
func (r *Repository) NewKey() {
	r.lab.t.Helper()
	r.change(r.newKey)
}

// Asked are the paths that machines asked for so far.
func (r *Repository) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.asked...)
}

func (r *Repository) change(do func() error) {
	r.lab.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	err := do()
	if err == nil {
		err = r.sign()
	}
	if err != nil {
		r.lab.t.Fatalf("change a repository: %v", err)
	}
}

// sign makes the indices of both layouts.
func (r *Repository) sign() error {
	var index bytes.Buffer
	for _, entry := range r.entries {
		index.WriteString(entry)
	}
	served := map[string][]byte{"key.asc": []byte(r.Key), "Release.key": []byte(r.Key)}
	for name, deb := range r.debs {
		served["pool/"+name] = deb
	}
	binary := "/binary-" + runtime.GOARCH + "/Packages"
	for dir, packages := range map[string][]string{"": {"Packages"}, "dists/" + r.lab.codename + "/": {"main" + binary, "stable" + binary}} {
		release := fmt.Sprintf("Origin: stoke lab\nLabel: stoke lab\nSuite: %s\nCodename: %[1]s\nArchitectures: %s\nComponents: main stable\nDate: %s\nSHA256:\n",
			r.lab.codename, runtime.GOARCH, time.Now().UTC().Format(time.RFC1123))
		for _, name := range packages {
			release += fmt.Sprintf(" %x %d %s\n", sha256.Sum256(index.Bytes()), index.Len(), name)
			served[dir+name] = index.Bytes()
		}
		signed, err := r.gpg(release, "--clearsign", "--digest-algo", "SHA512")
		if err != nil {
			return err
		}
		served[dir+"InRelease"] = signed
	}
	r.served = served
	return nil
}

// newKey makes the key.
func (r *Repository) newKey() error {
	if r.Key != "" {
		r.stopAgent()
		if err := os.RemoveAll(r.home); err != nil {
			return err
		}
	} else {
		r.lab.t.Cleanup(r.stopAgent)
	}
	if err := os.MkdirAll(r.home, 0o700); err != nil {
		return err
	}
	if _, err := r.gpg("", "--passphrase", "", "--quick-generate-key", "stoke lab <lab@example.org>", "ed25519", "sign", "never"); err != nil {
		return err
	}
	key, err := r.gpg("", "--armor", "--export")
	if err != nil {
		return err
	}
	list, err := r.gpg("", "--with-colons", "--list-keys")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(list)) {
		if f := strings.Split(line, ":"); f[0] == "fpr" && len(f) > 9 {
			r.Key, r.Fingerprint = string(key), f[9]
			return nil
		}
	}
	return fmt.Errorf("gpg shows no fingerprint: %s", list)
}

func (r *Repository) gpg(stdin string, args ...string) ([]byte, error) {
	cmd := exec.Command("gpg", append([]string{"--homedir", r.home, "--batch", "--quiet", "--yes", "--pinentry-mode", "loopback"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("gpg %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out, nil
}

// stopAgent ends the agent that gpg has left running for its folder.
func (r *Repository) stopAgent() {
	_ = exec.Command("gpgconf", "--homedir", r.home, "--kill", "all").Run()
}

// ServeHTTP serves what was signed last.
func (r *Repository) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(filepath.Clean(q.URL.Path), "/"), r.path)
	r.mu.Lock()
	content, ok := r.served[name]
	r.asked = append(r.asked, q.URL.Path)
	r.mu.Unlock()
	if !ok {
		http.NotFound(w, q)
		return
	}
	http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(content))
}

// AddTo adds the repository to a machine's apt, as a user would by hand, and
// updates the lists.
func (r *Repository) AddTo(m *Machine) {
	m.t.Helper()
	m.Script(`install -d /etc/apt/keyrings
printf %s "$2" > /etc/apt/keyrings/"$3".asc
printf 'deb [signed-by=/etc/apt/keyrings/%s.asc] %s /\n' "$3" "$1" > /etc/apt/sources.list.d/"$3".list
apt-get -qq update`, r.URL, r.Key, filepath.Base(r.home))
}
