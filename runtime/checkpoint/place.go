package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stokehq/stoke/runtime/pattern"
)

// Place is where a run's checkpoints lie: a folder or a bucket. Its methods may
// be called by several goroutines and processes.
type Place struct {
	storage
	address string
}

// String is the place's address, for people.
func (p *Place) String() string { return p.address }

// storage keeps objects under keys "checkpoint/name".
type storage interface {
	// put begins an object. Nobody sees any of it before commit, nor ever when
	// it is aborted.
	put(ctx context.Context, key string) (object, error)
	// claim makes an object that is not there yet; false: it is.
	claim(ctx context.Context, key string) (ok bool, err error)
	// open reads an object; the error is fs.ErrNotExist where there is none.
	open(ctx context.Context, key string) (in io.ReadCloser, size int64, err error)
	// list gives all keys with the prefix and their sizes, in no order.
	list(ctx context.Context, prefix string) (map[string]int64, error)
	// remove makes an object absent; that it is already is no error.
	remove(ctx context.Context, key string) error
	close() error
}

// object is one that is being written. Of commit and abort, only the first call
// has an effect.
type object interface {
	io.Writer
	commit() error
	abort()
}

// Close lets connections go.
func (p *Place) Close() error { return p.close() }

// names are what checkpoints and their parts may be called, wherever they lie.
var names = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// valid refuses names that could lead elsewhere.
func valid(all ...string) error {
	for _, name := range all {
		if !names.MatchString(name) {
			return fmt.Errorf("%q is not a name of a checkpoint or its parts", name)
		}
	}
	return nil
}

var errDone = errors.New("the object is written or given up already")
