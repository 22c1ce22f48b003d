//go:build e2e && linux

package metal_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// BenchmarkHostPlan plans one machine, as examples/metal-hosts has it, whose every
// answer is 20 ms away: the first plan, with everything to do, and one with nothing
// to do. One that takes 3 s fails.
func BenchmarkHostPlan(b *testing.B) {
	l := lab.New(b)
	m := l.Machine("far", lab.NoMirror())
	runtime := l.ContainerdPackage("1.6.20") // as if Debian had it
	runtime.Name, runtime.Fields = "containerd", nil
	l.Repository(runtime).AddTo(m)
	p := newProject(b, l)
	p.write(`resource "metal_host" "far" {
  address  = "127.0.0.1"
  port     = %d
  host_key = %q
  hostname = "far"
  cluster  = "lab"
  role     = "worker"
  timezone = "Europe/Berlin"
  swap     = "off"
  kernel_modules     = ["br_netfilter", "overlay"]
  sysctl             = { "net.ipv4.ip_forward" = "1", "vm.max_map_count" = "262144" }
  packages           = { coreutils = {} }
  containerd_package = { version = "*", source = "distribution" }
  containerd         = {}
  allow_cgroup_v1    = true
}
resource "metal_firewall" "far" {
  host        = metal_host.far.ssh
  role        = "worker"
  peers       = [metal_host.far.node_address]
  pod_network = ["10.244.0.0/16"]
  cni         = "flannel"
  ssh_port    = 22
}
`, far(b, net.JoinHostPort(m.Address, "22"), 20*time.Millisecond), m.HostKey)
	plan := func(b *testing.B) {
		for b.Loop() {
			p.ok("plan")
		}
		if each := b.Elapsed() / time.Duration(b.N); each >= 3*time.Second {
			b.Errorf("a plan takes %s", each)
		}
	}
	b.Run("first", plan)
	p.ok("apply", "-auto-approve")
	b.Run("again", plan)
}

// far is a port of this machine that leads to another one, whose answers come
// after delay each.
func far(t testing.TB, to string, delay time.Duration) (port int) {
	t.Helper()
	near, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	go func() {
		for {
			client, err := near.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(server, client)
				server.Close()
			}()
			go late(client, server, delay)
		}
	}()
	return near.Addr().(*net.TCPAddr).Port
}

// late passes on what comes from a connection, each piece after delay; pieces
// that follow each other closely do not wait for one another.
func late(to io.WriteCloser, from io.Reader, delay time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1000)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				pieces <- piece{data[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	defer to.Close()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}
