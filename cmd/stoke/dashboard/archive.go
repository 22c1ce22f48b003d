package dashboard

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/stokehq/stoke/plan/archive"
)

// sendArchive answers with all of a run in one file.
func (s *Server) sendArchive(w http.ResponseWriter, r *http.Request) {
	one, ok := s.findRun(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.zip"`, fileName(keyOf(one.Address))))
	err := archive.Write(r.Context(), w, archive.Content{
		Name: one.Address, Run: one.run, Configuration: one.Configuration, Clean: func(text string) string { return text },
	})
	if err != nil {
		panic(http.ErrAbortHandler) // the browser sees that the file is not whole
	}
}

// fileName returns a text with only those characters that every system allows in
// the name of a file.
func fileName(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, text), "._")
}
