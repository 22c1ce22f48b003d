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
	"github.com/stokehq/stoke/runtime/spec"
)

// getModel streams the finished model.
func (c *coordinator) getModel(w http.ResponseWriter, r *http.Request) {
	name, m, err := c.newestFinal(r.Context())
	switch {
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, "The model cannot be read", err.Error())
		return
	case name == "":
		refuse(w, http.StatusNotFound, "No finished model", "There is one once the run has succeeded: see "+api.PathStatus+".")
		return
	}
	c.sending.Add(1)
	defer c.sending.Add(-1)
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil { // a request's; sending may take longer
		c.Log.Warn("sending the finished model may be cut short", "error", err)
	}
	w.Header().Set("Content-Type", "application/x-tar")
	if err := c.sendModel(r.Context(), w, name, m); err != nil {
		c.Log.Warn("cannot send the finished model", "error", err)
		panic(http.ErrAbortHandler) // so that the client sees that the stream is not whole
	}
}

// newestFinal looks for the newest finished model of the run that is whole;
// "": there is none.
func (c *coordinator) newestFinal(ctx context.Context) (string, checkpoint.Manifest, error) {
	names, err := c.Checkpoints.Names(ctx, spec.FinalPrefix)
	if err != nil {
		return "", checkpoint.Manifest{}, err
	}
	for _, name := range slices.Backward(names) {
		m, err := c.Checkpoints.Manifest(ctx, name)
		if checkpoint.Unusable(err) || err == nil && m.Run != c.hash {
			continue
		}
		ok := false
		if err == nil {
			ok, err = c.Checkpoints.Complete(ctx, name, m)
		}
		if ok || err != nil {
			return name, m, err
		}
	}
	return "", checkpoint.Manifest{}, nil
}

// sendModel writes a checkpoint as a tar stream of what a run's folder would
// have of it.
func (c *coordinator) sendModel(ctx context.Context, w io.Writer, name string, m checkpoint.Manifest) error {
	folder := path.Join(filepath.Base(c.Folder.Checkpoints()), name)
	out := tar.NewWriter(w)
	err := c.Checkpoints.Files(ctx, name, func(file string, size int64, in io.Reader) error {
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

// postCollected ends lingering.
func (c *coordinator) postCollected(w http.ResponseWriter, _ *http.Request) {
	if !c.status.Load().Phase.Final() {
		refuse(w, http.StatusConflict, "The run is not over", "Ask again once its phase is final, or stop it with "+api.PathStop+".")
		return
	}
	c.collecting.Do(func() { close(c.collected) })
	answer(w, struct{}{})
}

// ledger is what has been committed; of a run that this coordinator never
// restored, what its finished model says.
func (c *coordinator) ledger(ctx context.Context) spec.Ledger {
	if c.book != nil {
		whole, open := c.book.Save()
		return spec.Ledger{Records: c.records(), Step: c.version, Whole: whole, Epochs: open}
	}
	name, m, err := c.newestFinal(ctx)
	if err != nil || name == "" {
		if err != nil && !errors.Is(err, context.Canceled) {
			c.Log.Warn("cannot read the finished model", "error", err)
		}
		return spec.Ledger{Step: c.status.Load().Step}
	}
	return spec.Ledger{Records: m.Records, Step: m.Step, Whole: m.Whole, Epochs: m.Ledger}
}
