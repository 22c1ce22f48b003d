package object

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/store/storetest"
)

// pail is a Bucket in memory.
type pail struct {
	mu      sync.Mutex
	objects map[string]thing
	last    int
	// before, when not nil, is called before each request; its error is the
	// request's.
	before func(verb, key string) error
}

type thing struct {
	data    []byte
	version string
}

func newPail() *pail { return &pail{objects: map[string]thing{}} }

func (p *pail) ask(verb, key string) error {
	p.mu.Lock()
	f := p.before
	p.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(verb, key)
}

func (p *pail) Get(_ context.Context, key string) ([]byte, string, error) {
	if err := p.ask("get", key); err != nil {
		return nil, "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.objects[key]
	return o.data, o.version, nil
}

func (p *pail) Put(_ context.Context, key string, data []byte, ifVersion string) (string, error) {
	if err := p.ask("put", key); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.objects[key].version != ifVersion {
		return "", ErrConflict
	}
	p.last++
	p.objects[key] = thing{slices.Clone(data), fmt.Sprint(p.last)}
	return p.objects[key].version, nil
}

func (p *pail) Delete(_ context.Context, key, ifVersion string) error {
	if err := p.ask("delete", key); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.objects[key].version; ifVersion != "" && v != "" && v != ifVersion {
		return ErrConflict
	}
	delete(p.objects, key)
	return nil
}

func (p *pail) List(_ context.Context, prefix string, shallow bool) ([]string, error) {
	if err := p.ask("list", prefix); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var keys []string
	for k := range p.objects {
		if rest, ok := strings.CutPrefix(k, prefix); ok && !(shallow && strings.Contains(rest, "/")) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

func (p *pail) Name(key string) string { return "mem://" + key }

var (
	layout = Layout{Snapshot: "s.tfstate", Lock: "s.tflock", Journal: "s.tfstate.journal/"}
	quick  = Timing{Lease: 3 * time.Second, Renew: 20 * time.Millisecond} // the longest pause of a machine that is at work
	long   = Timing{Lease: time.Hour, Renew: 20 * time.Millisecond}       // no pause of the machine is as long
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Place: func(testing.TB) func() state.Store {
			p := newPail()
			return func() state.Store { return New(p, layout, long) }
		},
		Info: true,
	})
}
