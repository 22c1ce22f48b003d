package pods

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers"
)

const (
	firstPause = 500 * time.Millisecond // before a broken log is requested again, doubled each time
	lastPause  = 10 * time.Second
	// lookAgain is how often the objects are read once all of their pods have ended.
	lookAgain = 2 * time.Second
)

// errOver ends following: there will be no more lines.
var errOver = errors.New("all has ended")

// follower reads the logs of pods that come and go.
type follower struct {
	*logs
	group *errgroup.Group

	state   sync.Mutex // guards what follows
	found   *objectSet // its owners
	pods    map[types.UID]*core.Pod
	foreign map[types.UID]bool // controllers, and pods without one, that are not the set's
	readers int                // containers that may still say something
	changed chan struct{}      // closed when a pod has changed
}

// mark is how far a container's log was read.
type mark struct {
	id string // of the life that the cursor is in; "" for none
	cursor
	whole bool // it has ended, and all of it was read
}

// follow continues from the cursors.
func (l *logs) follow(ctx context.Context, f *objectSet, sources []source, cursors []cursor) error {
	group, ctx := errgroup.WithContext(ctx)
	fl := &follower{
		logs: l, group: group, found: f,
		pods: make(map[types.UID]*core.Pod), foreign: make(map[types.UID]bool), changed: make(chan struct{}),
	}
	marks := make(map[types.UID]map[string]mark)
	for i, of := range sources {
		present, _ := attempts(of.pod, of.container.name)
		if marks[of.pod.UID] == nil {
			marks[of.pod.UID] = make(map[string]mark)
		}
		marks[of.pod.UID][of.container.name] = mark{id: present.id, cursor: cursors[i]}
	}
	for _, p := range f.pods {
		fl.put(ctx, p, marks[p.UID])
	}
	for _, of := range f.lists(func(r *root) bool { return r.Kind != barePod }) {
		group.Go(func() error { return fl.watch(ctx, watchTarget{listOf: of}) })
	}
	for _, r := range f.roots {
		if r.Kind == barePod {
			group.Go(func() error {
				return fl.watch(ctx, watchTarget{listOf{namespace: r.Namespace}, r.Name})
			})
		}
	}
	group.Go(func() error { return fl.untilOver(ctx) })
	if err := group.Wait(); !errors.Is(err, errOver) {
		return err
	}
	return nil
}

// put takes in a pod as it is now; a new pod gets readers.
func (fl *follower) put(ctx context.Context, p *core.Pod, marks map[string]mark) {
	fl.state.Lock()
	defer fl.state.Unlock()
	was := fl.pods[p.UID]
	if was != nil && older(p, was) {
		return
	}
	fl.pods[p.UID] = p
	fl.wakeWaiters()
	if was != nil {
		return
	}
	for _, c := range fl.s.containers(p) {
		if wants(fl.o.Role, fl.found, p, c) {
			fl.readers++
			fl.group.Go(func() error {
				defer fl.countLeft()
				return fl.container(ctx, p.UID, c, marks[c.name])
			})
		}
	}
}

// older reports whether a pod has an earlier state than another read of it.
func older(p, than *core.Pod) bool {
	a, err := strconv.ParseUint(p.ResourceVersion, 10, 64)
	b, err2 := strconv.ParseUint(than.ResourceVersion, 10, 64)
	return err == nil && err2 == nil && a < b
}

// forget forgets a pod.
func (fl *follower) forget(uid types.UID) {
	fl.state.Lock()
	defer fl.state.Unlock()
	if fl.pods[uid] != nil {
		fl.pods[uid] = nil
		fl.wakeWaiters()
	}
}

// wakeWaiters wakes who waits for a change; the state is locked.
func (fl *follower) wakeWaiters() {
	close(fl.changed)
	fl.changed = make(chan struct{})
}

func (fl *follower) countLeft() {
	fl.state.Lock()
	defer fl.state.Unlock()
	fl.readers--
}

// pod returns a pod as it is now, nil after its end, and a channel that is
// closed when some pod changes.
func (fl *follower) pod(uid types.UID) (*core.Pod, <-chan struct{}) {
	fl.state.Lock()
	defer fl.state.Unlock()
	return fl.pods[uid], fl.changed
}

// container hands out what a container says for as long as its pod is there:
// life after life, each from where at has it.
func (fl *follower) container(ctx context.Context, uid types.UID, c container, at mark) error {
	pause := firstPause
	for ctx.Err() == nil {
		p, changed := fl.pod(uid)
		if p == nil {
			return nil
		}
		present, before := attempts(p, c.name)
		if at.id != "" && at.id != present.id {
			if !at.whole && before.id == at.id { // its last lines, from the time without a reader
				_ = fl.s.read(ctx, source{p, c, true}, false, true, &at.cursor, fl.emit) // it may be gone
			}
			at = mark{}
		}
		if present.id == "" || at.whole {
			if isOver(p) {
				return nil
			}
			if status := statusOf(p, c.name); status == nil || status.State.Terminated == nil || status.State.Terminated.ExitCode != 0 {
				fl.wait(c.role, waiting(p))
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		at.id = present.id
		begun := at.cursor
		err := fl.s.read(ctx, source{p, c, false}, present.running, !present.running, &at.cursor, fl.emit)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && !present.running:
			at.whole = true
			continue
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), errors.Is(err, errUnwanted):
			return unreadable(source{container: c}, err)
		case err != nil && !apierrors.IsNotFound(err):
			fl.wait(c.role, "its log broke off ("+err.Error()+"); asking for it again")
		}
		if at.cursor != begun {
			pause = firstPause
		}
		if err := fl.readPodAgain(ctx, p, present, c, pause); err != nil {
			return err
		}
		pause = min(2*pause, lastPause)
	}
	return nil
}

// readPodAgain reads a pod whose log has ended, and pauses where nothing about it is
// another way: then the connection was cut.
func (fl *follower) readPodAgain(ctx context.Context, p *core.Pod, was attempt, c container, pause time.Duration) error {
	now, err := fl.s.pod(ctx, p)
	switch {
	case apierrors.IsForbidden(err):
		return err
	case err == nil && now == nil:
		fl.forget(p.UID)
		return nil
	case err == nil:
		fl.put(ctx, now, nil)
		if present, _ := attempts(now, c.name); present != was {
			return nil
		}
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
	return nil
}

// untilOver ends following when all has ended.
func (fl *follower) untilOver(ctx context.Context) error {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		fl.state.Lock()
		readers := fl.readers
		fl.state.Unlock()
		if readers > 0 {
			continue
		}
		f, err := fl.s.find(ctx)
		switch {
		case errors.Is(err, providers.ErrNoRun):
			return errOver
		case err != nil && ctx.Err() == nil && apierrors.IsForbidden(err):
			return err
		case err != nil:
			continue // the API server is away for a while
		}
		if fl.allOver(ctx, f) {
			return errOver
		}
	}
}

// allOver reports whether no object of the set will have another pod, and the
// logs of all pods were read. New pods get readers.
func (fl *follower) allOver(ctx context.Context, f *objectSet) bool {
	over := true
	for _, p := range f.pods {
		if known, _ := fl.pod(p.UID); known == nil {
			over = false
			fl.learn(f)
			fl.put(ctx, p, nil)
		}
	}
	for _, r := range f.roots {
		at := f.stateOf(r).phase
		ends := r.Kind == job || r.Kind == barePod
		over = over && ends && (at == Succeeded || at == Failed)
	}
	return over
}
