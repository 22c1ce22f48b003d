package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"
)

// Intervals of live data.
const (
	everyStatus = 2 * time.Second
	everyPoint  = time.Second
	everyLine   = 300 * time.Millisecond
	silence     = 15 * time.Second // then a comment shows that the connection works
	slowest     = 20 * time.Second // for a browser that does not read
)

// stream is an answer of server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context // ends with the browser, or the server
	last    time.Time
}

// begin begins a stream; end is called when it is over.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) (st *stream, end func()) {
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-s.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	st = &stream{w: w, control: http.NewResponseController(w), ctx: ctx}
	st.write("retry: 1000\n\n")
	return st, func() { cancel(); <-done }
}

// send sends one message. JSON has no line feed, so that no text in it ends a message.
func (st *stream) send(event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return st.write(fmt.Sprintf("event: %s\ndata: %s\n\n", event, text))
}

func (st *stream) write(text string) error {
	_ = st.control.SetWriteDeadline(time.Now().Add(slowest)) // a recorder of tests has none
	st.last = time.Now()
	if _, err := st.w.Write([]byte(text)); err != nil {
		return err
	}
	return st.control.Flush()
}

// keep calls do at once and then at every interval, until do fails or the stream ends.
func (st *stream) keep(every time.Duration, do func() error) {
	timer := time.NewTicker(every)
	defer timer.Stop()
	for st.ctx.Err() == nil {
		if do() != nil {
			return
		}
		if time.Since(st.last) > silence && st.write(": \n\n") != nil {
			return
		}
		select {
		case <-timer.C:
		case <-st.ctx.Done():
		}
	}
}

// liveRun is the part of a run that changes, for scripts. They set it as text.
type liveRun struct {
	Address string             `json:"address"`
	Phase   string             `json:"phase"`
	Kind    string             `json:"kind"`
	Message string             `json:"message"`
	Percent float64            `json:"percent"`
	Texts   map[string]string  `json:"texts"`
	Sorts   map[string]float64 `json:"sorts"`
	Live    bool               `json:"live"`
	Roles   []liveRole         `json:"roles,omitempty"`
}

// liveRole is the part of a role that changes.
type liveRole struct {
	Run    string            `json:"run,omitempty"`
	Name   string            `json:"name"`
	Phase  string            `json:"phase"`
	Kind   string            `json:"kind"`
	Node   string            `json:"node"`
	Reason string            `json:"reason"`
	Texts  map[string]string `json:"texts"`
}

func liveOf(r *row, now time.Time, withRoles bool) liveRun {
	v := viewOf(r, now, withRoles)
	out := liveRun{Address: v.Address, Phase: v.Phase, Kind: v.Kind, Message: v.Message, Percent: v.Percent, Live: r.isLive(),
		Texts: make(map[string]string), Sorts: make(map[string]float64)}
	for key, c := range v.Cells {
		out.Texts[key] = c.Text
		if !math.IsInf(c.Sort, 0) {
			out.Sorts[key] = c.Sort
		}
	}
	for _, role := range v.Roles {
		out.Roles = append(out.Roles, liveRoleOf(role))
	}
	return out
}

func liveRoleOf(role roleView) liveRole {
	out := liveRole{Run: role.Run, Name: role.Name, Phase: role.Phase, Kind: role.Kind, Node: role.Node, Reason: role.Reason,
		Texts: make(map[string]string)}
	for key, c := range role.Cells {
		out.Texts[key] = c.Text
	}
	return out
}

// streamRuns sends the runs that changed.
func (s *Server) streamRuns(w http.ResponseWriter, r *http.Request) {
	st, end := s.begin(w, r)
	defer end()
	sent := make(map[string]string)
	st.keep(everyStatus, func() error {
		rows, err := s.board.rows(st.ctx, everyStatus)
		if err != nil {
			return st.send("trouble", cleanText(err.Error(), longestText, true))
		}
		var changed []json.RawMessage
		now, there := time.Now(), make([]string, 0, len(rows))
		for i := range rows {
			there = append(there, keyOf(rows[i].Address))
			text, err := json.Marshal(liveOf(&rows[i], now, false))
			if err != nil {
				return err
			}
			if key := keyOf(rows[i].Address); sent[key] != string(text) {
				sent[key] = string(text)
				changed = append(changed, text)
			}
		}
		isNew := len(sent) != len(there)
		for address := range sent {
			if !slices.Contains(there, address) {
				delete(sent, address)
			}
		}
		if len(changed) == 0 && !isNew {
			return nil
		}
		return st.send("runs", map[string]any{"runs": changed, "all": there})
	})
}

// follower is a part of a run's history on its way to a browser.
type follower struct {
	*feed
	sub *subscriber
}

// follow subscribes to parts of a run's history; end is called when it is over.
func (s *Server) follow(one row, parts ...part) (all []follower, end func()) {
	var ends []func()
	for _, p := range parts {
		f, release := s.feeds.open(one, p)
		sub := f.subscribe()
		all = append(all, follower{f, sub})
		ends = append(ends, func() { f.unsubscribe(sub); release() })
	}
	return all, func() {
		for _, end := range ends {
			end()
		}
	}
}

// sendNews sends all that is new in a part.
func (st *stream) sendNews(f follower) error {
	fresh := f.drain(f.sub)
	if fresh == nil {
		return nil
	}
	if fresh.isBack {
		if err := st.send("back", nil); err != nil {
			return err
		}
	}
	if len(fresh.events) > 0 {
		if err := st.send("events", fresh.events); err != nil {
			return err
		}
	}
	return st.send("points", curvesOf(fresh.set.All(), newPoints))
}

// streamRun sends the status of one run, and all that was measured since: of the run and
// all roles, or of one role.
func (s *Server) streamRun(w http.ResponseWriter, r *http.Request) {
	one, ok := s.findRun(w, r)
	if !ok {
		return
	}
	parts := []part{partOf(r, &one)}
	if parts[0] == ofRun {
		parts = append(parts, ofRoles)
	}
	all, release := s.follow(one, parts...)
	defer release()
	st, end := s.begin(w, r)
	defer end()
	sent, at := "", time.Time{}
	id := one.status.Run
	st.keep(everyPoint, func() error {
		if time.Since(at) >= everyStatus {
			at = time.Now()
			now, ok, err := s.board.find(st.ctx, keyOf(one.Address))
			if err == nil && ok && now.status.Run == id {
				text, err := json.Marshal(liveOf(&now, time.Now(), true))
				if err != nil {
					return err
				}
				if string(text) != sent {
					sent = string(text)
					if err := st.send("status", json.RawMessage(text)); err != nil {
						return err
					}
				}
			} else if err == nil {
				return st.send("other", nil) // another run is at the address: the page is loaded again
			}
		}
		for _, f := range all {
			if err := st.sendNews(f); err != nil {
				return err
			}
		}
		return nil
	})
}
