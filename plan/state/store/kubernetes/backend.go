package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/object"
)

// Labels of the Secrets and Leases. Terraform finds its states by the first
// three; what it must not take for a state has not the first one.
const (
	stateLabel     = "tfstate"
	suffixLabel    = "tfstateSecretSuffix"
	workspaceLabel = "tfstateWorkspace"
	managerLabel   = "app.kubernetes.io/managed-by"
	roleLabel      = "stokehq/role" // of what is stoke's alone
)

// Backend keeps states in a namespace. It is a backend.Backend.
type Backend struct {
	client *client
	suffix string
	labels map[string]string // that people want on everything
	timing object.Timing
	// largest is how many bytes one Secret takes.
	largest int
}

// Workspaces lists the workspaces that have a Secret, and the default one.
func (b *Backend) Workspaces(ctx context.Context) ([]string, error) {
	found := []string{backend.DefaultWorkspace}
	list, err := b.client.namesWith(ctx, selector(map[string]string{stateLabel: "true", suffixLabel: b.suffix}))
	if err != nil {
		return nil, fmt.Errorf("list the states in the namespace %s: %w", b.client.namespace, b.client.explainError(err))
	}
	for _, s := range list {
		workspace := s.Metadata.Labels[workspaceLabel]
		if workspace != "" && s.Metadata.Name == b.bucket(workspace).snapshot() {
			found = append(found, workspace)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func (b *Backend) bucket(workspace string) *bucket {
	return &bucket{client: b.client, workspace: workspace, suffix: b.suffix, extra: b.labels, largest: b.largest, parts: -1}
}

// Store is the store of a workspace.
func (b *Backend) Store(workspace string) (state.Store, error) {
	if err := checkName("the workspace", workspace); err != nil {
		return nil, err
	}
	k := b.bucket(workspace)
	return object.New(k, object.Layout{Snapshot: k.snapshot(), Lock: k.lock(), Journal: k.journal()}, b.timing), nil
}

// Add does nothing: a workspace is there once it has a Secret.
func (b *Backend) Add(context.Context, string) (bool, error) { return false, nil }

// Remove deletes a workspace's Secrets and its Lease, as far as that is
// allowed: one without a holder does no harm.
func (b *Backend) Remove(ctx context.Context, workspace string) error {
	k := b.bucket(workspace)
	if err := k.Delete(ctx, k.snapshot(), ""); err != nil {
		return fmt.Errorf("remove %s: %w", k.Name(k.snapshot()), err)
	}
	if err := b.client.remove(ctx, leases, k.lock(), ""); err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("remove %s: %w", k.Name(k.lock()), b.client.explainError(err))
	}
	return nil
}

// Close gives up connections.
func (b *Backend) Close() error {
	b.client.close()
	return nil
}

// selector asks for all of some labels.
func selector(labels map[string]string) string {
	terms := make([]string, 0, len(labels))
	for name, value := range labels {
		terms = append(terms, name+"="+value)
	}
	slices.Sort(terms)
	return strings.Join(terms, ",")
}
