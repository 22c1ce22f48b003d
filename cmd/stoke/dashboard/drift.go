package dashboard

import (
	"net/http"
)

// driftView is the drift of a run as pages show it.
type driftView struct {
	Message string `json:"message"`
	Kind    string `json:"kind"` // class of the message
	Text    string `json:"text"`
}

// sendDrift answers with what has changed outside of stoke since the last apply. A person
// asks for it: reading the real objects takes as long as their clusters do.
func (s *Server) sendDrift(w http.ResponseWriter, r *http.Request) {
	one, ok := s.findRun(w, r)
	if !ok {
		return
	}
	is, err := s.source.Drift(r.Context(), one.Address)
	if n := len(is.Text) - longestPlan; n > 0 {
		is.Text = "…" + is.Text[n:]
	}
	v := driftView{Text: cleanText(is.Text, len(is.Text), true)}
	switch {
	case err != nil:
		v.Kind, v.Message = "bad", cleanText("Not compared: "+err.Error()+".", longestText, true)
	case is.Objects == 0 && is.Warnings > 0:
		v.Kind, v.Message = "waiting", "No drift found, but not everything could be read."
	case is.Objects == 0:
		v.Kind, v.Message = "good", "No drift: the objects are as the last apply left them."
		v.Text = ""
	default:
		v.Kind, v.Message = "waiting", counted(int64(is.Objects), "object")+" changed outside of stoke since the last apply."
	}
	sendJSON(w, v)
}
