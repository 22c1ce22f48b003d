package gcptest

import (
	"encoding/json"
	"net/url"
	"reflect"

	"github.com/google/uuid"

	"github.com/stokehq/stoke/runtime/pattern"
)

// started remembers an operation by the request that began it, so that the same
// request begins no other.
type started struct {
	method, target string
	query          url.Values
	body           json.RawMessage
	operation      *operation
}

// canonical is how a UUID is written.
var canonical = pattern.New(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// once begins what a request asks for, or finds what an earlier request with the
// same id began, whatever has become of that: the answer is the same operation.
// Ids are UUIDs of any version but the zero one, says the parameter requestId in
// the discovery document of compute v1. It does not say how an id is answered
// that is repeated with another request; here it is rejected, since the client
// would take one operation for the other.
func (c *Cloud) once(r *request, begin func() (*operation, error)) (any, error) {
	id := r.Query.Get("requestId")
	if id != "" {
		if !canonical.MatchString(id) || id == uuid.Nil.String() {
			return nil, computeInvalid("Invalid value for field 'requestId': '%s'. Must be a valid UUID other than the zero UUID.", id)
		}
		if before, ok := c.requests[id]; ok {
			if !before.same(r) {
				return nil, computeInvalid("Invalid value for field 'requestId': '%s'. The request id was used for another request.", id)
			}
			return c.computeOperation(before.operation), nil
		}
	}
	o, err := begin()
	if err != nil {
		return nil, err
	}
	if id != "" {
		c.requests[id] = started{r.Method, r.Target, r.Query, r.Body, o}
	}
	return c.computeOperation(o), nil
}

// same tells whether a request asks for what an earlier one asked for.
func (s started) same(r *request) bool {
	return s.method == r.Method && s.target == r.Target && reflect.DeepEqual(s.query, r.Query) && sameJSON(s.body, r.Body)
}

// sameJSON tells whether two bodies say the same, in whatever order.
func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}
