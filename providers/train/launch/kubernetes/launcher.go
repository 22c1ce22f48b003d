package kubernetes

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	connected "github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// poll is the pause between two looks at a coordinator whose run is watched.
const poll = time.Second

// Launcher runs experiments in one namespace of a cluster.
type Launcher struct {
	dial      func(context.Context) (*connected.Client, error)
	placement launch.Placement
	folder    string // on this machine, in which what is left of runs is collected
}

var _ launch.Launcher = (*Launcher)(nil)

// New makes the launcher of the runs in a namespace. Of p only the namespace
// has to be known to look at runs and to end them. What runs leave is collected
// in folders below folder, which is an absolute path of this machine; "" leaves
// it to others.
func New(dial func(context.Context) (*connected.Client, error), p launch.Placement, folder string) *Launcher {
	return &Launcher{dial, p, folder}
}

func (l *Launcher) cluster(ctx context.Context) (*cluster, error) {
	client, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	return &cluster{Client: client, namespace: l.placement.Namespace}, nil
}

// purgeTime bounds the removal of what a failed launch has made.
const purgeTime = 3 * time.Minute

// Start makes the run's objects, the coordinator's Job last, or leaves nothing.
func (l *Launcher) Start(ctx context.Context, operation string, s spec.Spec, code launch.Code) (string, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return "", err
	}
	of := &layout{launch.ID(operation), s, l.placement, 0}
	if err := c.start(ctx, of, operation, code); errors.Is(err, errTaken) {
		return "", err // it is not this call's to remove
	} else if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), purgeTime)
		defer cancel()
		unclean := c.accounted(ctx, of.id, func() error { return c.purge(ctx, of.id, operation) })
		if unclean == nil {
			return "", err
		}
		left := new(launch.LeftError)
		if !errors.As(unclean, &left) {
			left = &launch.LeftError{Err: unclean, Place: c.namespace, Unseen: unclean}
		}
		left.Err = fmt.Errorf("%w; it could not be cleaned up: %w", err, left.Err)
		return of.id, left
	}
	return of.id, nil
}

// errTaken says that a run of the same name is there already.
var errTaken = errors.New("a run of this name is there already")

// start makes everything that a run needs.
func (c *cluster) start(ctx context.Context, l *layout, operation string, code launch.Code) error {
	if err := c.ensureClasses(ctx, l); err != nil {
		return err
	}
	config, err := l.configMap(operation)
	if err != nil {
		return err
	}
	uid, err := c.create(ctx, configMaps, config, nil)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w: %w", errTaken, err)
	}
	if err != nil {
		return c.explain(err)
	}
	owner := &metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: l.id, UID: uid}
	var b [32]byte
	rand.Read(b[:]) // never fails
	secret, err := l.secret(hex.EncodeToString(b[:]))
	if err != nil {
		return err
	}
	if _, err := c.create(ctx, secrets, secret, owner); err != nil {
		return err
	}
	if err := (codeKeeper{c, l}).make(ctx, code, owner); err != nil {
		return err
	}
	if _, err := c.create(ctx, services, l.service(), owner); err != nil {
		return err
	}
	if _, err := c.create(ctx, policies, l.policy(), owner); err != nil {
		return err
	}
	return c.launch(ctx, l, owner)
}

// launch makes the Jobs, and before them the claim that the coordinator's needs.
func (c *cluster) launch(ctx context.Context, l *layout, owner *metav1.OwnerReference) error {
	if err := c.makeClaim(ctx, l); err != nil {
		return err
	}
	for _, j := range l.jobs() {
		if _, err := c.create(ctx, jobs, j, owner); err != nil {
			return err
		}
	}
	return nil
}

// ensureClasses makes the priority classes that are not there.
func (c *cluster) ensureClasses(ctx context.Context, l *layout) error {
	for _, class := range l.classes() {
		there, err := c.get(ctx, classes, class.Name, new(metav1.PartialObjectMetadata))
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		if there {
			continue
		}
		if _, err := c.create(ctx, classes, class, nil); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%w; ask an administrator to create it with the value %d, or remove priority", err, class.Value)
		}
	}
	return nil
}

// explain adds what to do to the error of a run's first object.
func (c *cluster) explain(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w; declare the namespace as a kube_namespace, and refer to its name", err)
	}
	return err
}

// Settle removes a run whose coordinator was never made.
func (l *Launcher) Settle(ctx context.Context, operation string) (string, error) {
	id := launch.ID(operation)
	if operation == "" {
		return "", launch.ErrNoRun
	}
	c, err := l.cluster(ctx)
	if err != nil {
		return "", err
	}
	s, err := c.look(ctx, id)
	switch {
	case errors.Is(err, launch.ErrNoRun), errors.Is(err, launch.ErrForeign):
		return "", fmt.Errorf("%w: %w", launch.ErrNoRun, err)
	case err != nil:
		return "", err
	case s.config.Annotations[operationAnnotation] != operation:
		return "", fmt.Errorf("%w: ConfigMap %s/%s: %w", launch.ErrNoRun, c.namespace, id, launch.ErrForeign)
	case s.job(coordinator) != nil, s.hasEnded():
		return id, nil
	}
	if err := c.purge(ctx, id, operation); err != nil {
		return "", fmt.Errorf("%w. Look at the objects in the namespace %s with the label %s=%s, or delete them", err, c.namespace, runLabel, id)
	}
	return "", launch.ErrNoRun
}

// purge removes all that there is of a run; the ConfigMap, which says that there
// is one, goes last. operation, where it is not "", has to be the run's.
func (c *cluster) purge(ctx context.Context, id, operation string) error {
	var config core.ConfigMap
	there, err := c.get(ctx, configMaps, id, &config)
	if err != nil {
		return err
	}
	if there && (config.Labels[runLabel] != id || operation != "" && config.Annotations[operationAnnotation] != operation) {
		if operation != "" {
			return nil // another operation's run: nothing of this one was made
		}
		return launch.ErrForeign
	}
	for _, kind := range kinds {
		if err := c.remove(ctx, kind, id); err != nil {
			return err
		}
		if kind == jobs {
			if err := c.podsGone(ctx, id); err != nil {
				return err
			}
		}
	}
	if !there {
		return nil
	}
	return c.delete(ctx, configMaps, id, config.UID)
}

// ID follows from the operation.
func (l *Launcher) ID(operation string) string { return launch.ID(operation) }

// Location says where the run is in the cluster, and where on this machine what
// is left of it has been collected.
func (l *Launcher) Location(id string) launch.Location {
	at := run.Folder(filepath.Join(l.folder, id))
	return launch.Location{Place: l.placement.Namespace, Run: l.placement.Namespace + "/" + id, Logs: at.Logs(), Metrics: at.Metrics()}
}

// Spec is the specification as it was applied last.
func (l *Launcher) Spec(ctx context.Context, id string) (spec.Spec, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return spec.Spec{}, err
	}
	s, err := c.look(ctx, id)
	if err != nil {
		return spec.Spec{}, err
	}
	return s.spec()
}

// Status asks the run's coordinator; of one that has ended it collects what is
// left.
func (l *Launcher) Status(ctx context.Context, id string) (launch.State, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return launch.State{}, err
	}
	s, err := c.look(ctx, id)
	if err != nil {
		return launch.State{}, err
	}
	var state launch.State
	err = c.decide(ctx, id, s, func(s *sight) (err error) {
		state, err = l.standing(ctx, c, id, s)
		return err
	})
	return state, err
}

func (l *Launcher) standing(ctx context.Context, c *cluster, id string, s *sight) (launch.State, error) {
	state, asked, p, err := readState(ctx, c, id, s, askIn(c))
	if asked != nil {
		defer asked.Close()
	}
	if err != nil {
		return state, err
	}
	switch _, recorded := s.recorded(); {
	case !state.Phase.Final() || l.folder == "":
		return state, nil
	case recorded:
		return state, c.suspend(ctx, s)
	}
	return l.conclude(ctx, c, s, asked, state, p.Durable() && !state.CheckpointsLost)
}

// Watch watches the run's objects and keeps one connection to its coordinator. A
// caller who may not watch objects has them read every few seconds. The client of
// the cluster waits for an API server that does not answer.
func (l *Launcher) Watch(ctx context.Context, id string) iter.Seq2[launch.State, error] {
	return func(yield func(launch.State, error) bool) {
		c, err := l.cluster(ctx)
		if err != nil {
			yield(launch.State{}, err)
			return
		}
		v := newView(ctx, c, id, configMaps, jobs, pods)
		defer v.end()
		for {
			s, err := l.current(ctx, v)
			if ctx.Err() != nil || !errors.Is(err, errSilent) && (!yield(s, err) || err != nil) {
				return
			}
			v.wait(ctx)
		}
	}
}

// current returns the state of a watched run. The end of a run is read from the
// API server, and concluded.
func (l *Launcher) current(ctx context.Context, v *view) (launch.State, error) {
	if v.watching() {
		state, err := v.state(ctx)
		if errors.Is(err, errSilent) || err == nil && !state.Phase.Final() && state.Phase != spec.Lost {
			return state, err
		}
	}
	state, err := l.Status(ctx, v.id)
	if len(state.HeldRoles)+len(state.DelayedRoles) > 0 {
		l.Release(ctx, v.id) //nolint:errcheck // the status reports pods that are still held
	}
	return state, err
}

// ownerOf is the run as the owner of its objects.
func ownerOf(config *core.ConfigMap) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: config.Name, UID: config.UID}
}
