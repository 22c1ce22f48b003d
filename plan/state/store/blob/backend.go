package blob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/object"
)

// names is how a kind of backend calls the snapshots in a bucket.
type names struct {
	// snapshot is the name of a workspace's snapshot, and lock that of its
	// lock, "" for none.
	snapshot, lock func(workspace string) string
	// workspace finds the workspace of a snapshot's name; "" for other names.
	workspace func(key string) string
	// prefix is what the names of snapshots of workspaces begin with.
	prefix  string
	shallow bool // no name has a slash after the prefix
}

// patience is how often a request is tried, and how long the pauses between
// are.
type patience struct {
	attempts    int
	first, most time.Duration
}

// usually rides out what clouds do for some seconds now and then.
var usually = patience{attempts: 6, first: 300 * time.Millisecond, most: 10 * time.Second}

// withPatience opens a backend as it is used; tests are less patient.
func withPatience(open func(context.Context, backend.Config, patience) (backend.Backend, error)) func(context.Context, backend.Config) (backend.Backend, error) {
	return func(ctx context.Context, c backend.Config) (backend.Backend, error) { return open(ctx, c, usually) }
}

// Backend keeps states in a bucket. It is a backend.Backend.
type Backend struct {
	bucket object.Bucket
	names  names
	close  func() error
	timing object.Timing
}

// Workspaces lists the workspaces that have a snapshot, and the default one.
func (b *Backend) Workspaces(ctx context.Context) ([]string, error) {
	keys, err := b.bucket.List(ctx, b.names.prefix, b.names.shallow)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", b.bucket.Name(b.names.prefix), err)
	}
	found := []string{backend.DefaultWorkspace}
	for _, key := range keys {
		if w := b.names.workspace(key); w != "" && w != backend.DefaultWorkspace {
			found = append(found, w)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Store is the store of a workspace.
func (b *Backend) Store(workspace string) (state.Store, error) {
	if err := backend.CheckWorkspace(workspace); err != nil {
		return nil, fmt.Errorf("workspace %q: %w", workspace, err)
	}
	key := b.names.snapshot(workspace)
	layout := object.Layout{Snapshot: key, Lock: b.names.lock(workspace), Journal: key + ".journal/"}
	return object.New(b.bucket, layout, b.timing), nil
}

// Add does nothing: a workspace is there once it has a snapshot.
func (b *Backend) Add(context.Context, string) (bool, error) { return false, nil }

// Remove deletes a workspace's snapshot.
func (b *Backend) Remove(ctx context.Context, workspace string) error {
	key := b.names.snapshot(workspace)
	if err := b.bucket.Delete(ctx, key, ""); err != nil {
		return fmt.Errorf("remove %s: %w", b.bucket.Name(key), err)
	}
	return nil
}

// Close gives up connections.
func (b *Backend) Close() error { return b.close() }

// isSnapshot tells whether a key names a snapshot: whether its absence is
// worth a second look.
func isSnapshot(key string) bool {
	return !strings.Contains(key, ".journal/") && !strings.HasSuffix(key, ".tflock")
}
