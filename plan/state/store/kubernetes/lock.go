package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/plan/state/store/object"
)

// lockInfo is Terraform's annotation with the holder of a Lease. A Lease
// without a holder is free.
const lockInfo = "app.terraform.io/lock-info"

// getLock reads who holds the lock; the version is "" if it is free.
func (b *bucket) getLock(ctx context.Context) ([]byte, string, error) {
	var l coordination.Lease
	if err := b.client.get(ctx, leases, b.lock(), &l); err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return nil, "", err
	}
	if free(&l) {
		return nil, "", nil
	}
	text := l.Annotations[lockInfo]
	if text == "" {
		text = fmt.Sprintf(`{"ID":%q}`, *l.Spec.HolderIdentity)
	}
	return []byte(text), l.ResourceVersion, nil
}

func free(l *coordination.Lease) bool {
	return l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == ""
}

// putLock makes this process the holder: of a new Lease, or of a free one. With
// ifVersion it takes over or renews.
func (b *bucket) putLock(ctx context.Context, data []byte, ifVersion string) (string, error) {
	l, err := b.lease(data, ifVersion)
	if err != nil {
		return "", err
	}
	var now coordination.Lease
	if ifVersion != "" {
		err := b.client.update(ctx, leases, l.Name, l, &now)
		if apierrors.IsNotFound(err) {
			return "", object.ErrConflict
		}
		return now.ResourceVersion, conflicting(err)
	}
	err = b.client.create(ctx, leases, l, &now)
	if !apierrors.IsAlreadyExists(err) {
		return now.ResourceVersion, conflicting(err)
	}
	var there coordination.Lease
	if err := b.client.get(ctx, leases, l.Name, &there); err != nil {
		if apierrors.IsNotFound(err) {
			err = object.ErrConflict
		}
		return "", err
	}
	if !free(&there) {
		return "", object.ErrConflict
	}
	l.ResourceVersion = there.ResourceVersion
	err = b.client.update(ctx, leases, l.Name, l, &now)
	return now.ResourceVersion, conflicting(err)
}

// lease is a Lease that says what a lock object of package object says.
func (b *bucket) lease(data []byte, version string) (*coordination.Lease, error) {
	var record struct {
		ID      string
		Created time.Time
		Lease   struct {
			Seconds int32
			Renewed time.Time
		}
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return nil, err
	}
	l := &coordination.Lease{}
	l.Name, l.ResourceVersion = b.lock(), version
	l.Labels = b.labelled(b.stateLabels(), "terraform")
	l.Annotations = map[string]string{lockInfo: string(data)}
	l.Spec.HolderIdentity = &record.ID
	if record.Lease.Seconds > 0 {
		acquired, renewed := metav1.NewMicroTime(record.Created), metav1.NewMicroTime(record.Lease.Renewed)
		l.Spec.LeaseDurationSeconds, l.Spec.AcquireTime, l.Spec.RenewTime = &record.Lease.Seconds, &acquired, &renewed
	}
	return l, nil
}

// freeLock leaves a Lease without a holder, as Terraform does.
func (b *bucket) freeLock(ctx context.Context, ifVersion string) error {
	if ifVersion == "" {
		_, version, err := b.getLock(ctx)
		if err != nil || version == "" {
			return err
		}
		ifVersion = version
	}
	l := &coordination.Lease{}
	l.Name, l.ResourceVersion = b.lock(), ifVersion
	l.Labels = b.labelled(b.stateLabels(), "terraform")
	err := b.client.update(ctx, leases, l.Name, l, &coordination.Lease{})
	if apierrors.IsNotFound(err) {
		return nil // somebody removed it
	}
	if !apierrors.IsConflict(err) {
		return err
	}
	// It may be free: our own answer was lost, or another process broke the lock.
	if _, version, err2 := b.getLock(ctx); err2 == nil && version == "" {
		return nil
	}
	return object.ErrConflict
}
