package kubernetes

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/stokehq/stoke/plan/state/store/object"
)

// bucket is what belongs to one workspace. It is an object.Bucket: the
// snapshot and the journal's segments are Secrets, the lock is a Lease, and
// versions are their resource versions.
type bucket struct {
	client            *client
	workspace, suffix string
	extra             map[string]string // labels
	largest           int               // bytes in one Secret

	mu    sync.Mutex
	parts int  // of Terraform's beside the snapshot; -1: not known
	clean bool // a large snapshot has left no rest
}

func (b *bucket) snapshot() string { return "tfstate-" + b.workspace + "-" + b.suffix }

func (b *bucket) lock() string { return "lock-" + b.snapshot() }

func (b *bucket) journal() string { return "stoke-journal-" + b.workspace + "-" + b.suffix + "." }

// Name is what people call an object.
func (b *bucket) Name(key string) string {
	what := "Secret "
	if key == b.lock() {
		what = "Lease "
	}
	return what + b.client.namespace + "/" + strings.TrimSuffix(key, ".")
}

// Get reads an object.
func (b *bucket) Get(ctx context.Context, key string) (data []byte, version string, err error) {
	switch key {
	case b.lock():
		data, version, err = b.getLock(ctx)
	case b.snapshot():
		data, version, err = b.getSnapshot(ctx)
	default:
		data, version, err = b.getSegment(ctx, key)
	}
	return data, version, b.client.explainError(err)
}

// Put writes an object on condition.
func (b *bucket) Put(ctx context.Context, key string, data []byte, ifVersion string) (version string, err error) {
	switch key {
	case b.lock():
		version, err = b.putLock(ctx, data, ifVersion)
	case b.snapshot():
		version, err = b.putSnapshot(ctx, data, ifVersion)
	default:
		version, err = b.putSegment(ctx, key, data, ifVersion)
	}
	return version, b.client.explainError(err)
}

// Delete removes an object on condition.
func (b *bucket) Delete(ctx context.Context, key, ifVersion string) (err error) {
	switch key {
	case b.lock():
		err = b.freeLock(ctx, ifVersion)
	case b.snapshot():
		err = b.deleteSnapshot(ctx, ifVersion)
	default:
		err = conflicting(b.client.remove(ctx, secrets, key, ifVersion))
	}
	return b.client.explainError(err)
}

// List names the journal's segments, and what belongs to them.
func (b *bucket) List(ctx context.Context, prefix string, _ bool) ([]string, error) {
	list, err := b.client.namesWith(ctx, selector(b.roleLabels(journalRole)))
	if err != nil {
		return nil, b.client.explainError(err)
	}
	var keys []string
	for _, s := range list {
		if strings.HasPrefix(s.Metadata.Name, prefix) {
			keys = append(keys, s.Metadata.Name)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// Roles of Secrets that only stoke uses.
const (
	journalRole = "journal"
	restRole    = "rest" // of a snapshot that is being written
)

// roleLabels returns the labels that identify Secrets of a role.
func (b *bucket) roleLabels(role string) map[string]string {
	return map[string]string{roleLabel: role, suffixLabel: b.suffix, workspaceLabel: b.workspace}
}

// stateLabels returns the labels that Terraform uses to find a state.
func (b *bucket) stateLabels() map[string]string {
	return map[string]string{stateLabel: "true", suffixLabel: b.suffix, workspaceLabel: b.workspace}
}

// labelled adds the labels that people want, and who manages an object.
func (b *bucket) labelled(labels map[string]string, manager string) map[string]string {
	all := map[string]string{}
	for name, value := range b.extra {
		all[name] = value
	}
	for name, value := range labels {
		all[name] = value
	}
	all[managerLabel] = manager
	return all
}

var _ object.Bucket = (*bucket)(nil)
