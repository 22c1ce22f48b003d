package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/container/apiv1/containerpb"
	compute "google.golang.org/api/compute/v1"
	file "google.golang.org/api/file/v1"

	"github.com/stokehq/stoke/providers"
)

// RunningError: an operation continues after the time limit, after the user asked to
// stop, or without a right to read it. The next apply continues to wait.
type RunningError struct {
	Operation string
	Err       error // of the look that failed; nil where time was over
}

func (e *RunningError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the operation %s was begun, and its status cannot be read: %v Apply again to continue "+
			"waiting", e.Operation, e.Err)
	}
	return fmt.Sprintf("the operation %s is still running; apply again to go on waiting, or give more time in timeouts", e.Operation)
}

func (e *RunningError) Unwrap() error { return e.Err }

// UnknownResult is the error of an operation that has begun and cannot be read, so that
// its result is unknown; nil stays nil.
func UnknownResult(name string, err error) error {
	if running := new(RunningError); err == nil || errors.As(err, &running) {
		return err
	}
	return &RunningError{name, err}
}

// WaitUntil looks at something until it is done. A time limit, or the first Ctrl-C,
// makes a RunningError of it.
func (c *Cloud) WaitUntil(ctx context.Context, name string, look func(context.Context) (done bool, err error)) error {
	stopping := providers.CallFrom(ctx).Stopping
	w := waits{pace: c.pace}
	for {
		looking, end := c.Stoppable(ctx)
		done, err := look(looking)
		cut := err != nil && Interrupted(looking) != nil
		end()
		kind := KindOf(err)
		switch {
		case ctx.Err() != nil || cut:
			return &RunningError{Operation: name}
		case kind == Ambiguous || kind == Busy: // it continues, whether or not stoke can read it
			ReportProgress(ctx, -1, "%s cannot be read: %v; trying again", name, err)
		case err != nil || done:
			return err
		}
		select {
		case <-stopping:
			return &RunningError{Operation: name}
		default:
		}
		if w.pause(ctx) != nil {
			return &RunningError{Operation: name}
		}
	}
}

// Wait waits for an operation of the container API and tells its progress.
func (c *Cloud) Wait(ctx context.Context, op *containerpb.Operation, what string) error {
	name := fmt.Sprintf("projects/%s/locations/%s/operations/%s", c.Project, locationOf(op), op.GetName())
	return c.WaitUntil(ctx, op.GetName(), func(ctx context.Context) (bool, error) {
		now, err := Read(ctx, c, func(ctx context.Context) (*containerpb.Operation, error) {
			return c.Clusters.GetOperation(ctx, &containerpb.GetOperationRequest{Name: name})
		})
		if err != nil {
			return false, UnknownResult(op.GetName(), err)
		}
		if now.GetStatus() != containerpb.Operation_DONE {
			stage, percent := progress(now)
			ReportProgress(ctx, percent, "%s: %s", what, stage)
			return false, nil
		}
		return true, failure(now)
	})
}

func locationOf(op *containerpb.Operation) string {
	if op.GetLocation() != "" {
		return op.GetLocation()
	}
	return op.GetZone() // old answers have nothing else
}

// progress is the stage of an operation that is under way, and how far it has come.
func progress(op *containerpb.Operation) (stage string, percent float64) {
	stage, percent = strings.ToLower(op.GetStatus().String()), -1
	p := op.GetProgress()
	if p == nil {
		return stage, percent
	}
	for _, s := range p.GetStages() {
		if s.GetStatus() == containerpb.Operation_RUNNING && s.GetName() != "" {
			stage = s.GetName()
		}
	}
	var done, all float64
	for _, m := range slices.Concat(p.GetMetrics(), stageMetrics(p)) {
		n, word := amount(m), strings.ToUpper(m.GetName())
		switch {
		case strings.HasSuffix(word, "_TOTAL") || strings.HasSuffix(word, "TOTAL"):
			all += n
		default:
			done += n
			if stage == "running" && n > 0 {
				stage = m.GetName()
			}
		}
	}
	if all > 0 {
		percent = min(100, 100*done/all)
	}
	return stage, percent
}

func stageMetrics(p *containerpb.OperationProgress) (all []*containerpb.OperationProgress_Metric) {
	for _, s := range p.GetStages() {
		all = append(all, s.GetMetrics()...)
	}
	return all
}

func amount(m *containerpb.OperationProgress_Metric) float64 {
	if d := m.GetDoubleValue(); d != 0 {
		return d
	}
	return float64(m.GetIntValue())
}

// failure is what a finished operation says went wrong.
func failure(op *containerpb.Operation) error {
	if e := op.GetError(); e != nil && (e.GetCode() != 0 || e.GetMessage() != "") {
		return operationError("", e.GetMessage(), op.GetName())
	}
	if m := op.GetStatusMessage(); m != "" { // old answers have nothing else
		return operationError("", m, op.GetName())
	}
	return nil
}

func operationError(reason, message, name string) error {
	e := &Error{Kind: Classify(reason, message), Reason: reason, Request: name, Err: errors.New(message)}
	e.phrase(message)
	return e
}

// Suffix is what a target's link ends in, whatever the API calls its project and
// its location: "clusters/c" or "clusters/c/nodePools/p", after the location.
func Suffix(link string) string {
	for _, word := range []string{"/locations/", "/zones/", "/regions/"} {
		if _, after, ok := strings.Cut(link, word); ok {
			return after
		}
	}
	return link
}

// Running are the operations under way on a target, such as
// "projects/p/locations/l/clusters/c"; of its parts too where parts is true.
func (c *Cloud) Running(ctx context.Context, target, location string, parts bool) ([]*containerpb.Operation, error) {
	list, err := Read(ctx, c, func(ctx context.Context) (*containerpb.ListOperationsResponse, error) {
		return c.Clusters.ListOperations(ctx, &containerpb.ListOperationsRequest{Parent: fmt.Sprintf("projects/%s/locations/%s", c.Project, location)})
	})
	if err != nil {
		return nil, err
	}
	var found []*containerpb.Operation
	suffix := Suffix(target)
	for _, op := range list.GetOperations() {
		at := Suffix(op.GetTargetLink())
		if op.GetStatus() != containerpb.Operation_DONE && (at == suffix || parts && strings.HasPrefix(at, suffix+"/")) {
			found = append(found, op)
		}
	}
	return found, nil
}

// Settle waits for all that is under way on a target. Where operations may not be
// listed, the target's status tells whether there is something.
func (c *Cloud) Settle(ctx context.Context, target, location, what string) error {
	running, err := c.Running(ctx, target, location, false)
	switch kind := KindOf(err); {
	case kind == Ambiguous || kind == Busy || ctx.Err() != nil:
		return UnknownResult(target, err)
	case err != nil:
		return c.settleByStatus(ctx, target, what)
	}
	for _, op := range running {
		if err := c.Wait(ctx, op, what); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cloud) settleByStatus(ctx context.Context, target, what string) error {
	return c.WaitUntil(ctx, target, func(ctx context.Context) (bool, error) {
		status, err := c.status(ctx, target)
		if err != nil {
			return false, UnknownResult(target, err)
		}
		ReportProgress(ctx, -1, "%s: %s", what, strings.ToLower(status))
		return !slices.Contains(underWay, status), nil
	})
}

// underWay are the states of clusters and pools that an operation holds.
var underWay = []string{"PROVISIONING", "RECONCILING", "STOPPING"}

// status is the state of a cluster or a pool; "" where it does not exist.
func (c *Cloud) status(ctx context.Context, target string) (string, error) {
	status, err := Read(ctx, c, func(ctx context.Context) (string, error) {
		if strings.Contains(target, "/nodePools/") {
			p, err := c.Clusters.GetNodePool(ctx, &containerpb.GetNodePoolRequest{Name: target})
			return p.GetStatus().String(), err
		}
		k, err := c.Clusters.GetCluster(ctx, &containerpb.GetClusterRequest{Name: target})
		return k.GetStatus().String(), err
	})
	if KindOf(err) == NotFound {
		return "", nil
	}
	return status, err
}

// IsHeld reports whether an operation holds a cluster or a pool, by its status and by the operations that
// the account may list.
func (c *Cloud) IsHeld(ctx context.Context, target, location string) (bool, error) {
	status, err := c.status(ctx, target)
	if err != nil || slices.Contains(underWay, status) {
		return err == nil, err
	}
	running, _ := c.Running(ctx, target, location, false) // an account that may not list has the status
	return len(running) > 0, nil
}

// WaitCompute waits for an operation of the compute API. An operation that is
// DONE may have failed: its errors are checked, whatever the HTTP status.
func (c *Cloud) WaitCompute(ctx context.Context, op *compute.Operation, what string) error {
	last := func(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }
	return c.WaitUntil(ctx, op.Name, func(ctx context.Context) (bool, error) {
		now, err := Read(ctx, c, func(ctx context.Context) (*compute.Operation, error) {
			switch {
			case op.Zone != "":
				return c.Compute.ZoneOperations.Get(c.Project, last(op.Zone), op.Name).Context(ctx).Do()
			case op.Region != "":
				return c.Compute.RegionOperations.Get(c.Project, last(op.Region), op.Name).Context(ctx).Do()
			}
			return c.Compute.GlobalOperations.Get(c.Project, op.Name).Context(ctx).Do()
		})
		if err != nil {
			return false, UnknownResult(op.Name, err)
		}
		if now.Status != "DONE" {
			ReportProgress(ctx, float64(now.Progress), "%s: %s", what, strings.ToLower(now.Status))
			return false, nil
		}
		if now.Error != nil && len(now.Error.Errors) > 0 {
			return true, operationError(now.Error.Errors[0].Code, now.Error.Errors[0].Message, now.Name)
		}
		return true, nil
	})
}

// WaitFile waits for an operation of the Filestore API.
func (c *Cloud) WaitFile(ctx context.Context, op *file.Operation, what string) error {
	return c.WaitUntil(ctx, op.Name, func(ctx context.Context) (bool, error) {
		now, err := Read(ctx, c, func(ctx context.Context) (*file.Operation, error) {
			return c.File.Projects.Locations.Operations.Get(op.Name).Context(ctx).Do()
		})
		if err != nil {
			return false, UnknownResult(op.Name, err)
		}
		if !now.Done {
			ReportProgress(ctx, -1, "%s", what)
			return false, nil
		}
		if now.Error != nil {
			return true, operationError("", now.Error.Message, now.Name)
		}
		return true, nil
	})
}
