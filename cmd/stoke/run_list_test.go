package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stokehq/stoke/plan/canvas"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
)

// statusOnly is a run of which only the status is read.
type statusOnly struct {
	providers.Run
	status func(context.Context) (providers.RunStatus, error)
}

func (r statusOnly) Status(ctx context.Context) (providers.RunStatus, error) { return r.status(ctx) }

// TestSlowRuns reads runs of which some never answer, some of them whatever the
// context says: all others have their rows after the time of one.
func TestSlowRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		var now, most atomic.Int64
		place := func(name string, status func(context.Context) (providers.RunStatus, error)) runPlace {
			return runPlace{name, func(context.Context) (providers.Run, error) {
				most.Store(max(most.Load(), now.Add(1)))
				return statusOnly{status: func(ctx context.Context) (providers.RunStatus, error) {
					defer now.Add(-1)
					return status(ctx)
				}}, nil
			}}
		}
		places := []runPlace{
			place("c", func(ctx context.Context) (providers.RunStatus, error) {
				<-ctx.Done()
				return providers.RunStatus{}, ctx.Err()
			}),
			place("b", func(context.Context) (providers.RunStatus, error) {
				<-forever
				return providers.RunStatus{}, nil
			}),
			place("a", func(context.Context) (providers.RunStatus, error) { return providers.RunStatus{Phase: "running"}, nil }),
			place("d", func(context.Context) (providers.RunStatus, error) {
				return providers.RunStatus{}, errors.New("no route to \x1b[31mhost")
			}),
			place("e", func(context.Context) (providers.RunStatus, error) { return providers.RunStatus{}, providers.ErrNoRun }),
		}
		for i := range 100 {
			places = append(places, place(fmt.Sprint("f", i), func(context.Context) (providers.RunStatus, error) {
				time.Sleep(100 * time.Millisecond)
				return providers.RunStatus{Phase: "succeeded"}, nil
			}))
		}
		r := &runs{secrets: new(redact.Secrets)}
		began := time.Now()
		rows := r.readRows(t.Context(), places)
		if took := time.Since(began); took > runPatience {
			t.Errorf("it took %s", took)
		}
		if most.Load() > runReaders {
			t.Errorf("%d runs were read at the same time", most.Load())
		}
		got := ""
		for _, row := range rows[:6] {
			got += fmt.Sprintln(row.cells(time.Now()))
		}
		want := "[a running 0/0 ready - - - -]\n[b unknown - - - - no answer within 10s]\n[c unknown - - - - no answer within 10s]\n" +
			"[d unknown - - - - no route to [31mhost]\n[e gone - - - - nothing is left of it]\n[f0 succeeded 0/0 ready - - - -]\n"
		// A run that ends with the context may be as late as the reader.
		if got = strings.Replace(got, "10s: context deadline exceeded", "10s", 1); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestTablesFit(t *testing.T) {
	wide := strings.Repeat("界", 50)
	table := func() [][]string {
		return [][]string{{"RUN", "PHASE", "WHERE"}, {"train_experiment." + wide, "running", "here\x1b[2J"}, {"short", wide, wide}}
	}
	for width := range 120 {
		for _, lines := range [][]string{alignRows(table(), width), alignColumns(table(), width)} {
			if len(lines) != 3 {
				t.Fatalf("%d lines", len(lines))
			}
			for _, line := range lines {
				if width > 0 && canvas.Width(line) > width || strings.Contains(line, "\x1b") {
					t.Fatalf("%d columns, want at most %d: %q", canvas.Width(line), width, line)
				}
			}
		}
	}
	if got := alignRows(table(), 0)[1]; !strings.Contains(got, wide) || !strings.HasSuffix(got, "  here") {
		t.Errorf("without a width: %q", got)
	}
}
