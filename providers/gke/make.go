package gke

import (
	"context"
	"fmt"
	"maps"
	"strings"

	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// creation is how an object is made whose name is the caller's choice. It is looked
// for first; an existing one is adopted only if it carries the mark.
type creation[T, O any] struct {
	what   string                            // in messages: "disk"
	path   string                            // in its API
	get    func(context.Context) (*T, error) // nil if there is none
	markOf func(*T) string
	insert func(ctx context.Context, requestID string) (O, error)
	wait   func(context.Context, O) error
	ready  func(context.Context) error // waits where the operation is not known
}

// run makes the object, and calls started as soon as there is one.
func (k creation[T, O]) run(ctx context.Context, c *cloud.Cloud, mark string, started func()) error {
	there, err := k.get(ctx)
	if err != nil {
		return err
	}
	if there == nil {
		op, found, err := cloud.Make(ctx, c, func(ctx context.Context) (O, error) { return k.insert(ctx, cloud.Request(ctx, "insert "+k.path)) }, func(ctx context.Context) (bool, error) {
			var err error
			there, err = k.get(ctx)
			return there != nil, err
		})
		if err != nil {
			return err
		}
		if !found {
			started()
			return k.wait(ctx, op)
		}
	}
	if k.markOf(there) != mark {
		return foreignObject(k.what, k.path)
	}
	started()
	return k.ready(ctx)
}

// state is the status of an object that stoke waits for.
type state struct{ status, why string } // why is what the API says of a failure

// waitForState waits for an object with an unknown operation. look returns nil for a
// missing object.
func waitForState(ctx context.Context, c *cloud.Cloud, what, name, ready string, failed []string, look func(context.Context) (*state, error)) error {
	return c.WaitUntil(ctx, name, func(ctx context.Context) (bool, error) {
		now, err := look(ctx)
		switch {
		case err != nil:
			return false, cloud.UnknownResult(name, err)
		case now == nil:
			return false, fmt.Errorf("the %s %s could not be made, and is gone; apply again", what, last(name))
		}
		for _, f := range failed {
			if now.status == f {
				return false, fmt.Errorf("the %s %s is %s (%s): mend it in the Cloud Console, or delete it and apply again", what, last(name), f, firstNonEmpty(now.why, "Google does not say why"))
			}
		}
		cloud.ReportProgress(ctx, -1, "waiting for the %s %s: %s", what, last(name), strings.ToLower(now.status))
		return now.status == ready, nil
	})
}

// globally are the parts of the id of a global object of the compute API.
func globally(j job, id, collection, what string) (map[string]string, error) {
	parts := strings.Split(strings.Trim(id, "/"), "/")
	switch {
	case len(parts) == 5 && parts[0] == "projects" && parts[2] == "global" && parts[3] == collection:
		return map[string]string{"project": parts[1], "name": parts[4]}, nil
	case len(parts) == 2:
		return map[string]string{"project": parts[0], "name": parts[1]}, nil
	case len(parts) == 1 && parts[0] != "":
		return map[string]string{"project": j.cloud.Project, "name": parts[0]}, nil
	}
	return nil, fmt.Errorf("%q names no %s: give NAME, PROJECT/NAME, or projects/PROJECT/global/%s/NAME", id, what, collection)
}

// labelled is labels as they are, with the fingerprint that a change has to name.
type labelled struct {
	labels      map[string]string
	fingerprint string
}

// relabel replaces labels; the mark and Google's own are sent again. Labels and
// fingerprint are read each time, because a call that is repeated needs new ones.
func relabel(ctx context.Context, c *cloud.Cloud, what string, wanted map[string]string, now func(context.Context) (*labelled, error), set func(context.Context, labelled) (*compute.Operation, error)) error {
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*compute.Operation, error) {
		there, err := now(ctx)
		if err == nil && there == nil {
			err = fmt.Errorf("the %s is gone; the next plan recreates it", what)
		}
		if err != nil {
			return nil, err
		}
		labels := c.Relabel(there.labels, wanted)
		if maps.Equal(labels, there.labels) {
			return nil, nil // a call before this one got through
		}
		return set(ctx, labelled{labels, there.fingerprint})
	})
	if err != nil {
		return fmt.Errorf("label the %s: %w", what, err)
	}
	if op == nil {
		return nil
	}
	return c.WaitCompute(ctx, op, "labelling the "+what)
}
