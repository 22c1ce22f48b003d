package workload

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// Pauses between two tries to open data.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 5 * time.Second
)

// OpenPatiently is Open, except that it waits for data that it cannot read: a
// file system may be away for a while. It waits for missing data only with begun,
// of a run that has read them before. It returns the last error of Open after
// patience, or once ctx is done.
func OpenPatiently(ctx context.Context, s *spec.Spec, patience time.Duration, begun bool, log *slog.Logger) (*Workload, error) {
	late := time.Now().Add(patience)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		w, err := Open(s)
		var data DataError
		switch {
		case err == nil:
			return w, nil
		case !errors.As(err, &data) || data.Fault != spec.FaultData,
			errors.Is(err, fs.ErrNotExist) && !begun,
			time.Now().Add(pause).After(late):
			return nil, err
		}
		log.Warn("the data cannot be read; trying again", "error", err, "in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}
