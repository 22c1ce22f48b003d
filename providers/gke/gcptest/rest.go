package gcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// request is a REST call that was found in a discovery document.
type request struct {
	*Call
	document *document
	route    *route
	path     map[string]string // what the path says, by name
	page     int               // the greatest number of items in an answer
}

// decode reads the body into one of Google's types.
func (r *request) decode(into any) error {
	if len(r.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Body, into); err != nil {
		return badRequest("Invalid JSON payload received. %v", err)
	}
	return nil
}

// ServeHTTP answers every REST call.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller is gone
	}
	call := &Call{Transport: "rest", Verb: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: make(map[string][]string)}
	if len(body) > 0 {
		call.Body = body
	}
	for name, values := range r.Header {
		call.Header[strings.ToLower(name)] = values
	}
	reply, err := c.overREST(r.Context(), service, "/"+rest, call)
	if errors.Is(err, ErrGone) {
		panic(http.ErrAbortHandler) // ends the connection
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if message, ok := reply.(proto.Message); ok {
		var text []byte
		if text, err = protojson.Marshal(message); err == nil {
			_, _ = w.Write(text)
		}
		return
	}
	_ = json.NewEncoder(w).Encode(reply)
}

func (c *Cloud) overREST(ctx context.Context, service, path string, call *Call) (any, error) {
	all, err := documents()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	refuse := func(err error) (any, error) {
		call.Method = standardMethod(call.Method, service)
		return c.answer(ctx, call, func() error { return err }, nil)
	}
	d := all[service]
	if d == nil {
		return refuse(status.Errorf(codes.Unimplemented, "the host %s has no fake service", call.Path))
	}
	if d.ServicePath != "" { // "compute/v1/"
		path = strings.TrimPrefix(call.Path, "/"+strings.TrimSuffix(d.ServicePath, "/"))
	}
	route, params, err := d.find(call.Verb, path)
	if err != nil {
		return refuse(err)
	}
	call.Method = route.ID
	r := &request{Call: call, document: d, route: route, path: params, page: c.options.PageSize}
	check := func() error {
		if err := d.checkQuery(route, call.Query); err != nil {
			return err
		}
		return d.checkBody(route, call.Body)
	}
	if service == "container" {
		if err := check(); err != nil {
			return refuse(err)
		}
		return c.transcode(ctx, r, path)
	}
	call.Target = r.target()
	call.Mutating = call.Verb != http.MethodGet && !strings.Contains(strings.ToLower(route.ID), "operations.")
	return c.answer(ctx, call, check, func() (any, error) {
		do := methods[route.ID]
		if do == nil {
			return nil, status.Errorf(codes.Unimplemented, "the double does not do %s", route.ID)
		}
		reply, err := do(c, r)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(reply) // while nobody can change it
		return json.RawMessage(text), err
	})
}

func standardMethod(method, service string) string {
	if method == "" {
		return service
	}
	return method
}

// verbs are what a path of compute v1 may end in after an object.
var verbs = []string{"resize", "setLabels", "createSnapshot", "wait"}

// target is the object that a call is about, or that it makes, or the
// collection that it lists.
func (r *request) target() string {
	switch {
	case r.path["name"] != "":
		return r.path["name"]
	case r.Query.Has("instanceId"):
		return r.path["parent"] + "/instances/" + r.Query.Get("instanceId")
	case r.path["parent"] != "":
		return r.path["parent"]
	}
	path := strings.TrimPrefix(r.Path, "/compute/v1/")
	if slices.Contains(verbs, last(path)) {
		return path[:strings.LastIndex(path, "/")]
	}
	var made struct{ Name string }
	if strings.HasSuffix(r.route.ID, ".insert") && json.Unmarshal(r.Body, &made) == nil {
		path += "/" + made.Name
	}
	return path
}

// restError is an error in the words of compute v1.
type restError struct {
	code    int // of HTTP
	reason  string
	message string
}

func (e *restError) Error() string { return e.message }

// GRPCStatus is the same in the words of gRPC.
func (e *restError) GRPCStatus() *status.Status {
	for code, answer := range httpCodes {
		if answer == e.code && code != codes.FailedPrecondition && code != codes.Aborted {
			return status.New(code, e.message)
		}
	}
	return status.New(codes.Unknown, e.message)
}

func badRequest(format string, args ...any) error {
	return &restError{http.StatusBadRequest, "badRequest", fmt.Sprintf(format, args...)}
}

// httpCodes are the HTTP statuses that go with the codes of gRPC.
var httpCodes = map[codes.Code]int{
	codes.InvalidArgument:    http.StatusBadRequest,
	codes.FailedPrecondition: http.StatusBadRequest,
	codes.Unauthenticated:    http.StatusUnauthorized,
	codes.PermissionDenied:   http.StatusForbidden,
	codes.NotFound:           http.StatusNotFound,
	codes.AlreadyExists:      http.StatusConflict,
	codes.Aborted:            http.StatusConflict,
	codes.ResourceExhausted:  http.StatusTooManyRequests,
	codes.Canceled:           499,
	codes.Internal:           http.StatusInternalServerError,
	codes.Unknown:            http.StatusInternalServerError,
	codes.Unimplemented:      http.StatusNotImplemented,
	codes.Unavailable:        http.StatusServiceUnavailable,
	codes.DeadlineExceeded:   http.StatusGatewayTimeout,
}

var reasons = map[codes.Code]string{
	codes.InvalidArgument: "badRequest", codes.FailedPrecondition: "failedPrecondition", codes.Unauthenticated: "authError",
	codes.PermissionDenied: "forbidden", codes.NotFound: "notFound", codes.AlreadyExists: "alreadyExists", codes.Aborted: "aborted",
	codes.ResourceExhausted: "rateLimitExceeded", codes.Unimplemented: "notImplemented",
}

// fail answers an error as Google does: with a code, a status, the errors of the
// older APIs and the details of the newer ones.
func fail(w http.ResponseWriter, err error) {
	s := status.Convert(err)
	answer, reason := httpCodes[s.Code()], reasons[s.Code()]
	var rest *restError
	if errors.As(err, &rest) {
		answer, reason = rest.code, rest.reason
	}
	if answer == 0 {
		answer = http.StatusInternalServerError
	}
	if reason == "" {
		reason = "backendError"
	}
	name := code.Code(s.Code()).String() //nolint:gosec // codes are few
	body := map[string]any{
		"code": answer, "message": s.Message(), "status": name,
		"errors": []map[string]string{{"message": s.Message(), "domain": "global", "reason": reason}},
	}
	var details []json.RawMessage
	for _, detail := range s.Proto().GetDetails() {
		if text, err := protojson.Marshal(detail); err == nil {
			details = append(details, text)
		}
	}
	if details != nil {
		body["details"] = details
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(answer)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": body})
}
