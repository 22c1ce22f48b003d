package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/certificate"
	"github.com/stokehq/stoke/runtime/spec"
)

// With a certificate, roles listen for the whole network, and what they say is
// encrypted; without one they refuse to. Nobody joins who has only the token.
func TestRolesWithACertificate(t *testing.T) {
	t.Parallel()
	s := small()
	s.ParameterServer.Replicas = 2
	c := newCell(t, s)
	name := filepath.Join(c.dir, "run")
	out, err := exec.Command(trainer, "certificate", name).CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	key, pin := name+"-key.pem", name+".pem"
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key: %v, %v", info, err)
	}
	if out, err := exec.Command(trainer, "certificate", name).CombinedOutput(); err == nil || !strings.Contains(string(out), "exists") {
		t.Errorf("a certificate was written over another one: %s", out)
	}
	c.start("ps", "--index", "0", "--listen", "0.0.0.0:0").ends(spec.EndUsage)
	c.start("ps", "--index", "0", "--listen", "0.0.0.0:0", "--certificate-file", pin).ends(spec.EndUsage)

	var all []*solo
	for _, index := range []string{"0", "1"} {
		p := c.start("ps", "--index", index, "--listen", "0.0.0.0:0", "--certificate-file", key)
		c.servers = append(c.servers, here(p.listening("workers")))
		all = append(all, p)
	}
	p := c.start("coordinator", "--state", filepath.Join(c.dir, "state"), "--servers", strings.Join(c.servers, ","),
		"--listen", "0.0.0.0:0", "--listen-api", "0.0.0.0:0", "--certificate-file", key)
	c.workers = here(p.listening("workers"))
	at := here(p.listening("api"))
	all = append(all, p)

	text, err := os.ReadFile(pin)
	if err != nil {
		t.Fatal(err)
	}
	known, err := certificate.ReadPin(text)
	if err != nil {
		t.Fatal(err)
	}
	client := api.New("https://"+at, testToken, known)
	defer client.Close()
	if _, err := client.Status(t.Context()); err != nil {
		t.Error("the API:", err)
	}
	plain := api.New("http://"+at, testToken, nil)
	defer plain.Close()
	if _, err := plain.Status(t.Context()); err == nil {
		t.Error("the API was answered without TLS")
	}
	stranger := c.worker("1", "--coordinator-timeout", "1s") // it has the token alone
	stranger.ends(spec.EndNoCoordinator)
	all = append(all, c.worker("0", "--certificate-file", pin), c.worker("1", "--certificate-file", pin))
	for _, p := range all {
		p.ends(spec.EndFinished)
	}
}

// here is the address of a listener for everybody, as one of this machine
// reaches it.
func here(address string) string {
	return "127.0.0.1:" + address[strings.LastIndex(address, ":")+1:]
}
