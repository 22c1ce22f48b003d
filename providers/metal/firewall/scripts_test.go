package firewall

import (
	"os"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// nftDouble keeps the one table as a file; a table "broken" cannot be loaded.
const nftDouble = `#!/bin/sh
table=ROOT/table
case $1 in
-c) ;;
-f)
  if [ "$2" = - ]; then exec cat >/dev/null; fi
  sed '/table inet stoke/d' "$2" >"$table"
  ! grep -q broken "$2" ;;
delete) rm "$table" ;;
*) cat "$table" 2>/dev/null ;;
esac
`

func newLoading(t *testing.T) *hosttest.Tree {
	t.Helper()
	m := hosttest.NewTree(t)
	if err := os.WriteFile(m.Root+"/bin/nft", []byte(strings.ReplaceAll(nftDouble, "ROOT", m.Root)), 0o755); err != nil {
		t.Fatal(err)
	}
	m.Sh(`echo former >` + m.Root + `/table`)
	return m
}

func loadInto(t *testing.T, m *hosttest.Tree, token, input string) error {
	t.Helper()
	_, err := m.Run(t.Context(), host.Command{Args: []string{"sh", "-c", loadScript, "sh", token, "30"}, Stdin: []byte(input)})
	return err
}

// TestRollsBackToTheEnd: whatever ends a rollback before its end, the next one that
// looks does it again, and whoever listens may be gone.
func TestRollsBackToTheEnd(t *testing.T) {
	m := newLoading(t)
	table := func() string {
		t.Helper()
		return m.Sh("nft list table inet stoke")
	}
	state := func(token string) string {
		t.Helper()
		return strings.TrimSpace(m.Sh(rollbackScript, token))
	}
	former := table()
	load := func(token string) {
		t.Helper()
		if err := loadInto(t, m, token, "new\n#ufw\n#end\n"); err != nil || table() != "new\n" {
			t.Fatalf("the table is %q, %v", table(), err)
		}
	}
	back := func(how string) {
		t.Helper()
		if table() != former {
			t.Errorf("%s: the table is %q, was %q", how, table(), former)
		}
	}

	load("AA")
	m.Sh(`mv /run/stoke-firewall/pending-AA /run/stoke-firewall/going-back-AA`) // and then it is killed
	if said := strings.TrimSpace(m.Sh(confirmScript, "AA")); said != "late" {
		t.Errorf("what goes back is confirmed: %s", said)
	}
	if said := state("AA"); said != "rolled-back" {
		t.Errorf("it is %s", said)
	}
	back("killed")

	load("BB")
	m.Sh(`mv /run/stoke-firewall/pending-BB /run/stoke-firewall/going-back-BB`)
	if err := loadInto(t, m, "CC", "broken\n#ufw\n#end\n"); err == nil {
		t.Error("what cannot be loaded is loaded")
	}
	back("the next load, which fails")
	if said := state("CC"); said != "rolled-back" {
		t.Errorf("it is %s", said)
	}

	// Nobody reads what loading says any more.
	load("DD")
	unheard := "# load firewall rules\n{ sleep 0.1\n" + loadScript + "\n} 2>&1 | true"
	if _, err := m.Run(t.Context(), host.Command{Args: []string{"sh", "-c", unheard, "sh", "EE", "30"}, Stdin: []byte("broken\n#ufw\n#end\n")}); err != nil {
		t.Fatal(err)
	}
	back("nobody listens")
	if said := state("EE"); said != "rolled-back" {
		t.Errorf("it is %s", said)
	}

	load("FF")
	m.Sh(`mv /run/stoke-firewall/pending-FF /run/stoke-firewall/going-back-FF`)
	m.Sh(removeScript, "keep")
	back("removed")
}

// TestLoadsAllOrNothing: what is cut off on its way is not loaded.
func TestLoadsAllOrNothing(t *testing.T) {
	for _, input := range []string{"", "new\n", "new\n#ufw\n", "new\n#ufw\nadd tcp any 22 SSH\n"} {
		m := newLoading(t)
		err := loadInto(t, m, "AA", input)
		if err == nil || !strings.Contains(err.Error(), "only a part of the rules arrived") {
			t.Errorf("%q: %v", input, err)
		}
		if now := m.Sh("nft list table inet stoke"); now != "former\n" {
			t.Errorf("%q: the table is %q", input, now)
		}
	}
}
