package plan

import (
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/providers"
)

// Limits is the number of operations that may be in progress at the same time,
// by the name of a type of resource, of a provider ("metal" or
// "stokehq/metal"), or PerHost. It overrules what the providers say themselves.
type Limits map[string]int

// PerHost names the limit for each machine.
const PerHost = "host"

// Slot is one place of so many that an operation takes for its time.
type Slot struct {
	Name string
	Most int
}

// Slots returns the limits that an operation falls under, in the order in which
// their slots are acquired: all operations use the same order, which rules out
// a deadlock. object is called only where a limit needs it.
func (l Limits) Slots(c providers.Catalogue, provider string, addr address.Instance, object func() cty.Value) []Slot {
	source, _, ok := eval.ParseProviderAddr(provider)
	if !ok {
		return nil
	}
	own := c[source].Limits
	var slots []Slot
	if most := l.limitOf(own.PerHost, PerHost); most > 0 && own.Host != nil {
		if v := object(); v != cty.NilVal && !v.IsNull() {
			if host := own.Host(addr.Type, v); host != "" {
				slots = append(slots, Slot{"host " + host, most})
			}
		}
	}
	if most := l.limitOf(own.Types[addr.Type], addr.Type); most > 0 {
		slots = append(slots, Slot{"type " + source + " " + addr.Type, most})
	}
	short := source[strings.LastIndexByte(source, '/')+1:]
	_, full, _ := strings.Cut(source, "/")
	if most := l.limitOf(l.limitOf(l.limitOf(own.Operations, short), full), source); most > 0 {
		slots = append(slots, Slot{"provider " + source, most})
	}
	return slots
}

func (l Limits) limitOf(otherwise int, name string) int {
	if n := l[name]; n > 0 {
		return n
	}
	return otherwise
}

// gates hold back calls that only read, while planning.
type gates struct {
	mu   sync.Mutex
	open map[string]chan struct{}
}

// pass waits for places in all slots; the result gives them back. Meanwhile
// other tasks go on.
func (g *gates) pass(t *eval.Task, slots []Slot) (leave func()) {
	if len(slots) == 0 {
		return func() {}
	}
	taken := make([]chan struct{}, 0, len(slots))
	for _, s := range slots {
		gate := g.gate(s)
		select {
		case gate <- struct{}{}:
		default:
			t.Idle(func() { gate <- struct{}{} })
		}
		taken = append(taken, gate)
	}
	return func() {
		for _, gate := range taken {
			<-gate
		}
	}
}

func (g *gates) gate(s Slot) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = map[string]chan struct{}{}
	}
	if g.open[s.Name] == nil {
		g.open[s.Name] = make(chan struct{}, s.Most)
	}
	return g.open[s.Name]
}
