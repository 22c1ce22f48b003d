package nvidia

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// refusing is a machine that refuses one command, or one file.
type refusing struct {
	*box
	passing int // how many before that one
}

func (r *refusing) refuses() bool { r.passing--; return r.passing == -1 }

func (r *refusing) Run(ctx context.Context, cmd host.Command) (ssh.Output, error) {
	if r.refuses() {
		return ssh.Output{}, &ssh.CommandError{Host: r.Name(), Command: ssh.QuoteAll(cmd.Args...), Status: 1, Output: "refused once"}
	}
	return r.box.Run(ctx, cmd)
}

func (r *refusing) Put(ctx context.Context, f ssh.File) error {
	if r.refuses() {
		return errors.New("refused once")
	}
	return r.box.Put(ctx, f)
}

// TestPlanAfterARefusedCommand: each command of an apply and of a destroy is refused
// once. The next plan has what is missing, also where the driver is no longer
// declared, and the next apply makes it.
func TestPlanAfterARefusedCommand(t *testing.T) {
	fresh := func() (*box, Spec, Hooks) {
		b := debian("12", a100).sees("linux-headers-6.1.0-40-amd64")
		b.units[containerd] = "active enabled"
		return b, spec("580", fromNVIDIA), b.hooks("580.126.20", true)
	}
	b, want, hooks := fresh()
	before := b.has()
	b.done(t, want, hooks)
	done := b.has()
	for _, undo := range []bool{false, true} {
		for n := 0; ; n++ {
			b, want, hooks := fresh()
			rec, err := host.NewRecord(t.Context(), b, "gpu-driver", "id1", "metal_gpu_driver.a")
			if err != nil {
				t.Fatal(err)
			}
			r := &refusing{b, n}
			have := b.state(t, want)
			_, err = Apply(t.Context(), r, rec, want, have, hooks)
			if r.passing >= 0 {
				if n < 10 {
					t.Errorf("only %d commands", n)
				}
				break
			}
			unfinished := !cmp.Equal(b.has(), done) || b.unread || len(b.stopped) > 0 || b.runtime != string(b.Files[RuntimeFile].Content)
			if left := Diff(want, b.state(t, want)); len(left) == 0 && unfinished {
				t.Errorf("command %d was refused (%v): the next plan has nothing to do: stopped %v, containerd waits %v %s",
					n, err, b.stopped, b.unread, cmp.Diff(done, b.has()))
			}
			if undo {
				if _, err := Restore(t.Context(), b, b.record(t), b.uninstall); err != nil {
					t.Errorf("command %d was refused: the destroy says %v", n, err)
				}
				if diff := cmp.Diff(before, b.has()); diff != "" {
					t.Errorf("command %d was refused, then destroyed: %s", n, diff)
				}
				continue
			}
			b.done(t, want, hooks)
			if diff := cmp.Diff(done, b.has()); diff != "" || b.runtime != string(b.Files[RuntimeFile].Content) || len(b.stopped) > 0 {
				t.Errorf("command %d was refused: the next apply makes %s, stopped %v, containerd has %q", n, diff, b.stopped, b.runtime)
			}
		}
	}
	for n := 0; ; n++ {
		b, want, hooks := fresh()
		b.done(t, want, hooks)
		r := &refusing{b, n}
		rec := b.record(t)
		_, err := Restore(t.Context(), r, rec, b.uninstall)
		if r.passing >= 0 {
			break
		}
		if err != nil {
			_, err = Restore(t.Context(), b, b.record(t), b.uninstall)
		}
		if diff := cmp.Diff(before, b.has()); err != nil || diff != "" {
			t.Errorf("command %d of the destroy was refused: %v %s", n, err, diff)
		}
	}
}

// uninstall removes the packages, as the provider does within a destroy.
func (b *box) uninstall(context.Context) ([]host.Outcome, error) {
	delete(b.units, persistenced)
	b.packages = map[string]string{}
	return nil, nil
}

var _ host.Machine = (*refusing)(nil)
