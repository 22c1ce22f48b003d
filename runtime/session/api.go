package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// maxWait is the longest that a request for metrics waits.
const maxWait = 30 * time.Second

// server answers the API of a session.
type server struct{ *Session }

// routes returns the API, for clients that send the token.
func (s server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+api.PathStatus, func(w http.ResponseWriter, r *http.Request) { Answer(w, s.status.Load()) })
	mux.HandleFunc("GET "+api.PathMetrics, s.getMetrics)
	mux.HandleFunc("GET "+api.PathPrometheus, s.getPrometheus)
	mux.HandleFunc("POST "+api.PathCollected, s.postCollected)
	mux.HandleFunc("POST "+api.PathLive, s.postLive)
	mux.HandleFunc("POST "+api.PathUsage, s.postUsage)
	mux.HandleFunc("POST "+api.PathStop, func(w http.ResponseWriter, r *http.Request) {
		s.Do(r.Context(), s.stop)
		Answer(w, struct{}{})
	})
	s.work.Routes(mux)
	return s.authorised(mux)
}

// stop ends the run, unless it is over.
func (s server) stop() {
	if s.over.Load() == nil {
		s.Finish(errStop)
	}
}

// answeredTime is how long an answer that is being given has, once ctx is done.
const answeredTime = 2 * time.Second

// serve answers until ctx is done.
func (s server) serve(ctx context.Context) {
	h := &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		quiet, cancel := context.WithTimeout(context.WithoutCancel(ctx), answeredTime)
		defer cancel()
		if h.Shutdown(quiet) != nil {
			h.Close()
		}
	})
	defer func() {
		if !stop() {
			<-closed
		}
	}()
	l, err := s.Credentials.Listener(s.API)
	if err == nil {
		err = h.Serve(l)
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		s.Log.Error("the API ended", "error", err)
	}
}

func (s server) authorised(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || !wire.EqualTokens(shown, s.Credentials.Token) {
			Refuse(w, http.StatusUnauthorized, "Wrong token", "Send the content of the run's token file as \"Authorization: Bearer …\".")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Answer answers a request with a value as JSON.
func Answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // an error is the client's disconnection
}

// Refuse answers a request with an error: what is wrong, and what to do.
func Refuse(w http.ResponseWriter, code int, summary, detail string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(api.Failure{Summary: summary, Detail: detail})
}

// SendResult counts a result that is being sent, which the end of the API waits
// for, until the caller calls ended. Every goroutine may use it.
func (s *Session) SendResult() (ended func()) {
	s.sending.Add(1)
	return func() { s.sending.Add(-1) }
}

func (s server) getMetrics(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseInt(r.FormValue("after"), 10, 64)
	if r.FormValue("after") != "" && (err != nil || after < 0) {
		Refuse(w, http.StatusBadRequest, "Number of an event expected", "after must be 0 or the number of the last event seen.")
		return
	}
	wait, err := strconv.ParseFloat(r.FormValue("wait"), 64)
	if err != nil || !(wait >= 0) {
		wait = 0
	}
	timer := time.NewTimer(min(maxWait, time.Duration(min(wait, 3600)*float64(time.Second))))
	defer timer.Stop()
	for waiting := true; waiting; {
		there, changed := s.history.HasAfter(after)
		if there {
			break
		}
		select {
		case <-changed:
		case <-timer.C:
			waiting = false
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if _, err := s.history.Send(w, after); err != nil {
		s.Log.Warn("cannot send events", "error", err)
	}
}

// postCollected ends lingering.
func (s server) postCollected(w http.ResponseWriter, _ *http.Request) {
	if !s.status.Load().Phase.Final() {
		Refuse(w, http.StatusConflict, "The run is not over", "Ask again once its phase is final, or stop it with "+api.PathStop+".")
		return
	}
	s.collecting.Do(func() { close(s.collected) })
	Answer(w, struct{}{})
}

func (s server) postLive(w http.ResponseWriter, r *http.Request) {
	var change spec.LiveChange
	decoder := json.NewDecoder(io.LimitReader(r.Body, 64<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&change); err != nil {
		Refuse(w, http.StatusBadRequest, "Change not understood", err.Error())
		return
	}
	var err error
	if !s.Do(r.Context(), func() { err = s.change(change) }) {
		Refuse(w, http.StatusServiceUnavailable, "The run is over", "It no longer takes settings: see "+api.PathStatus+".")
		return
	}
	if err != nil {
		Refuse(w, http.StatusUnprocessableEntity, "Change refused", err.Error())
		return
	}
	Answer(w, struct{}{})
}

// change takes on a live change; it outlives this process in spec.json.
func (s server) change(change spec.LiveChange) error {
	if how := s.over.Load(); how != nil {
		return errors.New(how.Reason)
	}
	next := s.Spec
	change.Apply(&next)
	if problems := next.Validate(); len(problems) > 0 {
		return problems[0]
	}
	if next == s.Spec {
		return nil
	}
	if err := s.checkCurrent(); err != nil {
		return err
	}
	if err := s.Folder.WriteSpec(next); err != nil {
		return err
	}
	s.changed = s.Folder.ReadChange()
	before := s.Spec.Worker.Replicas
	s.Spec = next
	if next.Worker.Replicas != before {
		s.Note(spec.Event{Type: spec.EventScale, Metrics: map[string]float64{"workers": float64(next.Worker.Replicas)}})
		s.Log.Info("scaled", "from", before, "to", next.Worker.Replicas)
		s.TellSupervisor(spec.Control{Workers: &next.Worker.Replicas})
	}
	s.work.Change(next)
	s.Publish()
	return nil
}
