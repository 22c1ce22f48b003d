package dashboard

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// firstWait bounds the time until a list of runs is painted. Statuses that take
// longer follow in the live data.
const firstWait = 600 * time.Millisecond

// showRuns answers with the list of runs.
func (s *Server) showRuns(w http.ResponseWriter, r *http.Request) {
	rows, err := s.board.rows(r.Context(), firstWait)
	if err != nil {
		s.fail(w, r, http.StatusBadGateway, "The runs cannot be listed", err.Error())
		return
	}
	views, now := make([]view, len(rows)), time.Now()
	counts := make(map[string]int)
	for i := range rows {
		views[i] = viewOf(&rows[i], now, false)
		counts[views[i].Kind]++
	}
	s.show(w, http.StatusOK, layout{Page: "runs", Title: "Runs", Body: map[string]any{
		"Runs": views, "Running": counts["running"], "Waiting": counts["waiting"], "Good": counts["good"], "Bad": counts["bad"],
	}})
}

// showRun answers with one run.
func (s *Server) showRun(w http.ResponseWriter, r *http.Request) {
	one, ok := s.findRun(w, r)
	if !ok {
		return
	}
	f, release := s.feeds.open(one, ofRun)
	defer release()
	problem := ""
	if err := f.wait(r.Context()); err != nil {
		problem = cleanText(err.Error(), longestText, true)
	}
	events, left, _, _ := f.timeline()
	var checkpoints []event
	for _, e := range events {
		if e.Type == "checkpoint" {
			checkpoints = append(checkpoints, e)
		}
	}
	slices.Reverse(events)
	slices.Reverse(checkpoints)
	s.show(w, http.StatusOK, layout{Page: "run", Title: shortName(one.Address), Body: map[string]any{
		"Run": viewOf(&one, time.Now(), true), "Settings": settingsOf(one.Configuration), "Events": events[:min(len(events), 200)],
		"Left": left + max(0, len(events)-200), "Checkpoints": checkpoints[:min(len(checkpoints), 50)], "Problem": problem,
		"Live": one.isLive(), "Change": changeText(one.status.Change), "Trouble": troubles(events),
	}})
}

// troubles returns the newest events about something that did not go as it should, of a
// list with the newest first.
func troubles(events []event) (found []event) {
	for _, e := range events {
		isTrouble := e.Type == "restore" || e.Type == "damage" || e.Type == "gpu" || e.Type == "server"
		if e.Type == "worker" && !strings.Contains(e.Message, "joined") {
			isTrouble = true
		}
		if isTrouble && len(found) < 50 {
			found = append(found, e)
		}
	}
	return found
}

// maxCompared is the number of runs on one chart.
const maxCompared = 10

// showCompare answers with several runs next to each other.
func (s *Server) showCompare(w http.ResponseWriter, r *http.Request) {
	rows, err := s.board.rows(r.Context(), firstWait)
	if err != nil {
		s.fail(w, r, http.StatusBadGateway, "The runs cannot be listed", err.Error())
		return
	}
	wanted := r.URL.Query()["run"]
	var views []view
	var settings []map[string]string
	now := time.Now()
	for i := range rows {
		if slices.Contains(wanted, keyOf(rows[i].Address)) && len(views) < maxCompared {
			views = append(views, viewOf(&rows[i], now, false))
			settings = append(settings, rows[i].Configuration)
		}
	}
	s.show(w, http.StatusOK, layout{Page: "compare", Title: "Compare", Body: map[string]any{
		"Runs": views, "Different": differences(settings), "Left": max(0, len(wanted)-len(views)), "Most": maxCompared,
	}})
}

// difference is one argument that not all runs have in common.
type difference struct {
	Path   string
	Values []string
}

// differences returns the arguments that differ between configurations.
func differences(settings []map[string]string) []difference {
	var paths []string
	for _, all := range settings {
		for path := range all {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	var found []difference
	for _, path := range slices.Compact(paths) {
		d := difference{Path: name(path)}
		isSame := true
		for _, all := range settings {
			text, ok := all[path]
			if !ok {
				text = "–"
			}
			text = cleanText(text, longestText, false)
			d.Values = append(d.Values, text)
			isSame = isSame && text == d.Values[0]
		}
		if !isSame {
			found = append(found, d)
		}
	}
	return found
}
