package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/plan/state"
)

// Fault is a way to fail a request.
type Fault int

// The ways. Of those that cut, the connection is then closed.
const (
	Refuse    Fault = iota // 403 without doing it
	Fail                   // 500 without doing it
	FailAfter              // done, and 500 all the same
	CutBefore              // the request is read and not done
	CutHalf                // half of the request's body is read, nothing is done
	CutAfter               // done, and no answer
	CutAnswer              // done, and half of the answer
	faults
)

func (f Fault) String() string {
	return [...]string{"refuse", "fail", "fail after", "cut before", "cut half", "cut after", "cut answer"}[f]
}

// Saboteur stands in front of a server and breaks requests, counted from 0.
// From is the first one that is broken, and Times how many are; negative is
// all that follow.
type Saboteur struct {
	Server http.Handler

	mu    sync.Mutex
	fault Fault
	from  int
	times int
	count int
	armed bool
}

// Arm breaks times requests from the one numbered from on, counted from now.
func (s *Saboteur) Arm(fault Fault, from, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.from, s.times, s.count, s.armed = fault, from, times, 0, true
}

// Disarm lets everything through, and returns how many requests there were
// since Arm.
func (s *Saboteur) Disarm() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	return s.count
}

func (s *Saboteur) next() (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.count
	s.count++
	return s.fault, s.armed && n >= s.from && (s.times < 0 || n < s.from+s.times)
}

// ServeHTTP passes a request on, or breaks it.
func (s *Saboteur) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, broken := s.next()
	if !broken {
		s.Server.ServeHTTP(w, r)
		return
	}
	switch fault {
	case Refuse:
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "", http.StatusForbidden)
	case Fail:
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "", http.StatusInternalServerError)
	case FailAfter:
		s.Server.ServeHTTP(httptest.NewRecorder(), r)
		http.Error(w, "", http.StatusInternalServerError)
	case CutBefore:
		_, _ = io.Copy(io.Discard, r.Body)
		cut(w, nil)
	case CutHalf:
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
		cut(w, nil)
	case CutAfter:
		s.Server.ServeHTTP(httptest.NewRecorder(), r)
		cut(w, nil)
	case CutAnswer:
		answer := httptest.NewRecorder()
		s.Server.ServeHTTP(answer, r)
		cut(w, answer)
	}
}

// cut closes the connection, after half of an answer.
func cut(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	conn, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a reset, as from a machine that died
	}
	if answer == nil {
		return
	}
	var text bytes.Buffer
	resp := answer.Result()
	resp.Header.Set("Content-Length", strconv.Itoa(answer.Body.Len()))
	resp.ContentLength = int64(answer.Body.Len())
	if err := resp.Write(&text); err != nil {
		return
	}
	_, _ = buf.Write(text.Bytes()[:text.Len()-max(1, answer.Body.Len()/2)])
	_ = buf.Flush()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(1)
	}
}

// Sabotaged is a place behind a Saboteur.
type Sabotaged struct {
	Place func(t testing.TB) (open func() state.Store, s *Saboteur)
	// Patience is how long one run may take with a server that breaks; its
	// context ends then.
	Patience time.Duration
}

// Sabotage lets every request of a run go wrong in every way, once and for
// good, and looks whether the next run finds all that was acknowledged. Short
// tests are content with every fourth request.
func Sabotage(t *testing.T, h Sabotaged) {
	step := 1
	if testing.Short() {
		step = 4
	}
	for fault := range faults {
		for _, times := range []int{1, -1} {
			t.Run(fmt.Sprintf("%s/%d", fault, times), func(t *testing.T) {
				for from := 0; ; from += step {
					if done := sabotageOnce(t, h, fault, from, times); done {
						if from < 6 {
							t.Errorf("a run makes only %d requests", from)
						}
						return
					}
				}
			})
		}
	}
}

// sabotageOnce reports whether the run was over before the fault.
func sabotageOnce(t *testing.T, h Sabotaged, fault Fault, from, times int) (done bool) {
	t.Helper()
	open, s := h.Place(t)
	must(t, addOne(t.Context(), opened(t, open), 0))
	ctx, cancel := context.WithTimeout(t.Context(), h.Patience)
	defer cancel()
	s.Arm(fault, from, times)
	acknowledged := map[int]bool{0: true}
	first := opened(t, open)
	err := lockedRun(ctx, first, acknowledged)
	requests := s.Disarm()
	where := fmt.Sprintf("%s from request %d of %d (%v)", fault, from, requests, err)
	if err == nil && len(acknowledged) != 4 {
		t.Fatalf("%s: only %v were done", where, acknowledged)
	}
	next := opened(t, open)
	defer breakLock(t, next, where).Release() //nolint:errcheck // the server works again
	f, err := state.Open(t.Context(), next)
	if err != nil {
		t.Fatalf("%s: the next run cannot read it: %v", where, err)
	}
	j, err := f.Begin(t.Context())
	if err != nil {
		t.Fatalf("%s: the next run cannot begin: %v", where, err)
	}
	for _, in := range j.Open() {
		must(t, j.Result(t.Context(), state.Result{Intent: in.ID, Err: "settled", Durable: true}))
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatalf("%s: the next run cannot end: %v", where, err)
	}
	for i := range acknowledged {
		if f.State().Current(instance(i)) == nil {
			t.Fatalf("%s: object %d was acknowledged and is lost; there are %v", where, i, f.State().Instances())
		}
	}
	g, err := state.Open(t.Context(), opened(t, open))
	must(t, err)
	if g.Unfolded() || len(g.State().Instances()) != len(f.State().Instances()) {
		t.Fatalf("%s: the third run finds %v, unfolded %v", where, g.State().Instances(), g.Unfolded())
	}
	return requests <= from
}

// breakLock does what people do about the lock of a dead run, and takes it.
func breakLock(t *testing.T, s state.Store, where string) state.Lock {
	t.Helper()
	l, err := s.Lock(t.Context(), state.LockInfo{})
	var locked *state.LockedError
	if errors.As(err, &locked) {
		if err := s.ForceUnlock(t.Context(), locked.Holder.ID); err != nil {
			t.Fatalf("%s: the lock of %s cannot be broken: %v", where, locked.Holder, err)
		}
		l, err = s.Lock(t.Context(), state.LockInfo{})
	}
	if err != nil {
		t.Fatalf("%s: the next run cannot lock: %v", where, err)
	}
	return l
}

// lockedRun creates three objects under the lock, and notes down what it was
// told has happened.
func lockedRun(ctx context.Context, s state.Store, acknowledged map[int]bool) error {
	l, err := s.Lock(ctx, state.LockInfo{Operation: "OperationTypeApply"})
	if err != nil {
		return err
	}
	defer l.Release() //nolint:errcheck // what the next run makes of it is the test
	f, err := state.Open(ctx, s)
	if err != nil {
		return err
	}
	j, err := f.Begin(ctx)
	if err != nil {
		return err
	}
	for i := 1; i < 4 && err == nil; i++ {
		if err = create(ctx, j, i); err == nil {
			acknowledged[i] = true
		}
	}
	return errors.Join(err, j.Close(ctx))
}
