package firewall

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// scripted is a machine that answers our scripts, and notes which ones ran.
type scripted struct {
	hosttest.Machine
	confirm, rolledBack string
	loading             int // so often the rules are not all loaded when they are confirmed
	loadErr             error
	ran                 []string
	fresh               int
}

func newScripted(t *testing.T) (*scripted, *host.Record) {
	t.Helper()
	m := &scripted{confirm: "confirmed\n", rolledBack: "rolled-back\n"}
	m.Answer = m.answer
	rec, err := host.NewRecord(t.Context(), m, "firewall", "id", "")
	if err != nil {
		t.Fatal(err)
	}
	return m, rec
}

func (m *scripted) answer(cmd host.Command) (hosttest.Answer, bool) {
	if len(cmd.Args) < 3 || cmd.Args[1] != "-c" {
		return hosttest.Answer{}, false
	}
	for name, script := range map[string]string{
		"load": loadScript, "confirm": confirmScript, "persist": persistScript, "roll back": rollbackScript, "remove": removeScript, "tidy": tidyScript,
		"own address": `printf %s "$SSH_CONNECTION"`,
	} {
		if cmd.Args[2] != script {
			continue
		}
		m.ran = append(m.ran, name)
		switch name {
		case "load":
			return hosttest.Answer{Err: m.loadErr}, true
		case "confirm":
			said := m.confirm
			if m.loading > 0 {
				m.loading--
				said = "loading\n"
			}
			return hosttest.Answer{Stdout: said}, true
		case "roll back":
			return hosttest.Answer{Stdout: m.rolledBack}, true
		case "own address":
			return hosttest.Answer{Stdout: "203.0.113.7 50000 10.77.0.11 22"}, true
		}
		return hosttest.Answer{}, true
	}
	return hosttest.Answer{}, false
}

func (m *scripted) Fresh(time.Duration) (host.Machine, func()) {
	m.fresh++
	return m, func() { m.fresh-- }
}

func TestApply(t *testing.T) {
	want := cluster(Worker, "flannel")
	good := Have{Backend: Nftables, nft: true, table: true, Lines: want.Lines(Nftables)}
	drifted := good
	drifted.Lines = good.Lines[1:]
	whole := good
	whole.Persistent = true
	pending := good
	pending.pending = "token"
	for _, test := range []struct {
		name string
		have Have
		ran  []string
	}{
		{"nothing there", Have{Backend: Nftables, nft: true}, []string{"own address", "load", "confirm", "persist"}},
		{"drifted", drifted, []string{"own address", "load", "confirm", "persist"}},
		{"not persistent", good, []string{"persist"}},
		{"as declared", whole, nil},
		{"not confirmed", pending, []string{"own address", "load", "confirm", "persist"}},
	} {
		m, rec := newScripted(t)
		if err := Apply(t.Context(), m, rec, want, test.have); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.ran, m.ran); diff != "" || m.fresh != 0 {
			t.Errorf("%s: %d connections left open, ran:\n%s", test.name, m.fresh, diff)
		}
		if writes := test.ran != nil; writes != (string(m.Files[unitFile].Content) == unit) || !slices.Contains(rec.KeptFiles(), rulesFile) {
			t.Errorf("%s: files %v, kept %v", test.name, m.Files, rec.KeptFiles())
		}
	}
}

func TestApplyRollsBack(t *testing.T) {
	want := cluster(Worker, "flannel")
	m, rec := newScripted(t)
	m.confirm = "late\n"
	err := Apply(t.Context(), m, rec, want, Have{Backend: Nftables, nft: true})
	var rolledBack *RolledBackError
	if !errors.As(err, &rolledBack) || rolledBack.Unseen != nil || !rolledBack.Allowed || rolledBack.From != "203.0.113.7" || len(rolledBack.Added) != len(want.Lines(Nftables)) {
		t.Errorf("%+v", err)
	}
	if diff := cmp.Diff([]string{"own address", "load", "confirm", "roll back"}, m.ran); diff != "" || m.fresh != 0 {
		t.Errorf("%d connections left open, ran:\n%s", m.fresh, diff)
	}
	if !strings.Contains(err.Error(), " more") {
		t.Error(err)
	}

	// Rules that are still being loaded are confirmed when they are.
	m, rec = newScripted(t)
	m.loading = 2
	if err := Apply(t.Context(), m, rec, want, Have{Backend: Nftables, nft: true}); err != nil {
		t.Errorf("slowly: %v", err)
	}
	if diff := cmp.Diff([]string{"own address", "load", "confirm", "confirm", "confirm", "persist"}, m.ran); diff != "" {
		t.Errorf("slowly, ran:\n%s", diff)
	}
	slow := &RolledBackError{Host: "m", From: "203.0.113.7", Cause: errSlow}
	if said := slow.Error(); !slow.Slow() || !strings.Contains(said, "longer confirm_within") || strings.Contains(said, "ssh_from") {
		t.Error(said)
	}

	// It was confirmed, only nobody heard of it.
	m, rec = newScripted(t)
	m.confirm, m.rolledBack = "", "confirmed\n"
	if err := Apply(t.Context(), m, rec, want, Have{Backend: Nftables, nft: true}); err != nil {
		t.Error(err)
	}

	// Whether rules are loaded that cut the connection that loads them is found
	// out by the new one.
	m, rec = newScripted(t)
	m.loadErr = &ssh.LostError{Host: "m", Err: errors.New("reset")}
	if err := Apply(t.Context(), m, rec, want, Have{Backend: Nftables, nft: true}); err != nil {
		t.Errorf("after a lost connection: %v", err)
	}
	m, rec = newScripted(t)
	m.loadErr = &ssh.CommandError{Host: "m", Command: "nft", Status: 1}
	if err := Apply(t.Context(), m, rec, want, Have{Backend: Nftables, nft: true}); err == nil || slices.Contains(m.ran, "confirm") {
		t.Errorf("rules that nft does not take: %v, ran %q", err, m.ran)
	}
}

func TestApplyRefuses(t *testing.T) {
	m, rec := newScripted(t)
	for name, test := range map[string]struct {
		want Spec
		have Have
	}{
		"without nft":         {cluster(Worker, "none"), Have{Backend: Nftables}},
		"nobody logs in":      {Spec{Role: NoRole}, Have{Backend: Nftables, nft: true}},
		"ufw has no IP in IP": {cluster(Worker, "calico"), Have{Backend: UFW, nft: true}},
	} {
		var unfit *UnfitError
		if err := Apply(t.Context(), m, rec, test.want, test.have); !errors.As(err, &unfit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(m.ran) > 0 {
		t.Errorf("ran %q", m.ran)
	}
}

func TestUFWCommands(t *testing.T) {
	keep, reword, gone := ufwRule{"tcp", "0.0.0.0/0", "80", "a"}, ufwRule{"tcp", "::/0", "81", "old"}, ufwRule{"any", "10.0.0.0/8", "", "c"}
	reworded, added := reword, ufwRule{"udp", "0.0.0.0/0", "9:10", "d"}
	reworded.Comment = "new"
	got := ufwCommands([]ufwRule{keep, reworded, added}, []ufwRule{keep, reword, gone})
	want := []string{"add|tcp|::/0|81|new", "add|udp|0.0.0.0/0|9:10|d", "delete|any|10.0.0.0/8||c"}
	if diff := cmp.Diff(want, strings.Split(strings.ReplaceAll(strings.Join(got, "\n"), ufwSeparator, "|"), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestUFWRules(t *testing.T) {
	rules, cannot := cluster(Worker, "calico").ufwRules(UFW)
	if len(cannot) != 2 || len(rules) == 0 { // IP in IP, SCTP
		t.Errorf("%d rules, cannot: %q", len(rules), cannot)
	}
	spec := Spec{Role: NoRole, SSH: ranges("0.0.0.0/0", "::/0"), Rules: []Rule{
		{Ports: []Ports{{TCP, 80, 81}}, From: []Source{{Range: ranges("0.0.0.0/0")[0]}}},
		{Ports: []Ports{{TCP, 80, 81}}, Comment: "again"},
		{Ports: []Ports{{41, 0, 0}}},
	}}
	for backend, want := range map[Backend][]string{
		UFW: {
			`ufw: allow proto ipv6 from 0.0.0.0/0 to any comment ""`, `ufw: allow proto tcp from 0.0.0.0/0 to any port 22 comment "SSH"`,
			`ufw: allow proto tcp from 0.0.0.0/0 to any port 80:81 comment ""`, `ufw: allow proto tcp from ::/0 to any port 22 comment "SSH"`,
			`ufw: allow proto tcp from ::/0 to any port 80:81 comment "again"`,
		},
		UFW4: {
			`ufw: allow proto ipv6 from 0.0.0.0/0 to any comment ""`, `ufw: allow proto tcp from 0.0.0.0/0 to any port 22 comment "SSH"`,
			`ufw: allow proto tcp from 0.0.0.0/0 to any port 80:81 comment ""`,
		},
	} {
		rules, cannot := spec.ufwRules(backend)
		if diff := cmp.Diff(want, ufwLines(rules)); diff != "" || len(cannot) > 0 {
			t.Errorf("%s cannot %q (-want +got):\n%s", backend, cannot, diff)
		}
	}
	spec.Rules = []Rule{{Ports: []Ports{{2, 0, 0}, {TCP, 1, 1}}, From: []Source{{Range: ranges("2001:db8::/32")[0]}}}}
	if _, cannot := spec.ufwRules(UFW); len(cannot) != 1 {
		t.Errorf("IGMP over IPv6: cannot %q", cannot)
	}
	if _, cannot := spec.ufwRules(UFW4); len(cannot) != 2 {
		t.Errorf("IPv6 where there is none: cannot %q", cannot)
	}
}

// seen has the machine answer looks with what is said of ufw's rules, and returns
// what it is given to load.
func (m *scripted) seen(userRules string) *string {
	answer, loaded := m.Answer, new(string)
	m.Answer = func(cmd host.Command) (hosttest.Answer, bool) {
		if len(cmd.Args) > 2 && cmd.Args[2] == observeScript {
			encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
			nothing := encode(`{"nftables": [{"metainfo": {}}]}`)
			return hosttest.Answer{Stdout: "tables\t" + nothing + "\nuser.rules\t" + encode(userRules) + "\nend\n"}, true
		}
		if len(cmd.Args) > 2 && cmd.Args[2] == loadScript {
			*loaded = string(cmd.Stdin)
		}
		return answer(cmd)
	}
	return loaded
}

func TestRestore(t *testing.T) {
	m, rec := newScripted(t)
	m.seen("")
	if err := rec.KeepFile(t.Context(), rulesFile); err != nil {
		t.Fatal(err)
	}
	outcomes, err := Restore(t.Context(), m, rec)
	if diff := cmp.Diff([]host.Outcome{{Fact: "file " + rulesFile, Fate: host.Removed}}, outcomes); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"remove", "tidy"}, m.ran); diff != "" {
		t.Errorf("ran:\n%s", diff)
	}
}

// Rules of ufw that were there before us, with our mark, come back, and ours go.
func TestRestoreUFW(t *testing.T) {
	m, rec := newScripted(t)
	loaded := m.seen("### tuple ### allow tcp 80 0.0.0.0/0 any 0.0.0.0/0 in comment=73746f6b653a2061\n" +
		"### tuple ### allow tcp 82 0.0.0.0/0 any 0.0.0.0/0 in comment=73746f6b653a2063\n")
	kept, back := ufwRule{"tcp", "0.0.0.0/0", "80", "a"}, ufwRule{"tcp", "0.0.0.0/0", "81", "b"}
	have := Have{Backend: UFW, nft: true, ufw: []ufwRule{kept, back}}
	if err := Table.Note(t.Context(), rec, Spec{Role: NoRole}, have); err != nil {
		t.Fatal(err)
	}
	outcomes, err := Restore(t.Context(), m, rec)
	want := []host.Outcome{
		{Fact: "firewall rules", Fate: host.Restored}, {Fact: `ufw: allow proto tcp from 0.0.0.0/0 to any port 82 comment "c"`, Fate: host.Removed},
		{Fact: "file " + rulesFile, Fate: host.Removed}, {Fact: "file " + unitFile, Fate: host.Removed},
	}
	if diff := cmp.Diff(want, outcomes); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	_, ufw, _ := strings.Cut(strings.ReplaceAll(*loaded, ufwSeparator, "|"), "#ufw\n")
	if diff := cmp.Diff("add|tcp|0.0.0.0/0|81|b\ndelete|tcp|0.0.0.0/0|82|c\n#end\n", ufw); diff != "" || m.fresh != 0 {
		t.Errorf("%d connections left open, loaded:\n%s", m.fresh, diff)
	}
}

// A record of a version that noted no rules is of a machine that had none: ours are
// not what was there before.
func TestEarlierRecord(t *testing.T) {
	m, rec := newScripted(t)
	if err := rec.Set(t.Context(), confirmKey, time.Minute); err != nil {
		t.Fatal(err)
	}
	says := func() {
		t.Helper()
		if diff := cmp.Diff([]host.Change{removed}, Undoing(rec)); diff != "" {
			t.Error(diff)
		}
	}
	says()
	want := cluster(Worker, "flannel")
	if err := Apply(t.Context(), m, rec, want, Have{Backend: Nftables, nft: true, table: true, listed: "table inet stoke {}", Lines: want.Lines(Nftables)}); err != nil {
		t.Fatal(err)
	}
	says()
}
