package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stokehq/stoke/plan/state"
)

// SplitStore is a store that reads the state in one file and writes it into another,
// which it locks: what -state and -state-out say together. The file that is
// read stays as it is.
type SplitStore struct {
	*Store
	in *Store
}

// NewOut is a store that reads at in and writes at out.
func NewOut(in, out string) (*SplitStore, error) {
	from, err := New(in)
	if err != nil {
		return nil, err
	}
	to, err := New(out)
	if err != nil {
		return nil, err
	}
	return &SplitStore{Store: to, in: from}, nil
}

// ReadSnapshot reads the one file; the version is that of the other, which is
// the one to be replaced.
func (o *SplitStore) ReadSnapshot(ctx context.Context) ([]byte, string, error) {
	_, version, err := o.Store.ReadSnapshot(ctx)
	if err != nil {
		return nil, "", err
	}
	data, _, err := o.in.ReadSnapshot(ctx)
	return data, version, err
}

// ReadJournal makes sure that no run has left something to be settled, on
// either side: it would have to be done where it was begun.
func (o *SplitStore) ReadJournal(ctx context.Context) ([]byte, error) {
	for _, s := range []*Store{o.in, o.Store} {
		log, err := s.ReadJournal(ctx)
		if err != nil {
			return nil, err
		}
		if log != nil {
			return nil, fmt.Errorf("%s is there: a run on %s was cut short. Let a run with -state=%s and without -state-out finish it first", s.journal, s.path, s.path)
		}
	}
	return nil, nil
}

// Lock locks the file that is written.
func (o *SplitStore) Lock(ctx context.Context, info state.LockInfo) (state.Lock, error) {
	return o.Store.Lock(ctx, info)
}

// Retire sets the snapshot aside as the backup, once the state lives
// elsewhere.
func (s *Store) Retire(context.Context) error {
	if err := os.Rename(s.path, s.path+".backup"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.syncDir(filepath.Dir(s.path))
}
