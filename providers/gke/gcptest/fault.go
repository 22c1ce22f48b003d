package gcptest

import (
	"path"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
)

// When is a moment in the life of a call.
type When int

const (
	// Before is when a call has been checked and nothing has happened yet.
	Before When = iota + 1
	// After is when a call has had its effect and the answer is not sent yet.
	After
	// Halfway is while the operation runs that a call started. A fault of this
	// kind ends the operation with an error: what it made stays, in error (a
	// disk, a snapshot and a firewall rule are taken back), what it was to change
	// is changed in part, what it was to delete is still there.
	Halfway
	// Polling is when somebody asks for an operation that is not done yet. It is
	// a moment for hooks only.
	Polling
)

// Fault is an error that is given in place of an answer.
type Fault struct {
	Method string     // of the calls it meets; a pattern as in path.Match
	Target string     // part of their target's path; any if empty
	When   When       // Before if 0
	Times  int        // how often; 1 if 0, always if negative
	Skip   int        // calls let through first
	Code   codes.Code // Unavailable if 0; REST answers with the HTTP status that goes with it
	// Message of the error; a plausible one if empty.
	Message string
}

// Fail injects a fault.
func (c *Cloud) Fail(f Fault) {
	if f.When == 0 {
		f.When = Before
	}
	if f.Times == 0 {
		f.Times = 1
	}
	if f.Code == codes.OK {
		f.Code = codes.Unavailable
	}
	if f.Message == "" {
		f.Message = faultMessages[f.Code]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, &f)
}

// Heal takes back what Fail and Slow have said and has not met a call yet.
func (c *Cloud) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults, c.slow = nil, nil
}

// Bury refuses further changes by calls with this User-Agent, also by calls that wait for their effect: the
// caller has ended.
func (c *Cloud) Bury(agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buried = append(c.buried, agent)
}

// isBuried reports whether the caller of a change has ended.
func (c *Cloud) isBuried(call *Call) bool {
	agents := strings.Fields(strings.Join(call.Header["user-agent"], " "))
	return call.Mutating && slices.ContainsFunc(c.buried, func(agent string) bool { return slices.Contains(agents, agent) })
}

var faultMessages = map[codes.Code]string{
	codes.Unavailable:       "The service is currently unavailable.",
	codes.Internal:          "An internal error has occurred.",
	codes.DeadlineExceeded:  "Deadline expired before operation could complete.",
	codes.ResourceExhausted: "Quota exceeded for quota metric 'Write requests' and limit 'Write requests per minute' of service 'container.googleapis.com'.",
	codes.PermissionDenied:  "Required permission is missing for this project.",
	codes.Unauthenticated:   "Request had invalid authentication credentials. Expected OAuth 2 access token.",
}

func (c *Cloud) fault(call *Call, when When) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.takeFault(call, when)
	if f == nil {
		return nil
	}
	var details []protoadapt.MessageV1
	if reason := faultReasons[f.Code]; reason[0] != "" && f.Message == faultMessages[f.Code] { // of the plausible error
		details = append(details, &errdetails.ErrorInfo{Reason: reason[0], Domain: reason[1]})
	}
	if !strings.Contains(call.Method, ".") { // container v1
		return detailed(f.Code, f.Message, details...)
	}
	s, err := status.New(f.Code, f.Message).WithDetails(details...)
	if err != nil {
		return status.Error(f.Code, f.Message)
	}
	return s.Err()
}

// faultReasons are reason and domain of refusals that say so.
var faultReasons = map[codes.Code][2]string{
	codes.PermissionDenied:  {"IAM_PERMISSION_DENIED", "iam.googleapis.com"},
	codes.ResourceExhausted: {"RATE_LIMIT_EXCEEDED", "googleapis.com"},
}

// takeFault finds the first fault for a call, and uses it up once.
func (c *Cloud) takeFault(call *Call, when When) *Fault {
	for i, f := range c.faults {
		if f.When != when || !meets(f.Method, f.Target, call) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			f.Times--
			if f.Times == 0 {
				c.faults = slices.Delete(c.faults, i, i+1)
			}
		}
		return f
	}
	return nil
}

// Event is a moment at which a hook is called.
type Event struct {
	When When
	// Call is the mutating call that is about to be committed (Before) or was
	// committed (After), or the reading one (Polling).
	Call Call
	// Started is the mutating call of the polled operation (Polling), and Look
	// counts the polls, from 1.
	Started Call
	Look    int
}

// Hook is called while the caller waits for the answer. An error is answered
// instead, and before the commit it means that nothing happens: a hook that has
// killed the caller returns ErrGone.
type Hook func(Event) error

// ErrGone is for hooks: the caller is no more.
var ErrGone = status.Error(codes.Canceled, "the caller was killed by the test")

// OnCommit calls a hook when any mutating call was checked and before it has
// its effect.
func (c *Cloud) OnCommit(h Hook) { c.on(Before, h) }

// OnReply calls a hook when any mutating call had its effect and before it is
// answered.
func (c *Cloud) OnReply(h Hook) { c.on(After, h) }

// OnPoll calls a hook when somebody asks for an operation that is not done.
func (c *Cloud) OnPoll(h Hook) { c.on(Polling, h) }

func (c *Cloud) on(when When, h Hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks[when] = append(c.hooks[when], h)
}

func (c *Cloud) hook(e Event) error {
	c.mu.Lock()
	hooks := slices.Clone(c.hooks[e.When])
	c.mu.Unlock()
	for _, h := range hooks {
		if err := h(e); err != nil {
			return err
		}
	}
	return nil
}

// slowness is what Slow was told.
type slowness struct {
	method       string
	polls, times int
}

// SetLatency adds a time to every call from now on.
func (c *Cloud) SetLatency(latency time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.options.Latency = latency
}

// Slow makes the next operations of a method (a pattern as in path.Match) run
// until they were looked at a number of times; for ever, that is until Settle,
// if polls is negative. It holds for the next times operations, or for all if
// times is negative.
func (c *Cloud) Slow(method string, polls, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = append(c.slow, &slowness{method: method, polls: polls, times: times})
}

// need is the number of looks that the operation of a call takes.
func (c *Cloud) need(call *Call) int {
	for _, s := range c.slow {
		if s.times == 0 || !meets(s.method, "", call) {
			continue
		}
		if s.times > 0 {
			s.times--
		}
		return s.polls
	}
	return c.options.Polls
}

func meets(method, target string, call *Call) bool {
	ok, err := path.Match(method, call.Method)
	return err == nil && ok && strings.Contains(call.Target, target)
}
