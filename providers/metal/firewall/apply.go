package firewall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Redialer is a machine that can be reached by a new connection, as
// *host.Remote is.
type Redialer interface {
	host.Machine
	Fresh(patience time.Duration) (m host.Machine, done func())
}

// Apply makes a machine's firewall what the Spec says. New rules that the
// machine could not be reached with are taken back, by the machine itself if
// need be; the error is then a *RolledBackError.
func Apply(ctx context.Context, m host.Machine, rec *host.Record, want Spec, have Have) error {
	if err := have.Usable(want); err != nil {
		return &UnfitError{Host: m.Name(), Err: err}
	}
	if len(rec.Keys(confirmKey)) > 0 { // an earlier version noted no rules, for there were none
		if err := rec.Remember(ctx, rulesKey, rulesWas{}); err != nil {
			return err
		}
	}
	if err := Table.Note(ctx, rec, want, have); err != nil {
		return err
	}
	if err := rec.Set(ctx, confirmKey, want.Confirm); err != nil {
		return err
	}
	if len(Table.Diff(want, have)) == 0 {
		return nil
	}
	table := want.Table()
	var rules []ufwRule
	if have.Backend.isUFW() {
		table = want.guard()
		rules, _ = want.ufwRules(have.Backend)
		rules = slices.DeleteFunc(rules, func(r ufwRule) bool { return slices.Contains(have.standIns, r) })
	}
	persisting := m
	if have.pending != "" || !slices.Equal(want.Lines(have.Backend), have.Lines) {
		fresh, done, err := commit(ctx, m, want, have, change{file: table.File(), lines: want.Lines(have.Backend), ufw: ufwCommands(rules, have.ufw)})
		if err != nil {
			return err
		}
		defer done()
		persisting = fresh
	}
	if len(table.Chains) == 0 {
		return unpersist(ctx, persisting)
	}
	return persist(ctx, persisting, table, have)
}

// ErrNoNft says that a machine lacks the program that loads rules.
var ErrNoNft = errors.New("nft is not there: install the package nftables (packages of its metal_host)")

// Usable says what keeps a Spec from being applied to the machine.
func (h Have) Usable(want Spec) error {
	if p := want.Problems(); len(p) > 0 {
		return fmt.Errorf("%s: %s", p[0].Argument, p[0].Text)
	}
	if !h.nft {
		return ErrNoNft
	}
	if h.Backend.isUFW() {
		if _, cannot := want.ufwRules(h.Backend); len(cannot) > 0 {
			return fmt.Errorf("it uses ufw, and %s: allow that in ufw's own files, or run `ufw disable` and let stoke use nftables",
				strings.Join(cannot, "; "))
		}
		if len(h.against) > 0 {
			return fmt.Errorf("ufw keeps one rule of a kind, and %s: delete that rule there (ufw status numbered), or do not declare its opposite",
				strings.Join(h.against, "; "))
		}
	}
	return nil
}

// Exists reports whether there is something on the machine that has our name.
func (h Have) Exists() bool { return h.table || len(h.ufw) > 0 }

func persist(ctx context.Context, m host.Machine, table NftTable, have Have) error {
	host.Step(ctx, "making the firewall rules permanent")
	if have.unit != unit {
		if err := m.Put(ctx, ssh.File{Path: unitFile, Content: []byte(unit), Mode: 0o644, Owner: "root:root", Root: true}); err != nil {
			return fmt.Errorf("write %s: %w", unitFile, err)
		}
	}
	_, err := m.Run(ctx, host.Command{Args: []string{"sh", "-c", persistScript}, Stdin: table.File()})
	if err != nil {
		return fmt.Errorf("make the firewall rules permanent: %w", err)
	}
	return nil
}

// unpersist is persist where no table is needed: ufw does it all.
func unpersist(ctx context.Context, m host.Machine) error {
	if _, err := host.Script(ctx, m, removeScript); err != nil {
		return fmt.Errorf("remove the table that is no longer needed: %w", err)
	}
	return host.Remove(ctx, m, rulesFile)
}

// change is new rules: the whole table as nft loads it, and what is to do to ufw's
// rules.
type change struct {
	file  []byte
	ufw   []string
	lines []string // as Have has them then, for who hears that they were rolled back
}

// ufwCommands are the lines that loadScript reads. New rules are added before
// old ones are removed, so that no connection is cut off in between; a rule
// that differs only in its comment is only added, which replaces its comment.
func ufwCommands(want, have []ufwRule) []string {
	there, wanted := map[ufwRule]bool{}, map[string]bool{}
	for _, r := range have {
		there[r] = true
	}
	var lines []string
	say := func(verb string, r ufwRule) {
		lines = append(lines, strings.Join([]string{verb, r.Proto, r.From, r.Ports, r.Comment}, ufwSeparator))
	}
	for _, r := range want {
		if wanted[r.command()] = true; !there[r] {
			say("add", r)
		}
	}
	for _, r := range have {
		if !wanted[r.command()] {
			say("delete", r)
		}
	}
	return lines
}

func (c change) input() []byte {
	var b bytes.Buffer
	b.Write(c.file)
	b.WriteString("#ufw\n")
	for _, l := range c.ufw {
		b.WriteString(l + "\n")
	}
	b.WriteString("#end\n")
	return b.Bytes()
}
