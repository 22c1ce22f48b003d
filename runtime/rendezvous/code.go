package rendezvous

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/session"
)

// codeServer sends the snapshot of the program's code to agents.
type codeServer struct {
	folder run.Folder
	hash   string
	send   func() (ended func()) // session.Session.SendResult
	gone   func(context.Context) // is called where the snapshot is not there
}

func (s codeServer) get(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("hash") != s.hash {
		session.Refuse(w, http.StatusNotFound, "The run has other code", "It has the code "+s.hash+".")
		return
	}
	file, err := os.Open(s.folder.Code(s.hash))
	if err != nil {
		session.Refuse(w, http.StatusNotFound, "The code is not here", "It is written when the run is made; apply again.")
		if errors.Is(err, fs.ErrNotExist) {
			s.gone(r.Context())
		}
		return
	}
	defer file.Close()
	defer s.send()()
	info, err := file.Stat()
	if err != nil {
		session.Refuse(w, http.StatusInternalServerError, "The code cannot be read", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/x-tar")
	http.ServeContent(w, r, "", info.ModTime(), file)
}
