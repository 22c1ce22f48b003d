package system

import (
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestNoted: what was right when it was declared is written down then. What
// somebody changes by hand later, and apply repairs, is not what destroy gives back.
func TestNoted(t *testing.T) {
	ctx := t.Context()
	file := File{Content: []byte("x"), Digest: Digest("s", []byte("x")), Salt: "s", Mode: 0o644, Owner: "root", Group: "root"}
	want := Spec{
		Hostname: "a", SwapOff: true, Timezone: "Etc/UTC", Time: &Time{Service: "chrony"},
		Sysctl: map[string]string{"vm.swappiness": "10"}, Files: map[string]File{"/etc/x": file},
	}
	right := func() Facts {
		return Facts{
			Name: &NameFacts{Live: "a", Static: "a", Hosts: "127.0.1.1 a\n"}, Swap: &SwapFacts{}, Timezone: "Etc/UTC",
			Time:   &TimeFacts{services: map[string]host.Unit{"chrony.service": {Load: "loaded", Active: "active", File: "enabled"}}, files: map[string]string{}},
			Sysctl: map[string]SysctlFacts{"vm.swappiness": {State: SysctlValue, Live: "10", AtBoot: "10"}},
			Files:  map[string]FileFacts{"/etc/x": {Type: "regular file", Digest: file.Digest, Mode: 0o644, Owner: [2]string{"0", "root"}, Group: [2]string{"0", "root"}}},
		}
	}
	drifted := right()
	drifted.Name = &NameFacts{Live: "b", Static: "b", Hosts: "127.0.1.1 b\n"}
	drifted.Timezone = "Europe/Berlin"
	drifted.Time.services["chrony.service"] = host.Unit{Load: "loaded", Active: "inactive", File: "disabled"}
	drifted.Sysctl["vm.swappiness"] = SysctlFacts{State: SysctlValue, Live: "60", AtBoot: "10"}
	drifted.Files["/etc/x"] = FileFacts{Type: "regular file", Digest: Digest("s", []byte("y")), Mode: 0o644, Owner: [2]string{"0", "root"}, Group: [2]string{"0", "root"}}

	var set, kept []string
	m := &hosttest.Machine{Files: map[string]ssh.File{"/etc/x": {Path: "/etc/x", Content: []byte("x")}}}
	m.Answer = func(cmd host.Command) (hosttest.Answer, bool) {
		switch {
		case len(cmd.Args) < 3:
			return hosttest.Answer{}, false
		case strings.Contains(cmd.Args[2], "# give back a file") && slices.Contains(cmd.Args, sysctlFile):
			set = append(set, "file for the next boot")
			return hosttest.Answer{}, false
		case cmd.Args[2] == writeSysctl || cmd.Args[2] == setName || cmd.Args[2] == stopTime:
			set = append(set, strings.Join(cmd.Args[4:], " "))
		case strings.Contains(cmd.Args[2], "echo there"):
			kept = append(kept, cmd.Args[4])
			return hosttest.Answer{Stdout: "there\n"}, true
		}
		return hosttest.Answer{}, true
	}
	rec, err := host.NewRecord(ctx, m, "host", "id", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(ctx, m, rec, want, right()); err != nil || len(set) > 0 {
		t.Fatal(err, set)
	}
	for _, key := range []string{nameKey, swapKey, zoneKey, timeKey + "chrony", sysctlKey + "vm.swappiness", fileKey + "/etc/x"} {
		if len(rec.Keys(key)) != 1 {
			t.Errorf("%q is not written down", key)
		}
	}
	first := strings.Join(kept, " ")
	if err := Apply(ctx, m, rec, want, drifted); err != nil {
		t.Fatal(err)
	}
	if again := strings.Join(kept, " "); again != first+" "+sysctlFile || first != "/etc/localtime /etc/timezone /etc/x" {
		t.Errorf("kept were %s, then %s", first, again)
	}
	if changes := Table.Undoing(rec, want); len(changes) > 0 {
		t.Errorf("what is declared is undone: %v", changes)
	}
	for _, c := range Table.Undoing(rec, Spec{}) {
		if c.Disruption > host.None {
			t.Errorf("swap was off, and nothing is interrupted: %v", c)
		}
	}
	set = nil
	if _, err := Restore(ctx, m, rec); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(set, "; ")
	if !strings.HasPrefix(got, "file for the next boot; ") { // otherwise a power cut in between brings back what stoke had set
		t.Errorf("what is read at boot is not given back first: %s", got)
	}
	for _, back := range []string{"chrony true true start", "a  a", "vm.swappiness /proc/sys/vm/swappiness 10"} {
		if !strings.Contains(got, back) {
			t.Errorf("%q is not given back: %s", back, got)
		}
	}
	if keys := rec.Keys("system "); len(keys) > 0 {
		t.Errorf("there is left %v", keys)
	}
}
