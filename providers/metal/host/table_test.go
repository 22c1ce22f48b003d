package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// cutOff is a machine whose connection breaks at the nth command, which is carried
// out all the same where late is true.
type cutOff struct {
	host.Machine
	n    int
	late bool
}

var errCut = errors.New("the connection is gone")

func (m *cutOff) at(do func() error) error {
	if m.n--; m.n < 0 {
		return errCut
	}
	if m.n > 0 {
		return do()
	}
	if m.late {
		if err := do(); err != nil {
			return err
		}
	}
	return errCut
}

func (m *cutOff) Run(ctx context.Context, c host.Command) (out ssh.Output, err error) {
	err = m.at(func() (err error) { out, err = m.Machine.Run(ctx, c); return err })
	return out, err
}

func (m *cutOff) Put(ctx context.Context, f ssh.File) error {
	return m.at(func() error { return m.Machine.Put(ctx, f) })
}

// TestKeptFilesSurviveCuts breaks the connection at every command of declaring a
// file and of giving it back: when it is declared and given back again, it is what it
// was before.
func TestKeptFilesSurviveCuts(t *testing.T) {
	table := host.Table[[]string, struct{}]{{
		Key: "thing ", Names: func(want []string, _ struct{}) []string { return want },
		Was: func([]string, struct{}, string) any { return true }, Files: func(name string) []string { return []string{name} },
	}}
	const name, key = "/etc/a", "thing /etc/a"
	declare := func(m host.Machine) error {
		rec, err := host.OpenRecord(t.Context(), m, "host")
		if errors.Is(err, host.ErrNoRecord) {
			rec, err = host.NewRecord(t.Context(), m, "host", "id", "metal_host.a")
		}
		if err != nil {
			return err
		}
		if err := table.Note(t.Context(), rec, []string{name}, struct{}{}); err != nil {
			return err
		}
		return m.Put(t.Context(), ssh.File{Path: name, Content: []byte("ours\n"), Mode: 0o644})
	}
	giveBack := func(m host.Machine) error {
		rec, err := host.OpenRecord(t.Context(), m, "host")
		if err != nil {
			return err
		}
		if _, err := rec.RestoreFile(t.Context(), name); err != nil {
			return err
		}
		return rec.Forget(t.Context(), key)
	}
	cuts := 0
	for _, late := range []bool{false, true} {
		for n := 1; ; n++ {
			m := hosttest.NewTree(t)
			m.Sh("echo theirs >/etc/a")
			broken := &cutOff{m, n, late}
			err := declare(broken)
			if err == nil {
				err = giveBack(broken)
			}
			if err == nil {
				break // it took fewer commands
			}
			if cuts++; !errors.Is(err, errCut) && !strings.Contains(err.Error(), errCut.Error()) {
				t.Fatal(err)
			}
			for _, work := range []func(host.Machine) error{declare, giveBack} {
				if err := work(m); err != nil {
					t.Fatalf("cut off at command %d, late %v: %v", n, late, err)
				}
			}
			if is := strings.TrimSpace(m.Sh("cat /etc/a")); is != "theirs" {
				t.Errorf("cut off at command %d, late %v, the file is %q", n, late, is)
			}
		}
	}
	if cuts < 10 {
		t.Errorf("%d cuts", cuts)
	}
}
