package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers"
)

// ledgerView is the ledger of a run as pages show it.
type ledgerView struct {
	Message string     `json:"message"`
	Exact   bool       `json:"exact"` // the status has the same number of records
	Epochs  [][]string `json:"epochs"`
	Leases  [][]string `json:"leases"`
	About   string     `json:"about"` // the updates of the leases
}

// Bounds of a ledger on a page.
const (
	maxEpochs  = 20
	maxLeases  = 200
	ledgerWait = 5 * time.Second
)

// sendLedger answers with the records that a run has committed, and the newest leases.
func (s *Server) sendLedger(w http.ResponseWriter, r *http.Request) {
	one, ok := s.findRun(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), ledgerWait)
	defer cancel()
	known, ok := one.run.(providers.RunAccountant)
	is, err := providers.RunLedger{}, providers.ErrNoLedger
	if ok {
		is, err = known.Ledger(ctx)
	}
	switch {
	case errors.Is(err, providers.ErrNoLedger), errors.Is(err, providers.ErrNoRun):
		sendJSON(w, ledgerView{Message: "No ledger: stoke keeps none for a program, or the coordinator cannot be reached now."})
		return
	case err != nil:
		sendJSON(w, ledgerView{Message: cleanText("The ledger cannot be read: "+err.Error(), longestText, false)})
		return
	}
	sendJSON(w, ledgerOf(is, one.status.Metrics["records"], one.isLive()))
}

// ledgerOf returns a ledger for a page. records is the number of committed records by the
// status; a live run commits more between the two answers.
func ledgerOf(is providers.RunLedger, records float64, isLive bool) ledgerView {
	v := ledgerView{Epochs: [][]string{}, Leases: [][]string{}}
	committed := is.Committed()
	v.Exact = !isLive && float64(committed) == records
	v.Message = fmt.Sprintf("At step %s: %s records committed, each once in an epoch of %s. ",
		integer(is.Step), integer(committed), integer(is.Records))
	switch {
	case v.Exact:
		v.Message += "The status has the same number."
	case isLive:
		v.Message += "The run goes on."
	default:
		v.Message += "The status has " + number(records) + ": updates after the newest checkpoint are not in its ledger."
	}
	if is.Whole > 0 {
		v.Epochs = append(v.Epochs, []string{epochs(is.Whole), integer(is.Records), integer(is.Records), "0", "1"})
	}
	for _, p := range is.Parts[:min(len(is.Parts), maxEpochs)] {
		v.Epochs = append(v.Epochs, []string{integer(int64(p.Epoch + 1)), integer(p.Committed), integer(is.Records),
			integer(is.Records - p.Committed), integer(int64(p.Ranges))})
	}
	for _, l := range is.Leases[:min(len(is.Leases), maxLeases)] {
		v.Leases = append(v.Leases, []string{fmt.Sprintf("worker-%d", l.Worker), integer(l.Leases), integer(l.Records), integer(l.Again)})
	}
	if is.Updates > 0 {
		v.About = fmt.Sprintf("Leases of %s updates from step %s on.", integer(is.Updates), integer(is.First))
	}
	return v
}

// epochs returns the numbers of the first n epochs, counted from 1.
func epochs(n int) string {
	if n == 1 {
		return "1"
	}
	return "1 to " + integer(int64(n))
}

// changeText returns the newest change of a run's arguments for people.
func changeText(c *providers.RunChange) string {
	if c == nil {
		return "none since the run began: it is a new run"
	}
	fields := make([]string, 0, len(c.Fields))
	for i, f := range c.Fields {
		if i == 8 {
			fields = append(fields, fmt.Sprintf("and %d more", len(c.Fields)-i))
			break
		}
		fields = append(fields, name(f))
	}
	return fmt.Sprintf("%s, %s: %s", name(c.Class), clock(c.At), strings.Join(fields, ", "))
}
