package http

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/stokehq/stoke/plan/state"
)

// Store keeps a state in one document. It is a state.Store.
type Store struct {
	client *client
	name   string // for people
	held   *lock  // nil: no lock is held

	doc   document
	etag  string // of doc on the server; "" where it gives none
	known bool   // doc is what the server was last seen with
}

// Names are for people: the journal is in the document too.
func (s *Store) Names() (snapshot, journal string) { return s.name, s.name + " (its journal)" }

// read fetches the document.
func (s *Store) read(ctx context.Context) error {
	r := request{method: http.MethodGet, address: s.client.config.address, what: "read"}
	a, err := s.client.do(ctx, r)
	if err != nil {
		return err
	}
	s.doc, s.etag = document{}, ""
	switch a.status {
	case http.StatusOK:
		if bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("<")) {
			return fmt.Errorf("read state: GET %s: the server answers with a web page in place of a state; check the "+
				"address, and whether a login or proxy answers instead", s.name)
		}
		if len(a.body) > 0 { // an empty answer is how some servers say that there is none
			if s.doc, err = decodeDocument(a.body); err != nil {
				return &state.CorruptError{Path: s.name, Reason: err.Error()}
			}
		}
		s.etag = a.etag
	case http.StatusNoContent, http.StatusNotFound:
	default:
		return refusal(r, a)
	}
	s.known = true
	return nil
}

// ReadSnapshot fetches the document.
func (s *Store) ReadSnapshot(ctx context.Context) ([]byte, string, error) {
	if err := s.read(ctx); err != nil {
		return nil, "", err
	}
	return s.doc.snapshot, version(s.doc.snapshot), nil
}

// ReadJournal returns the journal of the document that ReadSnapshot has read,
// so that the two belong together.
func (s *Store) ReadJournal(ctx context.Context) ([]byte, error) {
	if !s.known {
		if err := s.read(ctx); err != nil {
			return nil, err
		}
	}
	return s.doc.journal, nil
}

// WriteSnapshot replaces the snapshot and leaves the journal beside it.
func (s *Store) WriteSnapshot(ctx context.Context, data []byte, ifVersion string) (string, error) {
	if err := s.current(ctx); err != nil {
		return "", err
	}
	if version(s.doc.snapshot) != ifVersion {
		return "", &state.ConflictError{Path: s.name}
	}
	if err := s.write(ctx, document{snapshot: data, journal: s.doc.journal}); err != nil {
		return "", err
	}
	return version(data), nil
}

// Append puts records into the journal, which costs a transfer of the whole
// document.
func (s *Store) Append(ctx context.Context, at int64, records []byte, _ bool) error {
	if err := s.current(ctx); err != nil {
		return err
	}
	have := int64(len(s.doc.journal))
	switch {
	case at == 0 && have > 0:
		return fmt.Errorf("begin journal of %s: there is one already", s.name)
	case at > have:
		return fmt.Errorf("append to journal of %s: it is %d bytes long, and was %d when it was read", s.name, have, at)
	case at == have && len(records) == 0 && s.doc.journal != nil:
		return nil
	}
	journal := append(append(make([]byte, 0, int(at)+len(records)), s.doc.journal[:at]...), records...)
	return s.write(ctx, document{snapshot: s.doc.snapshot, journal: journal})
}

// DropJournal takes the journal out of the document.
func (s *Store) DropJournal(ctx context.Context) error {
	if err := s.current(ctx); err != nil {
		return err
	}
	if s.doc.journal == nil {
		return nil
	}
	return s.write(ctx, document{snapshot: s.doc.snapshot})
}

// current makes sure that the document is the one on the server, so that it
// may be replaced. Where neither a lock nor the server's conditions say so, it
// is fetched again and compared, which leaves a moment for others.
func (s *Store) current(ctx context.Context) error {
	if !s.known {
		return s.read(ctx)
	}
	if s.etag != "" || s.held != nil {
		return nil
	}
	before := s.doc
	if err := s.read(ctx); err != nil {
		return err
	}
	if !bytes.Equal(before.snapshot, s.doc.snapshot) || !bytes.Equal(before.journal, s.doc.journal) {
		return &state.ConflictError{Path: s.name}
	}
	return nil
}

// write replaces the document, if it is the one that was last seen.
func (s *Store) write(ctx context.Context, d document) error {
	text, err := d.encode()
	if err != nil {
		return fmt.Errorf("write %s: %w", s.name, err)
	}
	r := request{method: s.client.config.update, address: s.updateAddress(), body: text, etag: s.etag, what: "write"}
	if text == nil {
		r.method = http.MethodDelete
	}
	a, err := s.client.do(ctx, r)
	if err != nil {
		s.known = s.held != nil && s.etag == "" // what the server has is not known; the lock says that it is ours
		return err
	}
	switch a.status {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		s.doc, s.etag, s.known = d, a.etag, true
		return nil
	case http.StatusPreconditionFailed:
		return s.settle(ctx, d, text)
	case http.StatusConflict, http.StatusLocked:
		return &state.LostLockError{Path: s.name, Reason: fmt.Sprintf("the server refuses what is written under it (%d)", a.status)}
	}
	return refusal(r, a)
}

// settle finds out after a refused condition whether it was our own write,
// repeated because its answer was lost, that changed the document.
func (s *Store) settle(ctx context.Context, d document, text []byte) error {
	if err := s.read(ctx); err != nil {
		return err
	}
	now, err := s.doc.encode()
	if err == nil && bytes.Equal(now, text) {
		return nil
	}
	return &state.ConflictError{Path: s.name}
}

// updateAddress names the lock under which is written, as the protocol wants.
func (s *Store) updateAddress() string {
	address := s.client.config.address
	if s.held == nil || s.held.info.ID == "" {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	q := u.Query()
	q.Set("ID", s.held.info.ID)
	u.RawQuery = q.Encode()
	return u.String()
}
