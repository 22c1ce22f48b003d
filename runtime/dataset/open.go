package dataset

import (
	"context"
	"errors"
)

var errSoon = errors.New("not written yet")

// Open opens one split of a prepared folder.
func Open(path string, split Split) (Source, error) { return nil, errSoon }

// Prepare reads an origin and writes dir/train.rio, dir/test.rio and
// dir/manifest.json: all of them, or nothing.
func Prepare(ctx context.Context, from Origin, dir string, progress func(done, total int64)) (Manifest, error) {
	return Manifest{}, errSoon
}

// Inspect checks everything that Prepare would, without writing.
func Inspect(ctx context.Context, from Origin) (Manifest, error) { return Manifest{}, errSoon }
