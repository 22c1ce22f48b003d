//go:build e2e && linux

package metal_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// TestKilledApply kills stoke at random moments of an apply to three machines;
// the apply after it has to finish the job, and a destroy to leave nothing.
// STOKE_KILLS says how often, 30 times when it does not.
func TestKilledApply(t *testing.T) {
	kills := 30
	if s := os.Getenv("STOKE_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	l := lab.New(t)
	machines := l.MachinesWith([]lab.Option{lab.NoMirror()}, "node-1", "node-2", "node-3")
	r := l.Repository(lab.Package{Name: "stoke-demo", Version: "1.0-1"}, lab.Package{Name: "stoke-demo", Version: "1.1-1"})
	var before []lab.Snapshot
	for _, m := range machines {
		before = append(before, m.Snapshot())
	}
	p := newProject(t, l)
	config := func(version string) {
		var list strings.Builder
		for _, m := range machines {
			fmt.Fprintf(&list, "    %s = { address = %q, host_key = %q }\n", m.Name, m.Address, m.HostKey)
		}
		p.write(`locals {
  machines = {
%s  }
}
resource "metal_host" "node" {
  for_each = local.machines
  address  = each.value.address
  host_key = each.value.host_key
  apt_repositories = {
    demo = { uris = [%q], suites = ["/"], key_url = %q, key_fingerprints = [%q] }
  }
  packages = {
    stoke-demo = { version = %q, hold = true }
  }
}`, list.String(), r.URL, r.KeyURL, r.Fingerprint, version)
	}
	versions := []string{"1.0-*", "1.1-*"}
	config(versions[0])
	p.apply()
	config(versions[1])
	start := time.Now()
	p.apply()
	whole := time.Since(start)
	t.Logf("an apply takes %s", whole.Round(time.Millisecond))

	const seed = 20261121
	random := rand.New(rand.NewPCG(seed, seed))
	killed := 0
	for round := 0; killed < kills && round < kills; round++ {
		config(versions[round%2])
		for range 5 {
			verb := "apply"
			if random.IntN(5) == 0 {
				verb = "destroy"
			}
			// As long as about every second one is killed before its end, the
			// kills are spread over the whole of it, however busy this machine
			// is now.
			if p.killed(time.Duration(random.Int64N(int64(whole))), verb, "-auto-approve") {
				killed++
				whole = whole * 10 / 9
			} else {
				whole = whole * 9 / 10
			}
		}
		if round%3 == 2 { // and a machine loses power
			m := machines[random.IntN(len(machines))]
			m.Crash()
			m.PowerOn()
		}
		if out, status := p.run("apply", "-auto-approve"); status != 0 {
			t.Fatalf("the apply after kill %d: exit status %d\n%s", killed, status, out)
		}
		p.settled()
	}
	t.Logf("killed %d times within %s", killed, whole.Round(time.Millisecond))
	if killed < kills {
		t.Errorf("killed only %d times", killed)
	}
	p.ok("destroy", "-auto-approve")
	for i, m := range machines {
		unchanged(t, m, before[i])
	}
}
