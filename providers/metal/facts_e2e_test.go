//go:build e2e && linux

package metal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// TestDataSources: the key that a machine shows leads to it, and what it is can
// be used in a configuration.
func TestDataSources(t *testing.T) {
	l := lab.New(t)
	m := l.Machine("data-1")
	p := newProject(t, l)
	p.write(`
data "metal_known_host" "a" {
  address = %q
}
resource "metal_host" "a" {
  address  = data.metal_known_host.a.address
  host_key = data.metal_known_host.a.host_key
}
data "metal_host_facts" "a" {
  host = metal_host.a.ssh
}
output "said" {
  value = "${data.metal_host_facts.a.hostname} ${data.metal_host_facts.a.os.id} ${data.metal_host_facts.a.cpus} ${data.metal_host_facts.a.architecture} ${data.metal_known_host.a.source}"
}
output "stored" {
  value = metal_host.a.facts.kernel.running
}`, m.Address)
	p.apply()
	want := fmt.Sprintf("data-1 debian %s amd64 connection", strings.TrimSpace(m.Exec("nproc")))
	if got := strings.TrimSpace(p.ok("output", "-raw", "said")); got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	if got, want := strings.TrimSpace(p.ok("output", "-raw", "stored")), strings.TrimSpace(m.Exec("uname", "-r")); got != want {
		t.Errorf("stored %q, want %q", got, want)
	}
	m.Reboot()
	p.settled()
	p.ok("destroy", "-auto-approve")
}

// TestReviewed: machines that have nothing wrong by themselves, and much with
// each other, which one plan says.
func TestReviewed(t *testing.T) {
	l := lab.New(t)
	machines := l.Machines("review-1", "review-2", "review-3")
	p := newProject(t, l)
	var text strings.Builder
	for i, m := range machines {
		fmt.Fprintf(&text, `
resource "metal_host" "n%d" {
  address         = %q
  host_key        = %q
  role            = "worker"
  cluster         = "lab"
  allow_cgroup_v1 = true
}
`, i+1, m.Address, m.HostKey)
	}
	p.write("%s", text.String())
	out, status := p.run("plan", "-no-color")
	if status != 0 {
		t.Fatalf("machines that are well: exit status %d\n%s", status, out)
	}
	for _, not := range []string{"share", "Full-size", "different MTUs", "do not answer", "could not be"} {
		if strings.Contains(out, not) {
			t.Errorf("machines that are well: %q in\n%s", not, out)
		}
	}

	a, b, c := machines[0], machines[1], machines[2]
	b.Script(`printf '%s\n' "$1" > /etc/machine-id; hostname review-1; ip link set host0 mtu 1400`, strings.TrimSpace(a.Exec("cat", "/etc/machine-id")))
	c.Script(`nft -f - <<'R'
table inet hole {
	chain in { type filter hook input priority -300; meta l4proto { icmp, udp } meta length > 1000 drop; }
}
R`)
	out, status = p.run("plan", "-no-color")
	if status == 0 {
		t.Errorf("nothing is refused:\n%s", out)
	}
	for _, want := range []string{
		"Machines share a machine id", "Machines share a host name", "Machines have different MTUs", "Full-size packets do not arrive",
		"metal_host.n1, metal_host.n2", "metal_host.n3 (" + c.Address + ")",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said in\n%s", want, out)
		}
	}

	// What a machine has by itself is said for all of them.
	p.write("%s", strings.ReplaceAll(text.String(), "allow_cgroup_v1 = true", ""))
	out, _ = p.run("plan", "-no-color")
	if n := strings.Count(out, "Control groups are version 1"); n != 3 {
		t.Errorf("said of %d machines, not of 3:\n%s", n, out)
	}
}
