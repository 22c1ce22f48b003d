package firewall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Backend is what keeps a machine's rules.
type Backend string

const (
	Nftables Backend = "nftables" // a table of our own
	UFW      Backend = "ufw"      // ufw's rules, and a table of our own for what ufw cannot do
	UFW4     Backend = "ufw-ipv4" // one that lets nothing of IPv6 in
)

func (b Backend) isUFW() bool { return b == UFW || b == UFW4 }

// Where things are on a machine.
const (
	rulesFile = "/etc/stoke/firewall.nft"
	unitName  = "stoke-firewall.service"
	unitFile  = "/etc/systemd/system/" + unitName
	runFolder = "/run/stoke-firewall" // gone after a reboot, as rules that nobody confirmed are
)

// unit loads the rules before the network is up. It needs nothing of
// nftables.service, which flushes everybody's rules when it is started, stopped
// or reloaded: where that one runs, ours follows it, and where it is started
// again, ours is.
const unit = `# stoke writes this file (metal_firewall).
[Unit]
Description=Firewall rules that stoke keeps (table inet stoke)
DefaultDependencies=no
After=systemd-modules-load.service nftables.service
Before=network-pre.target shutdown.target
Wants=network-pre.target
Conflicts=shutdown.target
PartOf=nftables.service
ReloadPropagatedFrom=nftables.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f ` + rulesFile + `
ExecReload=/usr/sbin/nft -f ` + rulesFile + `

[Install]
WantedBy=sysinit.target nftables.service
`

// Have is a machine's firewall as it is.
type Have struct {
	Backend Backend
	Lines   []string // as Spec.Lines says what they should be
	// Persistent reports whether the declared rules come back after a reboot; Why
	// says why not.
	Persistent bool
	Why        string
	// Others filter what comes in, too: what they drop stays dropped. Each is
	// named as table and chain.
	Others []string
	// Theirs are the foreign rules of ufw, where it is used: they stay, and older
	// ones precede ours.
	Theirs []string
	tuples [][]string // of the same, as ufw keeps them

	file, unit string // "" for none
	enabled    bool
	active     bool   // the unit; nftables.service takes it along when it stops
	table      bool   // ours is loaded
	listed     string // ours as nft lists it, and loads it again
	nft        bool   // the program is there
	pending    string // token of rules that nobody confirmed yet
	ufw        []ufwRule
	ufwEnabled string            // what systemctl is-enabled says of ufw.service
	theirs     map[string]string // foreign rules of ufw, with their descriptions
	standIns   []ufwRule         // our rules that already exist as foreign rules
	against    []string          // our rules that foreign rules contradict
	unfit      error             // why stoke cannot work with the machine's firewall, and what to do
}

// observeScript prints everything at once, a line for each fact: its name and
// its content in base64. A missing fact has no line.
//
// It waits for processes that load rules or roll them back: during that, ufw
// reports that it is off.
const observeScript = `# observe the firewall
export LC_ALL=C
if [ -e /run/stoke-firewall/lock ]; then exec 9</run/stoke-firewall/lock; flock -s -w 60 9 || :; fi
say() { printf '%s\t' "$1"; base64 -w0; echo; }
file() { if [ -e "$2" ]; then say "$1" <"$2"; fi; }
have() { command -v "$1" >/dev/null 2>&1; }
file ufw.conf /etc/ufw/ufw.conf
file ufw.default /etc/default/ufw
if have ufw; then
  file user.rules /etc/ufw/user.rules
  file user6.rules /etc/ufw/user6.rules
  systemctl is-enabled ufw.service 2>/dev/null | say ufw.enabled
  ufw status 2>/dev/null | sed 1q | say ufw.status
fi
{ systemctl is-active firewalld.service; systemctl is-enabled firewalld.service; } 2>/dev/null | say firewalld
systemctl is-enabled stoke-firewall.service 2>/dev/null | say enabled
systemctl is-active stoke-firewall.service 2>/dev/null | say active
file file /etc/stoke/firewall.nft
file unit /etc/systemd/system/stoke-firewall.service
for p in /run/stoke-firewall/pending-* /run/stoke-firewall/going-back-*; do if [ -e "$p" ]; then echo "${p##*-}" | say pending; fi; done
if have nft; then
  nft -j list tables | say tables
  for f in ip ip6; do if grep -qx filter "/proc/net/${f}_tables_names" 2>/dev/null; then echo "$f filter of iptables-legacy, chain INPUT"; fi; done | say legacy
  nft list chains | awk '$1 == "table" { t = $2 " " $3 } $1 == "chain" { c = $2 } /type filter hook input / { print t ", chain " c }' | say filters
  if nft list table inet stoke >/dev/null 2>&1; then nft -j list table inet stoke | say table; nft -s list table inet stoke | say listed; fi
fi
echo end`

// Observe looks at a machine's firewall. A machine whose firewall stoke cannot
// work with, such as one with firewalld, is an error that says what to do.
func Observe(ctx context.Context, m host.Machine, want Spec) (Have, error) {
	have, err := look(ctx, m, want)
	if err == nil && have.unfit != nil {
		err = &UnfitError{Host: m.Name(), Err: have.unfit}
	}
	return have, err
}

// look is Observe that takes a machine as it is.
func look(ctx context.Context, m host.Machine, want Spec) (Have, error) {
	said := map[string][]byte{}
	if err := host.Look(ctx, m, "the firewall", observeScript, sections(said)); err != nil {
		return Have{}, err
	}
	have, err := readObserved(said, want)
	if err != nil {
		return Have{}, &UnfitError{Host: m.Name(), Err: err}
	}
	return have, nil
}

// UnfitError says that stoke cannot manage a machine's firewall as it is, and
// what to do there.
type UnfitError struct {
	Host string
	Err  error
}

func (e *UnfitError) Error() string { return fmt.Sprintf("%s: %v", e.Host, e.Err) }

func (e *UnfitError) Unwrap() error { return e.Err }

func sections(said map[string][]byte) host.Lines {
	lines := host.Lines{}
	for _, name := range []string{"ufw.conf", "ufw.default", "user.rules", "user6.rules", "ufw.enabled", "ufw.status", "firewalld", "enabled", "active", "file", "unit", "pending", "tables", "legacy", "filters", "table", "listed"} {
		lines[name] = host.Data(1, func(f []string) error { said[name] = []byte(f[0]); return nil })
	}
	return lines
}

func shorten(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return s
}

func readObserved(said map[string][]byte, want Spec) (Have, error) {
	word := func(name string) string { return strings.TrimSpace(string(said[name])) }
	h := Have{
		Backend: Nftables, file: string(said["file"]), unit: string(said["unit"]),
		enabled: word("enabled") == "enabled", active: word("active") == "active", pending: word("pending"), nft: said["tables"] != nil, table: said["table"] != nil, listed: string(said["listed"]),
	}
	if state := strings.Fields(word("firewalld")); slices.Contains(state, "active") || slices.Contains(state, "enabled") {
		h.unfit = errors.New("firewalld runs there, now or after the next boot, and two firewalls that each know half undo each other: " +
			"stop and disable it (systemctl disable --now firewalld), or leave this machine without metal_firewall")
	}
	if err := h.readUFW(said); err != nil {
		return Have{}, err
	}
	if err := h.readTables(said); err != nil {
		return Have{}, err
	}
	h.standIn(want)
	h.Lines = append(h.Lines, ufwLines(slices.Concat(h.ufw, h.standIns))...)
	h.judgePersistence(want)
	return h, nil
}

func (h *Have) readTables(said map[string][]byte) error {
	if !h.nft {
		return nil
	}
	tables, err := readObjects(said["tables"])
	if err != nil {
		return err
	}
	there := slices.ContainsFunc(tables, func(o object) bool {
		return o.kind == "table" && o.text("family") == "inet" && o.text("name") == tableName
	})
	if there != h.table {
		return fmt.Errorf("nft names the table inet %s but does not list it: look at `nft list table inet %[1]s` there", tableName)
	}
	if h.table {
		t, err := ReadTable(said["table"])
		if err != nil {
			return err
		}
		h.Lines = append(h.Lines, t.Lines()...)
	}
	for line := range strings.Lines(string(said["legacy"]) + string(said["filters"])) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "inet "+tableName+",") {
			h.Others = append(h.Others, line)
		}
	}
	return nil
}

func (h *Have) judgePersistence(want Spec) {
	table := want.Table()
	if h.Backend.isUFW() {
		table = want.guard()
	}
	switch {
	case h.pending != "":
		h.Why = "new rules wait for their confirmation and are rolled back without one"
	case h.Backend.isUFW() && h.ufwEnabled != "enabled":
		h.Why = "ufw.service is not enabled: ufw says that it is active, and is not after a reboot"
	case len(table.Chains) == 0:
		h.Persistent = true
	case h.file == "":
		h.Why = rulesFile + " is missing"
	case h.file != string(table.File()):
		h.Why = rulesFile + " differs from the declared rules"
	case h.unit != unit:
		h.Why = unitName + " is missing or was changed"
	case !h.enabled:
		h.Why = unitName + " is not enabled"
	case !h.active:
		h.Why = unitName + " does not run, so that it would not follow nftables.service"
	default:
		h.Persistent = true
	}
}
