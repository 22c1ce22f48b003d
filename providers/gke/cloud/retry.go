package cloud

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stokehq/stoke/providers"
)

// again is how often a call is made that Google is too busy for.
const again = 8

// ReportProgress reports to the user which operation stoke waits for.
func ReportProgress(ctx context.Context, percent float64, format string, args ...any) {
	providers.CallFrom(ctx).Report(providers.Progress{Step: fmt.Sprintf(format, args...), Percent: percent})
}

// waits gives longer and longer pauses, with some chance in them so that many
// callers do not come back together.
type waits struct {
	pace Pace
	next time.Duration
}

func (w *waits) pause(ctx context.Context) error {
	if w.next == 0 {
		w.next = w.pace.First
	}
	d := w.next/2 + rand.N(w.next/2+1)
	w.next = min(w.next*3/2, w.pace.Most)
	select {
	case <-time.After(d):
		return nil
	case <-providers.CallFrom(ctx).Stopping:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Read makes a call that changes nothing, again where Google is busy or away.
func Read[T any](ctx context.Context, c *Cloud, call func(context.Context) (T, error)) (T, error) {
	return attempt(ctx, c, again, []Kind{Busy, Ambiguous}, call)
}

// Change makes a call that changes something. It is made again only where the
// answer says that nothing came of it: another operation under way, which is
// waited for as long as ctx allows, or too many calls. What is Ambiguous is the
// caller's to look at.
func Change[T any](ctx context.Context, c *Cloud, call func(context.Context) (T, error)) (T, error) {
	return attempt(ctx, c, 0, []Kind{Busy, Conflict}, call)
}

// Repeat is Change for calls that do no harm when made twice.
func Repeat[T any](ctx context.Context, c *Cloud, call func(context.Context) (T, error)) (T, error) {
	return attempt(ctx, c, 0, []Kind{Busy, Conflict, Ambiguous}, call)
}

// busyKey is the key of the context for the function of Holding.
type busyKey struct{}

// Holding gives the changes of an object a function that reports whether another operation holds the
// object. A FAILED_PRECONDITION has many texts, and the status of the object tells which of them pass.
func Holding(ctx context.Context, held func(context.Context) (bool, error)) context.Context {
	return context.WithValue(ctx, busyKey{}, held)
}

// passes reports whether a failed precondition will pass: another operation holds the object, or held
// it a moment ago, which one more call tells.
func passes(ctx context.Context, e *Error, again bool) bool {
	held, known := ctx.Value(busyKey{}).(func(context.Context) (bool, error))
	if !known || !e.precondition || e.Kind != Other {
		return false
	}
	if busy, err := held(ctx); err == nil && busy {
		return true
	}
	return !again
}

// late reports whether a call has used up its limits: a silent service is not asked again, a slow one
// once.
func (e *Error) late(calls int) bool { return e != nil && e.Late && (e.Silent || calls > 1) }

// attempt makes a call until it is no longer one of these kinds. Ambiguous ones
// count, because an endpoint that is not there never answers; most 0 lets the
// others go on until ctx ends.
func attempt[T any](ctx context.Context, c *Cloud, most int, kinds []Kind, call func(context.Context) (T, error)) (T, error) {
	w := waits{pace: c.pace}
	var said *Error // by Google before, which says more than that no time is left
	refusals, idle := 0, false
	for n := 1; ; n++ {
		out, err := call(withRefusals(ctx, refusals))
		if err == nil {
			return out, nil
		}
		err = Explain(err)
		kind := KindOf(err)
		if said != nil && kind == Ambiguous { // the call that was cut off may have had an effect
			last := *said
			last.Kind, last.Err = kind, err
			err = &last
		}
		var e *Error
		errors.As(err, &e)
		if kind == Other && slices.Contains(kinds, Conflict) && passes(ctx, e, idle) {
			idle, kind, e.Kind = true, Conflict, Conflict
			e.phrase(e.message)
		}
		if !slices.Contains(kinds, kind) || most > 0 && n >= most || kind == Ambiguous && n >= again || ctx.Err() != nil || e.late(n) {
			return out, err
		}
		select {
		case <-providers.CallFrom(ctx).Stopping:
			return out, err
		default:
		}
		if e != nil {
			ReportProgress(ctx, -1, "%s; trying again", e.Summary)
		}
		if kind != Ambiguous {
			said = e
			refusals++
		}
		if w.pause(ctx) != nil {
			return out, err
		}
	}
}

// UnsureError: a call that creates something got no answer, and its result could
// not be read.
type UnsureError struct{ Err error }

func (e *UnsureError) Error() string { return e.Err.Error() }
func (e *UnsureError) Unwrap() error { return e.Err }

// Make makes the call of a create. An answer that leaves open what came of it, or
// that says there is one already, is followed by a look: there says that look found
// an object, whose mark is the caller's to check. Where there is none the call is
// made again, which can make no second one, because names are unique. Where the look
// fails, too, that is an UnsureError.
func Make[T any](ctx context.Context, c *Cloud, call func(context.Context) (T, error), look func(context.Context) (there bool, err error)) (out T, there bool, err error) {
	w := waits{pace: c.pace}
	for n := 1; ; n++ {
		out, err = Change(ctx, c, call)
		kind := KindOf(err)
		if ctx.Err() != nil && (kind == Ambiguous || kind == Other) && err != nil {
			return out, false, &UnsureError{err} // it was cut off, and there is no time left to look
		}
		if kind != Ambiguous && kind != Exists {
			return out, false, err
		}
		refused := err
		there, err = look(ctx)
		if err != nil && ctx.Err() != nil {
			return out, there, &UnsureError{refused}
		}
		if err != nil {
			return out, there, &UnsureError{err}
		}
		if there {
			return out, there, nil
		}
		if n >= again || w.pause(ctx) != nil {
			return out, false, refused
		}
	}
}
