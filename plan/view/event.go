package view

import "github.com/stokehq/stoke/plan"

// doing holds the words for an action that begins, goes on and ends.
type doing struct{ begins, goesOn, done string }

func wordsFor(a plan.Action) doing {
	switch a {
	case plan.Update:
		return doing{"Modifying...", "Still modifying", "Modifications"}
	case plan.Delete:
		return doing{"Destroying...", "Still destroying", "Destruction"}
	case plan.Read:
		return doing{"Reading...", "Still reading", "Read"}
	}
	return doing{"Creating...", "Still creating", "Creation"}
}

// eventText is an event in words, without its address.
func eventText(e plan.Event) string {
	w := wordsFor(e.Action)
	switch e.Kind {
	case plan.Importing:
		return e.Text + idText(e.ID)
	case plan.RefreshStart:
		return "Refreshing state..." + idText(e.ID)
	case plan.RefreshDone:
		return "Refresh complete" + idText(e.ID)
	case plan.ReadStart, plan.ApplyStart:
		return w.begins + idText(e.ID)
	case plan.ReadDone, plan.ApplyDone:
		text := w.done + " complete after " + elapsed(e.Elapsed)
		if e.Action != plan.Delete {
			text += idText(e.ID)
		}
		return text
	case plan.ApplyFailed:
		return w.done + " failed after " + elapsed(e.Elapsed)
	case plan.ApplyProgress:
		if text := progressText(e.Progress); text != "" {
			return text
		}
		return e.Progress.Line
	}
	return e.Text
}
