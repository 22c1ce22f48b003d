package kubernetes

import (
	"errors"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	coordination "k8s.io/api/coordination/v1"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/object"
	"github.com/stokehq/stoke/plan/state/store/storetest"
)

const leaseKey = "default/lock-tfstate-default-x"

// terraforms is a Lease as Terraform 1.11 writes it; without an id it is free.
func terraforms(id string) *coordination.Lease {
	l := &coordination.Lease{}
	l.Namespace, l.Name = "default", "lock-tfstate-default-x"
	if id != "" {
		l.Annotations = map[string]string{lockInfo: `{"ID":"` + id + `","Operation":"OperationTypeApply","Info":"","Who":"ann@desk","Version":"1.11.4","Created":"2026-01-02T03:04:05Z","Path":""}`}
		l.Spec.HolderIdentity = &id
	}
	return l
}

// TestTerraformsLock keeps out of each other's way with Terraform.
func TestTerraformsLock(t *testing.T) {
	cluster := &storetest.Cluster{}
	arguments := map[string]cty.Value{"host": text(serveAt(t, cluster)), "secret_suffix": text("x")}
	ctx, s := t.Context(), process(t, arguments)

	cluster.ReplaceLease(terraforms("tf-1"))
	_, err := state.Wait(ctx, s, state.LockInfo{}, time.Second, nil)
	var locked *state.LockedError
	if !errors.As(err, &locked) || locked.Holder.ID != "tf-1" || locked.Holder.Who != "ann@desk" || locked.Advice != "" {
		t.Fatalf("got %v", err)
	}
	if err := s.ForceUnlock(ctx, "tf-1"); err != nil {
		t.Fatal(err)
	}
	if l := cluster.Lease(leaseKey); l == nil || l.Spec.HolderIdentity != nil || l.Annotations[lockInfo] != "" {
		t.Errorf("the broken lock is %+v", l)
	}
	cluster.ReplaceLease(terraforms(""))
	held, err := s.Lock(ctx, state.LockInfo{ID: "mine", Operation: "OperationTypePlan"})
	if err != nil {
		t.Fatal(err)
	}
	l := cluster.Lease(leaseKey)
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != "mine" || l.Labels["tfstate"] != "true" ||
		*l.Spec.LeaseDurationSeconds != 3600 || l.Spec.RenewTime.IsZero() || l.Spec.AcquireTime.IsZero() || l.Annotations[lockInfo] == "" {
		t.Errorf("the lock is %+v", l)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if l := cluster.Lease(leaseKey); l.Spec.HolderIdentity != nil || l.Annotations[lockInfo] != "" {
		t.Errorf("the lock that was given back is %+v", l)
	}
	// Somebody holds it of whom nothing else is known.
	bare := terraforms("who")
	bare.Annotations = nil
	cluster.ReplaceLease(bare)
	if _, err := s.Lock(ctx, state.LockInfo{}); !errors.As(err, &locked) || locked.Holder.ID != "who" {
		t.Errorf("got %v", err)
	}
}

// TestDeadHolder takes over a Lease that is not renewed; who held it writes
// nothing any more.
func TestDeadHolder(t *testing.T) {
	t.Parallel()
	cluster := &storetest.Cluster{}
	arguments := map[string]cty.Value{"host": text(serveAt(t, cluster)), "secret_suffix": text("x")}
	ctx := t.Context()
	b, err := openWith(t, arguments, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.timing = object.Timing{Lease: 5 * time.Second, Renew: time.Hour}
	dying, err := b.Store(backend.DefaultWorkspace)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := dying.Lock(ctx, state.LockInfo{Who: "ann@desk"}); err != nil {
		t.Fatal(err)
	}
	f, err := state.Open(ctx, dying)
	if err != nil {
		t.Fatal(err)
	}
	j, err := f.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	next := process(t, arguments)
	var locked *state.LockedError
	l, err := next.Lock(ctx, state.LockInfo{})
	switch {
	case err == nil && time.Since(began) > b.timing.Lease: // a busy machine has let the time pass
	case !errors.As(err, &locked) || locked.Holder.Who != "ann@desk":
		t.Fatalf("before its time is over: %v", err)
	default:
		if l, err = state.Wait(ctx, next, state.LockInfo{}, 5*time.Minute, nil); err != nil {
			t.Fatal(err)
		}
	}
	g, err := state.Open(ctx, next)
	if err != nil {
		t.Fatal(err)
	}
	if !g.Unfolded() {
		t.Error("the journal is not found")
	}
	var lost *state.LostLockError
	if err := j.Result(ctx, state.Result{Err: "late", Durable: true}); !errors.As(err, &lost) {
		t.Errorf("the dead wrote: %v", err)
	}
	k, err := g.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.Close(ctx), l.Release()); err != nil {
		t.Fatal(err)
	}
}
