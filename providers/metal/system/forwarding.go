package system

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// forwarding are the sysctls that turn forwarding on and off. The kernel sets other
// values with each of them (inet_forward_change, addrconf_fixup_forwarding): the
// forwarding of all interfaces, and accept_redirects. Those are in this folder.
var forwarding = map[string]string{
	"/proc/sys/net/ipv4/ip_forward":          "/proc/sys/net/ipv4/conf",
	"/proc/sys/net/ipv4/conf/all/forwarding": "/proc/sys/net/ipv4/conf",
	"/proc/sys/net/ipv6/conf/all/forwarding": "/proc/sys/net/ipv6/conf",
}

const redirects = "/proc/sys/net/ipv4/conf/all/accept_redirects"

// follows reports whether the kernel sets the value at a path with those of a switch.
func follows(p, of string) bool {
	dir := forwarding[of]
	return dir != "" && p != of && strings.HasPrefix(p, dir+"/") && (path.Base(p) == "forwarding" || p == redirects)
}

// followed is what the kernel makes of the value at a path.
func followed(p, turned string) string {
	if p != redirects {
		return turned
	}
	if turned == "0" {
		return "1"
	}
	return "0"
}

// sysctlWas is the note of a sysctl. Encoded as a plain string when Beside is
// empty.
type sysctlWas struct {
	Value string
	// Beside are values, by path, that the kernel makes something else of when Value
	// is set.
	Beside map[string]string
}

// UnmarshalJSON reads both.
func (w *sysctlWas) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &w.Value) == nil {
		return nil
	}
	type plain sysctlWas
	return json.Unmarshal(b, (*plain)(w))
}

func (f Facts) priorOf(k string) any {
	is := f.Sysctl[k]
	if is.State != SysctlValue {
		return nil
	}
	w := sysctlWas{is.Live, map[string]string{}}
	at, _ := sysctlPath(k)
	for p, v := range f.Beside {
		if follows(p, at) && v != followed(p, is.Live) {
			w.Beside[p] = v
		}
	}
	if len(w.Beside) == 0 {
		return w.Value
	}
	return w
}

// assigned is a sysctl to set: its key, "" for a key that is not declared and may no
// longer exist, its path and its value.
type assigned struct{ key, path, value string }

// inOrder puts what turns forwarding on and off first, and sets what is declared of
// the values that follow it again, though they may be right before.
func inOrder(set []assigned, want map[string]string) []assigned {
	turns := func(a assigned) bool { return forwarding[a.path] != "" }
	var all, rest []assigned
	for _, a := range set {
		if turns(a) {
			all = append(all, a)
		} else {
			rest = append(rest, a)
		}
	}
	for _, k := range keys(want) {
		p, _ := sysctlPath(k)
		again := assigned{k, p, normalise(want[k])}
		if slices.ContainsFunc(all, func(a assigned) bool { return follows(p, a.path) }) && !slices.ContainsFunc(set, func(a assigned) bool { return a.path == p }) {
			rest = append(rest, again)
		}
	}
	return append(all, rest...)
}

// dockerUnit turns forwarding on where it is off when it starts, and makes drop the
// policy of the chain FORWARD only then (docs.docker.com, packet filtering and
// firewalls).
const dockerUnit = "docker.service"

// DockersForwarding describes the effect on Docker's firewall if want sets at boot
// the value that Docker would set; "" where nothing does.
func DockersForwarding(want Spec, have Facts) (key, text string) {
	for _, k := range keys(want.Sysctl) {
		p, _ := sysctlPath(k)
		if have.Docker && forwarding[p] == "/proc/sys/net/ipv4/conf" && normalise(want.Sysctl[k]) == "1" && have.Sysctl[k].AtBoot != "1" {
			return k, "Docker makes drop the policy of the chain FORWARD only where it turns forwarding on itself: from the next boot on the policy is accept"
		}
	}
	return "", ""
}

// Undoing is what giving back changes that the record knows of and want does not
// declare. Where Docker starts at boot it says what Docker makes of it.
func Undoing(ctx context.Context, m host.Machine, rec *host.Record, want Spec) ([]host.Change, error) {
	changes := Table.Undoing(rec, want)
	for _, note := range Table.Undeclared(rec, want) {
		k, _ := strings.CutPrefix(note, sysctlKey)
		if p, _ := sysctlPath(k); forwarding[p] != "/proc/sys/net/ipv4/conf" {
			continue
		}
		_, status, err := host.LookStatus(ctx, m, "systemctl", "is-enabled", "--quiet", "--", dockerUnit)
		if err != nil {
			return nil, err
		}
		for i := range changes {
			if status == 0 && strings.HasPrefix(changes[i].Fact, "sysctl "+k+" ") {
				changes[i].Says = "Docker turns forwarding on when it restarts, for its containers, and sets the policy of the chain FORWARD to drop"
			}
		}
	}
	return changes, nil
}
