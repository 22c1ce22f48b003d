package storetest

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/stokehq/stoke/plan/state"
)

// Web is one state as a server of Terraform's http protocol keeps it, at
// /state with its lock at /lock. It is strict: it refuses what such servers
// refuse.
type Web struct {
	ETags          bool // gives ETags and minds If-Match
	User, Password string

	mu     sync.Mutex
	body   []byte
	number int // of the content
	lock   *state.LockInfo
}

// ServeHTTP answers one request.
func (s *Web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if user, password, _ := r.BasicAuth(); user != s.User || password != s.Password {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/lock" {
		s.locking(w, r, body)
		return
	}
	if r.URL.Path != "/state" {
		http.NotFound(w, r)
		return
	}
	if s.ETags && s.body != nil {
		w.Header().Set("ETag", s.tag())
	}
	switch r.Method {
	case http.MethodGet:
		if s.body == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(s.body)
	case http.MethodPost, http.MethodDelete:
		s.write(w, r, body)
	default:
		http.Error(w, "", http.StatusMethodNotAllowed)
	}
}

// Holder is who has the lock, nil when nobody has.
func (s *Web) Holder() *state.LockInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lock
}

func (s *Web) tag() string { return fmt.Sprintf(`"v%d"`, s.number) }

func (s *Web) write(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Method == http.MethodPost {
		sum := md5.Sum(body)
		if r.Header.Get("Content-MD5") != base64.StdEncoding.EncodeToString(sum[:]) || !json.Valid(body) {
			http.Error(w, "damaged", http.StatusBadRequest)
			return
		}
		if s.lock != nil && r.URL.Query().Get("ID") != s.lock.ID {
			http.Error(w, "locked", http.StatusLocked)
			return
		}
	}
	if m := r.Header.Get("If-Match"); s.ETags && m != "" && m != s.tag() {
		http.Error(w, "", http.StatusPreconditionFailed)
		return
	}
	s.number++
	s.body = nil
	if r.Method == http.MethodPost {
		s.body = body
	}
	if s.ETags {
		w.Header().Set("ETag", s.tag())
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Web) locking(w http.ResponseWriter, r *http.Request, body []byte) {
	var info state.LockInfo
	if json.Unmarshal(body, &info) != nil || info.ID == "" {
		http.Error(w, "no lock info", http.StatusBadRequest)
		return
	}
	switch {
	case r.Method != "LOCK" && r.Method != "UNLOCK":
		http.Error(w, "", http.StatusMethodNotAllowed)
	case s.lock != nil && s.lock.ID != info.ID, r.Method == "LOCK" && s.lock != nil:
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(s.lock.JSON())
	case r.Method == "LOCK":
		s.lock = &info
	default:
		s.lock = nil
	}
}
