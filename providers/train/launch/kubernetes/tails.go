package kubernetes

import (
	"bufio"
	"context"
	"fmt"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	connected "github.com/stokehq/stoke/providers/connect/kubernetes"
)

// tails follow the logs of containers that run: one request for each, which stays open
// until the container or its connection ends.
type tails struct {
	c       *cluster
	ctx     context.Context
	stop    context.CancelFunc
	readers sync.WaitGroup
	open    map[string]bool // containers that are followed, by their IDs
	lines   chan tailLine
}

// tailLine is a line of a container that is followed, or the end of its log.
type tailLine struct {
	pod      *core.Pod
	id, text string
	ended    bool
	err      error // of a log that could not be followed
}

// newTails follows nothing yet. The caller ends it.
func newTails(ctx context.Context, c *cluster) *tails {
	t := &tails{c: c, open: make(map[string]bool), lines: make(chan tailLine)}
	t.ctx, t.stop = context.WithCancel(ctx)
	return t
}

// end ends all requests.
func (t *tails) end() {
	t.stop()
	t.readers.Wait()
}

// follow follows a container's log from a time on, unless it is followed already.
func (t *tails) follow(p *core.Pod, id string, since time.Time) {
	if id == "" || t.open[id] {
		return
	}
	t.open[id] = true
	t.readers.Go(func() {
		err := t.read(p, id, since)
		t.send(tailLine{pod: p, id: id, ended: true, err: err})
	})
}

func (t *tails) read(p *core.Pod, id string, since time.Time) error {
	options := connected.LogOptions{Container: container, Timestamps: true, Since: since, Follow: true}
	body, err := t.c.PodLog(t.ctx, p.Namespace, p.Name, options)
	if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) {
		return nil // it is gone, or has not begun
	}
	if err != nil {
		return err
	}
	defer body.Close()
	for lines := bufio.NewReaderSize(body, 64<<10); ; {
		text, err := readLine(lines)
		if err != nil { // the log or the connection ends: a container that still runs is followed again
			return nil
		}
		if !t.send(tailLine{pod: p, id: id, text: text}) {
			return nil
		}
	}
}

func (t *tails) send(l tailLine) bool {
	select {
	case t.lines <- l:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// wait gives the lines of followed containers until the run may have changed.
func (t *tails) wait(ctx context.Context, f *followed, into *transcript) error {
	waiting, stop := context.WithCancel(ctx)
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		f.wait(waiting)
	}()
	defer func() { stop(); <-changed }()
	for {
		select {
		case <-changed:
			return nil
		case l := <-t.lines:
			if l.ended {
				delete(t.open, l.id)
			}
			err := l.err
			if err != nil {
				err = fmt.Errorf("log of pod %s: %w", l.pod.Name, err)
			} else {
				err = into.add(l.pod, l.id, l.text)
			}
			if err != nil {
				return err
			}
		}
	}
}
