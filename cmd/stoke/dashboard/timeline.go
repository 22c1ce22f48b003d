package dashboard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers"
)

// eventOf returns an event as pages list it.
func eventOf(e providers.RunEvent) event {
	out := event{Time: e.Time, Clock: clock(e.Time), Type: name(e.Type), Step: e.Step, Message: cleanText(e.Message, longestText, false)}
	var parts []string
	if of := memberOf(e); of != nil {
		parts = append(parts, fmt.Sprintf("%s %d", out.Type, *of))
	}
	if e.Message != "" {
		parts = append(parts, out.Message)
	}
	for i, key := range slices.Sorted(maps.Keys(e.Values)) {
		if i == 12 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, name(key)+" "+number(e.Values[key]))
	}
	out.Message = strings.Join(parts, " · ")
	return out
}

// memberOf returns the index of the worker, or server, of an event; nil for none.
func memberOf(e providers.RunEvent) *int {
	if e.Type != "worker" && e.Type != "server" {
		return nil
	}
	return e.Worker
}

// count keeps the number of workers over time. Called with mu held.
func (o *feed) count(e providers.RunEvent) {
	of := memberOf(e)
	if e.Type != "worker" || of == nil {
		return
	}
	if strings.HasPrefix(e.Message, "joined") {
		o.present[*of] = true
	} else {
		delete(o.present, *of)
	}
	if len(o.workers) >= maxChange {
		o.workers = append(o.workers[:0], o.workers[len(o.workers)/4:]...)
	}
	o.workers = append(o.workers, change{e.Time, e.Step, len(o.present)})
}
