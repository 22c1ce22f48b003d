package gcptest

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// operation is something that was accepted and takes time, of any service.
type operation struct {
	service string // "container", "compute", "file" or "serviceusage"
	name    string // the last part of its path
	parent  string // "projects/p/locations/l", "projects/p/zones/z", "projects/p/global"
	kind    string // as the service calls it: "CREATE_CLUSTER", "insert"
	target  string // the object's path
	id      uint64
	call    Call // that started it
	looks   int
	need    int // looks that do not see its end; for ever if negative
	start   time.Time
	end     time.Time // zero while it runs
	half    *Fault    // the fault that ends it half-way
	err     error     // a status, with which it ended
	// finish has the effect that comes with the end, and tells the error that the
	// operation ends with; half is the error that it must end with, if any.
	finish func(half error) error
}

func (o *operation) done() bool { return !o.end.IsZero() }

// begin notes an operation of which the caller has had the first effects.
func (c *Cloud) begin(service, parent, kind, target string, finish func(half error) error) *operation {
	c.begun++
	now := c.time()
	o := &operation{
		service: service, parent: parent, kind: kind, target: target, finish: finish,
		id: uint64(c.begun), start: now,
		name: fmt.Sprintf("operation-%d-%s", now.UnixMilli(), hash(8, c.options.Project, fmt.Sprint(c.begun))),
	}
	if service != "container" {
		o.id = number(o.name)
	}
	c.running = append(c.running, o)
	return o
}

// look brings an operation nearer to its end.
func (c *Cloud) look(o *operation) {
	if o.done() {
		return
	}
	o.looks++
	if o.need >= 0 && o.looks > o.need {
		c.endOperation(o)
	}
}

func (c *Cloud) endOperation(o *operation) {
	var half error
	if o.half != nil {
		half = status.Error(o.half.Code, o.half.Message)
	}
	o.err = o.finish(half)
	o.end = c.time()
}

// Settle ends all operations that run, in the order in which they began.
func (c *Cloud) Settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 0; i < len(c.running); i++ { // ending one may begin another
		if !c.running[i].done() {
			c.endOperation(c.running[i])
		}
	}
}

// runningOn are the operations that run on objects whose path begins with path.
func (c *Cloud) runningOn(service, path string) []*operation {
	var out []*operation
	for _, o := range c.running {
		if o.service == service && !o.done() && (o.target == path || strings.HasPrefix(o.target, path+"/")) {
			out = append(out, o)
		}
	}
	return out
}

func (c *Cloud) findOperation(service, parent, name string) *operation {
	parent = strings.Replace(parent, "projects/"+c.projectNumber()+"/", "projects/"+c.options.Project+"/", 1)
	at := slices.IndexFunc(c.running, func(o *operation) bool {
		return o.service == service && o.parent == parent && o.name == name
	})
	if at < 0 {
		return nil
	}
	return c.running[at]
}

// polled tells whether a call has asked for an operation that still runs.
func (c *Cloud) polled(call *Call) (Event, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call.Mutating || call.Operation == "" {
		return Event{}, false
	}
	for _, o := range c.running {
		if o.name == call.Operation && !o.done() {
			return Event{When: Polling, Call: *call, Started: o.call, Look: o.looks}, true
		}
	}
	return Event{}, false
}

// Running are the paths of the objects on which operations run, in the order in
// which those began.
func (c *Cloud) Running() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, o := range c.running {
		if !o.done() {
			out = append(out, o.target)
		}
	}
	return out
}

// hash is n hexadecimal digits that tell the parts apart from any others.
func hash(n int, parts ...string) string {
	return fmt.Sprintf("%016x", number(parts...))[:n]
}

func number(parts ...string) uint64 {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part + "\x00"))
	}
	return h.Sum64()
}

func (c *Cloud) stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func (c *Cloud) now() string { return c.stamp(c.time()) }

func (c *Cloud) time() time.Time { return c.options.Now().Add(c.passed) }

// Pass lets time go by.
func (c *Cloud) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}
