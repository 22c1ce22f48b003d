package gcptest

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// Call is one call as it arrived.
type Call struct {
	Number int // from 1, in the order of arrival
	// Method is "CreateCluster" for container v1, over either transport, and the
	// discovery document's id for everything else: "compute.disks.insert".
	Method    string
	Transport string     // "grpc" or "rest"
	Verb      string     // of HTTP; "" over gRPC
	Path      string     // of HTTP, or the full gRPC method
	Query     url.Values // of HTTP
	Body      json.RawMessage
	Header    map[string][]string // HTTP headers or gRPC metadata, names in lower case
	Target    string              // the object, "projects/p/zones/z/disks/d", also when it is being made, or the collection
	Code      codes.Code          // of the answer, once it is given
	Operation string              // the operation that was started, or is asked for
	Mutating  bool
}

// Calls are all calls so far, refused ones included, of the methods given, or
// of all methods.
func (c *Cloud) Calls(methods ...string) []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Call
	for _, call := range c.calls {
		if len(methods) == 0 || slices.Contains(methods, call.Method) {
			out = append(out, *call)
		}
	}
	return out
}

// Counts are the numbers of calls by method.
func (c *Cloud) Counts() map[string]int {
	counts := make(map[string]int)
	for _, call := range c.Calls() {
		counts[call.Method]++
	}
	return counts
}

// Forget drops the calls recorded so far; numbers go on.
func (c *Cloud) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = nil
}

// answer takes a call through all that every call goes through, and lets work
// answer it with the lock held.
func (c *Cloud) answer(ctx context.Context, call *Call, check func() error, work func() (any, error)) (any, error) {
	c.mu.Lock()
	c.serial++
	call.Number = c.serial
	c.calls = append(c.calls, call)
	c.mu.Unlock()
	reply, err := c.process(ctx, call, check, work)
	c.mu.Lock()
	defer c.mu.Unlock()
	call.Code = status.Code(err)
	return reply, err
}

func (c *Cloud) process(ctx context.Context, call *Call, check func() error, work func() (any, error)) (any, error) {
	c.mu.Lock()
	latency := c.options.Latency
	c.mu.Unlock()
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	if err := check(); err != nil {
		return nil, err
	}
	if err := c.isEnabled(call); err != nil {
		return nil, err
	}
	if err := c.fault(call, Before); err != nil {
		return nil, err
	}
	if call.Mutating {
		if err := c.hook(Event{When: Before, Call: *call}); err != nil {
			return nil, err
		}
	}
	reply, err := c.locked(call, work)
	if err != nil {
		return nil, err
	}
	if event, ok := c.polled(call); ok {
		if err := c.hook(event); err != nil {
			return nil, err
		}
	}
	if call.Mutating {
		if err := c.hook(Event{When: After, Call: *call}); err != nil {
			return nil, err
		}
	}
	return reply, c.fault(call, After)
}

func (c *Cloud) locked(call *Call, work func() (any, error)) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isBuried(call) {
		return nil, ErrGone
	}
	before := len(c.running)
	reply, err := work()
	if len(c.running) > before {
		started := c.running[len(c.running)-1]
		started.call, call.Operation = *call, started.name
		started.half = c.takeFault(call, Halfway)
		started.need = c.need(call)
	}
	return reply, err
}

// overGRPC is the way in for container v1, over both transports: REST calls
// have their Call in the context.
func (c *Cloud) overGRPC(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	message := request.(proto.Message)
	body, err := protojson.Marshal(message)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	call := callOf(ctx)
	if call == nil {
		call = &Call{Transport: "grpc", Path: info.FullMethod, Header: incoming(ctx)}
		ctx = context.WithValue(ctx, callKey{}, call)
	}
	call.Method = info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
	if call.Transport == "grpc" {
		call.Body = body
	}
	call.Target = target(message)
	call.Mutating = !reads(call.Method)
	return c.answer(ctx, call,
		func() error {
			if err := checkMessage(message); err != nil {
				return err
			}
			return checkOutputOnly(string(message.ProtoReflect().Descriptor().Name()), body)
		},
		func() (any, error) { return handler(ctx, request) })
}

// callKey is the context's key of the call that is being answered.
type callKey struct{}

func callOf(ctx context.Context) *Call {
	call, _ := ctx.Value(callKey{}).(*Call)
	return call
}

func incoming(ctx context.Context) map[string][]string {
	header, _ := metadata.FromIncomingContext(ctx)
	return header
}

// target is the object that a request names, or that it makes.
func target(m proto.Message) string {
	switch r := m.(type) {
	case *containerpb.CreateClusterRequest:
		return r.GetParent() + "/clusters/" + r.GetCluster().GetName()
	case *containerpb.CreateNodePoolRequest:
		return r.GetParent() + "/nodePools/" + r.GetNodePool().GetName()
	}
	for _, field := range []protoreflect.Name{"name", "parent"} {
		if f := m.ProtoReflect().Descriptor().Fields().ByName(field); f != nil {
			return m.ProtoReflect().Get(f).String()
		}
	}
	return ""
}

func reads(method string) bool {
	return strings.HasPrefix(method, "Get") || strings.HasPrefix(method, "List") || strings.HasPrefix(method, "Fetch") || strings.HasPrefix(method, "Check")
}
