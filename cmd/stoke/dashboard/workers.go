package dashboard

import (
	"net/http"
	"slices"
	"time"

	"github.com/stokehq/stoke/plan/series"
)

// Bounds of the screen of workers.
const (
	maxCards   = 96 // roles with charts
	maxFeeds   = 8  // runs that are followed for them
	cardPoints = 60 // of a chart on a card
	cardTime   = 10 * time.Minute
)

// cardNames are the charts of a card.
var cardNames = []string{"cpu", "memory_bytes", "received_per_second", "sent_per_second"}

// shareNames are the parts of a worker's time.
var shareNames = []string{"compute_share", "communication_share", "data_share"}

// liveRows returns the live runs that the screen of workers shows, the newest first:
// one run where the request names it.
func (s *Server) liveRows(r *http.Request) (live []row, all []row, err error) {
	all, err = s.board.rows(r.Context(), firstWait)
	if err != nil {
		return nil, nil, err
	}
	only := r.URL.Query().Get("run")
	for i := range all {
		if only == "" && all[i].isLive() || only != "" && keyOf(all[i].Address) == only && all[i].run != nil {
			live = append(live, all[i])
		}
	}
	slices.SortStableFunc(live, func(a, b row) int { return b.status.Started.Compare(a.status.Started) })
	return live[:min(len(live), maxFeeds)], all, nil
}

// cardsOf returns the roles that get a card, as far as there is room.
func cardsOf(rows []row, now time.Time) (cards []roleView, left int) {
	for i := range rows {
		cards = append(cards, viewOf(&rows[i], now, true).Roles...)
	}
	left = max(0, len(cards)-maxCards)
	return cards[:len(cards)-left], left
}

// showWorkers answers with a card for each role of the live runs.
func (s *Server) showWorkers(w http.ResponseWriter, r *http.Request) {
	live, all, err := s.liveRows(r)
	if err != nil {
		s.fail(w, r, http.StatusBadGateway, "The runs cannot be listed", err.Error())
		return
	}
	now := time.Now()
	cards, left := cardsOf(live, now)
	var ended, others []view
	for i := range all {
		isShown := slices.ContainsFunc(live, func(one row) bool { return one.Address == all[i].Address })
		switch {
		case isShown || all[i].run == nil:
		case all[i].isLive():
			others = append(others, viewOf(&all[i], now, false))
		default:
			ended = append(ended, viewOf(&all[i], now, false))
		}
	}
	s.show(w, http.StatusOK, layout{Page: "workers", Title: "Workers", Body: map[string]any{
		"Cards": cards, "Left": left, "Ended": ended, "Others": others,
		"Only": shortName(r.URL.Query().Get("run")), "Query": r.URL.Query().Get("run"),
	}})
}

// showWorker answers with one role and every series of it.
func (s *Server) showWorker(w http.ResponseWriter, r *http.Request) {
	one, ok := s.findRun(w, r)
	if !ok {
		return
	}
	wanted := r.URL.Query().Get("role")
	v := viewOf(&one, time.Now(), true)
	for _, role := range v.Roles {
		if role.Name == wanted {
			s.show(w, http.StatusOK, layout{Page: "worker", Title: role.Name,
				Body: map[string]any{"Run": v, "Role": role, "Live": one.isLive()}})
			return
		}
	}
	s.fail(w, r, http.StatusNotFound, "There is no such role", "The run has no role "+name(wanted)+".")
}

// sendWorkers answers with the newest points of each card.
func (s *Server) sendWorkers(w http.ResponseWriter, r *http.Request) {
	live, _, err := s.liveRows(r)
	if err != nil {
		s.fail(w, r, http.StatusBadGateway, "The runs cannot be listed", err.Error())
		return
	}
	charts, all := make(map[string][]curve), make([]*feed, len(live))
	for i, one := range live { // all are read at the same time
		f, release := s.feeds.open(one, ofCards)
		defer release()
		all[i] = f
	}
	for i, f := range all {
		if f.wait(r.Context()) == nil {
			charts[keyOf(live[i].Address)] = curvesOf(newestOf(f.set.All()), cardPoints)
		}
	}
	sendJSON(w, charts)
}

// newestOf returns the newest points of the series of cards.
func newestOf(all []*series.Series) []*series.Series {
	all = slices.DeleteFunc(all, func(c *series.Series) bool { return c.Role == "" || !slices.Contains(cardNames, c.Name) })
	for _, c := range all {
		c.Points = c.Points[max(0, len(c.Points)-cardPoints):]
	}
	return all
}

// streamWorkers sends roles and their new points.
func (s *Server) streamWorkers(w http.ResponseWriter, r *http.Request) {
	live, _, err := s.liveRows(r)
	if err != nil {
		s.fail(w, r, http.StatusBadGateway, "The runs cannot be listed", err.Error())
		return
	}
	type followed struct {
		row
		*feed
		*subscriber
	}
	all := make([]followed, 0, len(live))
	for _, one := range live {
		f, release := s.feeds.open(one, ofCards)
		defer release()
		sub := f.subscribe()
		defer f.unsubscribe(sub)
		all = append(all, followed{one, f, sub})
	}
	st, end := s.begin(w, r)
	defer end()
	st.keep(everyStatus, func() error {
		now := time.Now()
		rows, _, err := s.liveRows(r)
		if err != nil {
			return st.send("trouble", cleanText(err.Error(), longestText, true))
		}
		cards, _ := cardsOf(rows, now)
		roles := make([]liveRole, 0, len(cards))
		for _, c := range cards {
			roles = append(roles, liveRoleOf(c))
		}
		if err := st.send("roles", roles); err != nil {
			return err
		}
		charts := make(map[string][]curve)
		for _, one := range all {
			if fresh := one.drain(one.subscriber); fresh != nil {
				charts[keyOf(one.Address)] = curvesOf(newestOf(fresh.set.All()), newPoints)
			}
		}
		if len(charts) == 0 {
			return nil
		}
		return st.send("points", charts)
	})
}
