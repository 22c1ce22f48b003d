package coordinator

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
)

// results are the paths of the API for what a run has learned.
type results struct{ *coordinator }

// addTo adds the paths.
func (r results) addTo(mux *http.ServeMux) {
	mux.HandleFunc("GET "+api.PathLedger, func(w http.ResponseWriter, request *http.Request) {
		session.Answer(w, r.ledger(request.Context()))
	})
	mux.HandleFunc("GET "+api.PathModel, r.getModel)
}

// getModel streams the finished model.
func (r results) getModel(w http.ResponseWriter, request *http.Request) {
	c := r.coordinator
	name, m, err := r.newestFinal(request.Context())
	switch {
	case err != nil:
		session.Refuse(w, http.StatusServiceUnavailable, "The model cannot be read", err.Error())
		return
	case name == "":
		session.Refuse(w, http.StatusNotFound, "No finished model", "There is one once the run has succeeded: see "+api.PathStatus+".")
		return
	}
	defer c.session.SendResult()()
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil { // a request's; sending may take longer
		c.Log.Warn("sending the finished model may be cut short", "error", err)
	}
	w.Header().Set("Content-Type", "application/x-tar")
	if err := r.sendModel(request.Context(), w, name, m); err != nil {
		c.Log.Warn("cannot send the finished model", "error", err)
		panic(http.ErrAbortHandler) // so that the client sees that the stream is not whole
	}
}

// newestFinal looks for the newest finished model of the run that is whole;
// "": there is none.
func (r results) newestFinal(ctx context.Context) (string, checkpoint.Manifest, error) {
	names, err := r.Checkpoints.Names(ctx, spec.FinalPrefix)
	if err != nil {
		return "", checkpoint.Manifest{}, err
	}
	for _, name := range slices.Backward(names) {
		m, err := r.Checkpoints.Manifest(ctx, name)
		if checkpoint.Unusable(err) || err == nil && m.Run != r.session.Hash() {
			continue
		}
		ok := false
		if err == nil {
			ok, err = r.Checkpoints.Complete(ctx, name, m)
		}
		if ok || err != nil {
			return name, m, err
		}
	}
	return "", checkpoint.Manifest{}, nil
}

// sendModel writes a checkpoint as a tar stream of what a run's folder would
// have of it.
func (r results) sendModel(ctx context.Context, w io.Writer, name string, m checkpoint.Manifest) error {
	folder := path.Join(filepath.Base(r.Folder.Checkpoints()), name)
	out := tar.NewWriter(w)
	err := r.Checkpoints.Files(ctx, name, func(file string, size int64, in io.Reader) error {
		err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, file), Mode: 0o600, Size: size, ModTime: m.Saved})
		if err == nil {
			_, err = io.Copy(out, in)
		}
		return err
	})
	if err != nil {
		return err // without the mark of its end
	}
	return out.Close()
}

// ledger returns the committed records; of a run that this coordinator never
// restored, those of its finished model.
func (r results) ledger(ctx context.Context) spec.Ledger {
	c := r.coordinator
	var l *spec.Ledger
	c.session.Do(ctx, func() {
		if c.book != nil {
			whole, open := c.book.Save()
			l = &spec.Ledger{Records: c.records(), Step: c.version, Whole: whole, Epochs: open}
		}
	})
	if l != nil {
		return *l
	}
	name, m, err := r.newestFinal(ctx)
	if err != nil || name == "" {
		if err != nil && !errors.Is(err, context.Canceled) {
			c.Log.Warn("cannot read the finished model", "error", err)
		}
		return spec.Ledger{Step: c.session.Status().Step}
	}
	return spec.Ledger{Records: m.Records, Step: m.Step, Whole: m.Whole, Epochs: m.Ledger}
}
