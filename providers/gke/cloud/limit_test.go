package cloud

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stokehq/stoke/providers"
)

// maxWait is how long the first Ctrl-C may leave any wait.
const maxWait = 5 * time.Second

// TestInterrupt: the first Ctrl-C ends a wait within five seconds by the clock of the test, which no machine slows down: a single call, calls
// that follow each other on several services, a look of a wait, a pause, and the wait for credentials.
func TestInterrupt(t *testing.T) {
	hang := func(ctx context.Context, l *limits, changes bool) error {
		limited, end, err := l.begin(ctx, changes)
		if err != nil {
			return err
		}
		defer end()
		began := time.Now()
		<-limited.Done()
		return l.finish(limited, began, limited.Err())
	}
	for name, wait := range map[string]func(ctx context.Context, c *Cloud, all []*limits){
		"read":   func(ctx context.Context, _ *Cloud, all []*limits) { _ = hang(ctx, all[0], false) },
		"change": func(ctx context.Context, _ *Cloud, all []*limits) { _ = hang(ctx, all[0], true) },
		"calls one after the other": func(ctx context.Context, _ *Cloud, all []*limits) {
			for n := range 40 {
				_ = hang(ctx, all[n%len(all)], n%3 == 0)
			}
		},
		"repeated read": func(ctx context.Context, c *Cloud, all []*limits) {
			_, _ = Read(ctx, c, func(ctx context.Context) (int, error) { return 0, hang(ctx, all[0], false) })
		},
		"repeated change": func(ctx context.Context, c *Cloud, all []*limits) {
			_, _ = Repeat(ctx, c, func(ctx context.Context) (int, error) { return 0, &Error{Kind: Busy, Err: hang(ctx, all[0], true)} })
		},
		"create": func(ctx context.Context, c *Cloud, all []*limits) {
			_, _, _ = Make(ctx, c, func(ctx context.Context) (int, error) { return 0, hang(ctx, all[0], true) },
				func(ctx context.Context) (bool, error) { return false, hang(ctx, all[1], false) })
		},
		"look of a wait": func(ctx context.Context, c *Cloud, _ []*limits) {
			err := c.WaitUntil(ctx, "it", func(ctx context.Context) (bool, error) {
				<-ctx.Done()
				return false, ctx.Err()
			})
			if !errors.As(err, new(*RunningError)) {
				t.Errorf("the wait ends with %v", err)
			}
		},
		"pause of a wait": func(ctx context.Context, c *Cloud, _ []*limits) {
			_ = c.WaitUntil(ctx, "it", func(context.Context) (bool, error) { return false, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := new(interrupt)
				c := &Cloud{pace: Pace{First: time.Hour, Most: time.Hour}, interrupt: i}
				var all []*limits
				for _, name := range []string{"a", "b"} {
					l := newLimits(name, name, i)
					l.answered = true
					all = append(all, l)
				}
				stop := make(chan struct{})
				var stopped time.Time
				time.AfterFunc(1500*time.Millisecond, func() {
					stopped = time.Now()
					close(stop)
				})
				wait(providers.WithCall(t.Context(), &providers.Call{Stopping: stop}), c, all)
				if took := time.Since(stopped); stopped.IsZero() || took > maxWait {
					t.Errorf("the first Ctrl-C takes %v", took)
				}
			})
		})
	}
}
