package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stokehq/stoke/providers"
)

// The limits of a single call. A call without a limit waits as long as its operation may take, and a
// plan has none: a server that accepts connections and never answers would hold it for good.
const (
	readTime   = 20 * time.Second
	changeTime = 60 * time.Second // the container API takes up to 45 seconds to accept a cluster
	// readGrace and changeGrace are the rest of a call after the first Ctrl-C. A change that is cut
	// off may have happened, and the mark of its object tells the next apply.
	readGrace   = time.Second
	changeGrace = 2 * time.Second
	// lastGrace is the time from the first Ctrl-C to the end of the last call: many calls may be made in turn.
	lastGrace = 4 * time.Second
	// silentAfter is the time that a service has for its first answer. Then it is silent, and further
	// calls fail at once.
	silentAfter = 5 * time.Second
)

// errStopped ends calls and pauses after the first Ctrl-C.
var errStopped = errors.New("the command stops after Ctrl-C")

// lateError reports a call that got no answer within its limit.
type lateError struct {
	service, argument string
	after             time.Duration
	silent            bool // the service has never answered
}

func (e *lateError) Error() string {
	return fmt.Sprintf("the %s accepted a call and gave no answer within %v", e.service, e.after)
}

func (e *lateError) Unwrap() error { return context.DeadlineExceeded }

// explain returns the error for people.
func (e *lateError) explain(err error) *Error {
	return &Error{Summary: "Google did not answer", Kind: Ambiguous, Err: err, Late: true, Silent: e.silent,
		Detail: fmt.Sprintf("The %s accepted a call and gave no answer within %v. "+
			"Check the network, its proxy, and %s in the block provider \"gke\".", e.service, e.after, e.argument)}
}

// interrupt is the first Ctrl-C, as the calls of a Cloud notice it.
type interrupt struct {
	mu sync.Mutex
	by <-chan struct{}
	at time.Time
}

// notice returns when a closed channel of a command was first noticed.
func (i *interrupt) notice(by <-chan struct{}) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.by != by {
		i.by, i.at = by, time.Now()
	}
	return i.at
}

// bound returns a context that ends after the first Ctrl-C, with errStopped as its cause: grace after
// Ctrl-C or after the beginning of the call, whichever is later, and lastGrace after Ctrl-C at most.
func (i *interrupt) bound(ctx context.Context, grace time.Duration) (context.Context, func()) {
	stopping := providers.CallFrom(ctx).Stopping
	if stopping == nil {
		return ctx, func() {}
	}
	if i == nil { // of a Cloud that was not opened
		i = new(interrupt)
	}
	stoppable, stop := context.WithCancelCause(ctx)
	go func() { // until the call ends
		select {
		case <-stopping:
		case <-stoppable.Done():
			return
		}
		last := time.Until(i.notice(stopping).Add(lastGrace))
		select {
		case <-time.After(min(grace, last)):
			stop(errStopped)
		case <-stoppable.Done():
		}
	}()
	return stoppable, func() { stop(nil) }
}

// Stoppable returns a context for waits on others than Google's services, which ends soon after the
// first Ctrl-C, and a function that gives it up.
func (c *Cloud) Stoppable(ctx context.Context) (context.Context, func()) {
	return c.interrupt.bound(ctx, readGrace)
}

// Interrupted returns an error where the first Ctrl-C has ended a context of Stoppable, and nil otherwise.
func Interrupted(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStopped) {
		return cause
	}
	return nil
}

// limits bound the calls to one service.
type limits struct {
	service, argument string // for messages: "Filestore API", "file_endpoint"
	read, change      time.Duration
	interrupt         *interrupt

	mu               sync.Mutex
	answered, silent bool
}

func newLimits(service, argument string, i *interrupt) *limits {
	return &limits{service: service, argument: argument, read: readTime, change: changeTime, interrupt: i}
}

// shorten is for tests: they wait for a limit.
func (l *limits) shorten(to time.Duration) {
	if to > 0 {
		l.read, l.change = to, to
	}
}

// begin returns the context of one call, or the error of a silent service.
func (l *limits) begin(ctx context.Context, changes bool) (context.Context, func(), error) {
	l.mu.Lock()
	silent := l.silent
	l.mu.Unlock()
	if silent {
		return nil, nil, l.late(true)
	}
	limit, grace := l.read, readGrace
	if changes {
		limit, grace = l.change, changeGrace
	}
	limited, end := context.WithTimeoutCause(ctx, limit, l.late(false))
	stoppable, stop := l.interrupt.bound(limited, grace)
	return stoppable, func() { stop(); end() }, nil
}

func (l *limits) late(silent bool) *lateError {
	return &lateError{service: l.service, argument: l.argument, after: l.read, silent: silent}
}

// finish returns the error of a call, and notes whether the service has answered. began is the time of
// the call, ctx its context.
func (l *limits) finish(ctx context.Context, began time.Time, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.answered = true
		return nil
	}
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errStopped) {
		return errStopped
	}
	late := errors.As(cause, new(*lateError))
	if !late && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	l.silent = !l.answered && (late || time.Since(began) >= silentAfter)
	if l.silent || late {
		return l.late(l.silent)
	}
	return err
}

// transport returns a round tripper whose calls have limits and name their agent.
func (l *limits) transport(agent string) http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 16
	return &limitedTransport{base, l, agent}
}

type limitedTransport struct {
	base   http.RoundTripper
	limits *limits
	agent  string
}

// RoundTrip is that of http.RoundTripper.
func (t *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end, err := t.limits.begin(r.Context(), r.Method != http.MethodGet)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r = r.Clone(ctx)
	r.Header.Set("User-Agent", t.agent)
	answer, err := t.base.RoundTrip(r)
	if err = t.limits.finish(ctx, began, err); err != nil {
		end()
		return nil, err
	}
	answer.Body = &limitedBody{answer.Body, end}
	return answer, nil
}

// limitedBody ends the context of a call with its body.
type limitedBody struct {
	io.ReadCloser
	end func()
}

// Close is that of io.Closer.
func (b *limitedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// unary is a grpc.UnaryClientInterceptor whose calls have limits.
func (l *limits) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	name := method[strings.LastIndexByte(method, '/')+1:]
	limited, end, err := l.begin(ctx, !strings.HasPrefix(name, "Get") && !strings.HasPrefix(name, "List"))
	if err != nil {
		return err
	}
	defer end()
	began := time.Now()
	err = invoke(limited, method, req, reply, cc, opts...)
	switch status.Code(err) { //nolint:exhaustive // the others are answers
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown:
		return l.finish(limited, began, err)
	}
	_ = l.finish(limited, began, nil)
	return err
}
