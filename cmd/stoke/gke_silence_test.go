//go:build e2e

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// TestGoogleSilence: a service that accepts connections and never answers is one error of a plan within a minute, and the first Ctrl-C ends
// the wait for it.
func TestGoogleSilence(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	nowhere := "http://" + listener.Addr().String() + "/"
	const disks = `
terraform {
  required_providers { gke = { source = "stokehq/gke" } }
}
resource "gke_disk" "data" {
  count   = 30
  name    = "data-${count.index}"
  size_gb = 10
}
resource "gke_filestore" "share" {
  count       = 30
  name        = "share-${count.index}"
  tier        = "BASIC_HDD"
  share       = "data"
  capacity_gb = 1024
}
`
	for _, argument := range []string{"compute_endpoint", "file_endpoint", "service_usage_endpoint"} {
		t.Run(argument, func(t *testing.T) {
			t.Parallel()
			l := newGoogleLab(t, cloud.GRPC)
			l.write(disks)
			l.stoke(0, "apply", "-auto-approve")
			text := disks
			if argument == "service_usage_endpoint" { // it is asked for what is new
				text = strings.ReplaceAll(text, "= 30", "= 31")
			}
			l.write(text)
			began := time.Now()
			l.stoke(0, "plan")
			usual := time.Since(began) // what this machine takes for everything but the waits
			l.endpoint(argument, nowhere)
			began = time.Now()
			out := l.stoke(1, "plan")
			if n := strings.Count(out, "Error: "); n != 1 || !strings.Contains(out, argument) {
				t.Errorf("%d errors:\n%s", n, out)
			}
			silent := time.Since(began)
			if silent > time.Minute+usual {
				t.Errorf("the plan took %v, and one without waits %v", silent, usual)
			}
			cmd := l.command("plan")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second) // it waits by then; if not, there is less to end
			stopped := time.Now()
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			took := time.Since(stopped)
			t.Logf("the first Ctrl-C took %v", took)
			if took > silent/2+usual {
				t.Errorf("the first Ctrl-C took %v, a plan that waits %v, and one without waits %v", took, silent, usual)
			}
		})
	}
}

// endpoint leads one service elsewhere.
func (l *googleLab) endpoint(argument, url string) {
	l.Helper()
	name := l.dir + "/main.tf"
	text, err := os.ReadFile(name)
	if err != nil {
		l.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(strings.TrimSpace(line), argument) {
			out = append(out, line)
		}
	}
	all := strings.Replace(strings.Join(out, ""), "  transport ", fmt.Sprintf("  %s = %q\n  transport ", argument, url), 1)
	if err := os.WriteFile(name, []byte(all), 0o600); err != nil {
		l.Fatal(err)
	}
}
