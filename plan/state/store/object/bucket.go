package object

import (
	"context"
	"errors"
)

// Bucket holds objects under names. Versions are defined by the service:
// generations, ETags, resourceVersions. Its methods may be called by many
// goroutines at once, and end with their context.
type Bucket interface {
	// Get returns an object; nil and "" if it does not exist.
	Get(ctx context.Context, key string) (data []byte, version string, err error)

	// Put writes an object in one step, if its version is still ifVersion; ""
	// means that it must not exist. Otherwise it fails with ErrConflict.
	Put(ctx context.Context, key string, data []byte, ifVersion string) (version string, err error)

	// Delete removes an object if its version is still ifVersion, where the
	// service can tell; "" removes any. A missing object is not an error.
	Delete(ctx context.Context, key, ifVersion string) error

	// List names the objects that begin with a prefix, sorted; with shallow, only
	// objects without a slash after it.
	List(ctx context.Context, prefix string, shallow bool) ([]string, error)

	// Name is what people call an object, such as "gs://bucket/key".
	Name(key string) string
}

// ErrConflict: an object has another version than expected.
var ErrConflict = errors.New("the object has another version")

// Layout has the names of the parts of one state.
type Layout struct {
	Snapshot string
	Lock     string // "" for no locks
	Journal  string // prefix of the segments' names
}
