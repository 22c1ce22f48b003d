package coordinator

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

// The events that the API causes; loop answers on done.
type (
	change struct {
		spec.LiveChange
		done chan<- error
	}
	ask         struct{ done chan<- spec.Ledger }
	stopRequest struct{}
)

// maxWait is the longest that a request for metrics waits.
const maxWait = 30 * time.Second

// routes is the API, for those who show the token.
func (c *coordinator) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+api.PathStatus, func(w http.ResponseWriter, r *http.Request) { answer(w, c.status.Load()) })
	mux.HandleFunc("GET "+api.PathMetrics, c.getMetrics)
	mux.HandleFunc("GET "+api.PathLedger, c.getLedger)
	mux.HandleFunc("GET "+api.PathModel, c.getModel)
	mux.HandleFunc("POST "+api.PathCollected, c.postCollected)
	mux.HandleFunc("POST "+api.PathScale, c.postLive)
	mux.HandleFunc("POST "+api.PathLive, c.postLive)
	mux.HandleFunc("POST "+api.PathStop, func(w http.ResponseWriter, r *http.Request) {
		c.asking.Do(func() { close(c.stopAsked) })
		c.post(r.Context(), stopRequest{})
		answer(w, struct{}{})
	})
	return c.authorised(mux)
}

// answeredTime is how long an answer that is being given has, once ctx is done.
const answeredTime = 2 * time.Second

// serveAPI answers until ctx is done.
func (c *coordinator) serveAPI(ctx context.Context) {
	server := &http.Server{
		Handler:           c.routes(),
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
		if server.Shutdown(quiet) != nil {
			server.Close()
		}
	})
	defer func() {
		if !stop() {
			<-closed
		}
	}()
	l, err := c.Credentials.Listener(c.API)
	if err == nil {
		err = server.Serve(l)
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		c.Log.Error("the API ended", "error", err)
	}
}

func (c *coordinator) authorised(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || !wire.Same(shown, c.Credentials.Token) {
			refuse(w, http.StatusUnauthorized, "Wrong token", "Send the content of the run's token file as \"Authorization: Bearer …\".")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // an error is the client's disconnection
}

func refuse(w http.ResponseWriter, code int, summary, detail string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(api.Failure{Summary: summary, Detail: detail})
}

func (c *coordinator) getMetrics(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseInt(r.FormValue("after"), 10, 64)
	if r.FormValue("after") != "" && (err != nil || after < 0) {
		refuse(w, http.StatusBadRequest, "Number of an event expected", "after must be 0 or the number of the last event seen.")
		return
	}
	wait, err := strconv.ParseFloat(r.FormValue("wait"), 64)
	if err != nil || !(wait >= 0) {
		wait = 0
	}
	timer := time.NewTimer(min(maxWait, time.Duration(min(wait, 3600)*float64(time.Second))))
	defer timer.Stop()
	for waiting := true; waiting; {
		there, changed := c.journal.history.After(after)
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
	if _, err := c.journal.history.Send(w, after); err != nil {
		c.Log.Warn("cannot send events", "error", err)
	}
}

func (c *coordinator) getLedger(w http.ResponseWriter, r *http.Request) {
	done := make(chan spec.Ledger, 1)
	if !c.post(r.Context(), ask{done}) {
		return
	}
	select {
	case l := <-done:
		answer(w, l)
	case <-r.Context().Done():
	}
}

func (c *coordinator) postLive(w http.ResponseWriter, r *http.Request) {
	var s spec.LiveChange
	decoder := json.NewDecoder(io.LimitReader(r.Body, 64<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		refuse(w, http.StatusBadRequest, "Change not understood", err.Error())
		return
	}
	done := make(chan error, 1)
	if !c.post(r.Context(), change{s, done}) {
		return
	}
	select {
	case err := <-done:
		if err != nil {
			refuse(w, http.StatusUnprocessableEntity, "Change refused", err.Error())
			return
		}
		answer(w, struct{}{})
	case <-r.Context().Done():
	}
}

// change takes on a live change; it outlives this process in spec.json.
func (c *coordinator) change(s spec.LiveChange) error {
	next := c.Spec
	s.Apply(&next)
	if problems := next.Validate(); len(problems) > 0 {
		return problems[0]
	}
	if next == c.Spec {
		return nil
	}
	if err := c.ours(); err != nil {
		return err
	}
	if err := c.Folder.WriteSpec(next); err != nil {
		return err
	}
	before := c.Spec.Worker.Replicas
	c.Spec = next
	if c.queue != nil {
		c.forecast()
	}
	if next.Worker.Replicas != before {
		c.note(spec.Event{Type: spec.EventScale, Metrics: map[string]float64{"workers": float64(next.Worker.Replicas)}})
		c.Log.Info("scaled", "from", before, "to", next.Worker.Replicas)
		c.tell(spec.Control{Workers: &next.Worker.Replicas})
		for _, m := range c.members {
			if m.index >= next.Worker.Replicas && !m.leaving {
				c.release(m)
				c.dismiss(m, fewer)
			}
		}
	}
	c.publish(spec.Running)
	return nil
}
