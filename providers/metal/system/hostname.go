package system

import (
	"context"
	"fmt"

	"github.com/stokehq/stoke/providers/metal/host"
)

// NameFacts is a machine's name.
type NameFacts struct {
	Live   string // now
	Static string // from /etc/hostname, what it is after the next boot
	Cloud  string // what cloud-init does to it at boot: "" there is none, "keeps", "sets"
	Hosts  string // /etc/hosts
}

// cloudFile stops cloud-init from changing the name.
const cloudFile = "/etc/cloud/cloud.cfg.d/99-stoke-hostname.cfg"

const cloudText = "# Written by stoke, which sets this machine's name.\npreserve_hostname: true\nmanage_etc_hosts: false\n"

// Display is the declared name where all of it holds, else what there is.
func (n *NameFacts) Display(want string) string {
	switch {
	case n.Live != n.Static && n.Static != "":
		return fmt.Sprintf("%s (%s after the next boot)", n.Live, n.Static)
	case n.Live != n.Static:
		return n.Live + " (not set in /etc/hostname)"
	case n.Live != want:
		return n.Live
	case !hostsHold(n.Hosts, want):
		return want + " (but not in /etc/hosts)"
	case n.Cloud == "sets":
		return want + " (until cloud-init sets it)"
	}
	return want
}

func diffName(want string, have *NameFacts) []host.Change {
	if shown := have.Display(want); shown != want {
		return []host.Change{{Fact: "host name", Path: []string{"hostname"}, Have: shown, Want: want}}
	}
	return nil
}

const nameKey = "system hostname"

type nameWas struct {
	Live, Static string
	Own          []string // the lines of /etc/hosts
}

// setName writes /etc/hosts from standard input when $2 says how long it is,
// sets the name for the next boot to $1 ("" for none) and the name now to $3.
const setName = "# set the host name\n" + replaceFile + `[ -z "$2" ] || replace /etc/hosts "$2"
if [ -z "$1" ]; then
	rm -f /etc/hostname
elif ! hostnamectl --static --transient set-hostname "$1" 2>/dev/null || [ "$(cat /etc/hostname)" != "$1" ]; then
	printf '%s\n' "$1" >/etc/hostname.stoke-new
	chmod 0644 /etc/hostname.stoke-new
	mv -f /etc/hostname.stoke-new /etc/hostname
fi
[ "$(cat /proc/sys/kernel/hostname)" = "$3" ] || printf '%s' "$3" >/proc/sys/kernel/hostname`

func writeName(ctx context.Context, m host.Machine, static, live string, hosts []byte) error {
	_, err := m.Run(ctx, host.Command{Args: []string{"sh", "-c", setName, "sh", static, length(hosts), live}, Stdin: hosts})
	if err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	return nil
}

func applyName(ctx context.Context, m host.Machine, rec *host.Record, want string, have *NameFacts) error {
	if have.Cloud == "sets" {
		if err := rec.WriteFile(ctx, cloudFile, []byte(cloudText)); err != nil {
			return err
		}
	}
	var hosts []byte
	if !hostsHold(have.Hosts, want) {
		hosts = []byte(rename(have.Hosts, want, have.Static, have.Live))
	}
	return writeName(ctx, m, want, want, hosts)
}

func restoreName(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	var was nameWas
	if known, err := rec.ReadNote(nameKey, &was); !known || err != nil {
		return nil, err
	}
	now, exists, err := host.ReadFile(ctx, m, "/etc/hosts")
	if err != nil {
		return nil, err
	}
	var hosts []byte
	if exists {
		if hosts = []byte(withOwnLines(string(now), was.Own)); string(hosts) == string(now) {
			hosts = nil
		}
	}
	if err := writeName(ctx, m, was.Static, was.Live, hosts); err != nil {
		return nil, err
	}
	if _, err := rec.RestoreFile(ctx, cloudFile); err != nil {
		return nil, err
	}
	return []host.Outcome{{Fact: "host name", Fate: host.Restored}}, rec.Forget(ctx, nameKey)
}
