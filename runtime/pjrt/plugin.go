package pjrt

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// Plugin is a loaded PJRT plugin. It is never unloaded.
type Plugin struct {
	table        []uintptr
	major, minor int

	callback uintptr // the C function that ready is
	mu       sync.Mutex
	next     uintptr
	waiting  map[uintptr]func(error) // by the argument of a callback
	clients  map[*Client]struct{}    // kept until they are closed, with the memory that copies use
}

// Open loads a plugin and checks that this package can drive it. The libraries
// that the plugin needs must be loaded, or where the system looks for them.
func Open(path string) (*Plugin, error) {
	p, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("load PJRT plugin %s: %w", path, err)
	}
	return p, nil
}

func load(path string) (*Plugin, error) {
	get, err := loadSymbol(path, "GetPjrtApi")
	if err != nil {
		return nil, err
	}
	api := invoke(get, nil)
	if api == 0 {
		return nil, errors.New("GetPjrtApi returned nothing")
	}
	beginning := (*struct {
		head
		version struct {
			head
			major, minor int32
		}
	})(pointer(api))
	p := &Plugin{major: int(beginning.version.major), minor: int(beginning.version.minor), waiting: make(map[uintptr]func(error)),
		clients: make(map[*Client]struct{})}
	if p.major != 0 {
		return nil, fmt.Errorf("%w: it has version %d.%d of the PJRT interface, and stoke drives 0.x", ErrTooNew, p.major, p.minor)
	}
	if beginning.size < tableOffset {
		return nil, fmt.Errorf("the plugin's table of functions has %d bytes", beginning.size)
	}
	count := min((beginning.size-tableOffset)/unsafe.Sizeof(uintptr(0)), headerFunctions)
	p.table = unsafe.Slice((*uintptr)(pointer(api+tableOffset)), count)
	if err := p.checkTable(); err != nil {
		return nil, err
	}
	if err := call(p, pluginInitialize, &struct{ head }{}); err != nil {
		return nil, fmt.Errorf("initialize the plugin: %w", err)
	}
	if err := p.checkSizes(); err != nil {
		return nil, err
	}
	p.callback = newCallback(p.ready)
	return p, nil
}

// Version returns the version of the PJRT interface that the plugin was built
// with.
func (p *Plugin) Version() (major, minor int) { return p.major, p.minor }

// pointer returns an address that C gave out as a pointer, past vet's rule for
// addresses of Go's heap.
func pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// text copies a C text.
func text(data, length uintptr) string {
	if length == 0 {
		return ""
	}
	return strings.Clone(unsafe.String((*byte)(pointer(data)), length))
}

// first is a slice's data, or nil.
func first[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// call makes one call. T begins with a head.
func call[T any](p *Plugin, f function, args *T) error {
	room := &struct {
		args  T
		spare [spare]byte
	}{args: *args}
	(*head)(unsafe.Pointer(room)).size = unsafe.Sizeof(*room)
	failure := invoke(p.table[f], unsafe.Pointer(room))
	*args = room.args
	return p.failure(failure)
}

// silently makes a call that returns no error.
func silently[T any](p *Plugin, f function, args T) T {
	room := &struct {
		args  T
		spare [spare]byte
	}{args: args}
	(*head)(unsafe.Pointer(room)).size = unsafe.Sizeof(*room)
	invoke(p.table[f], unsafe.Pointer(room))
	return room.args
}

// failure returns an error of the plugin as a Go error, and frees the first.
func (p *Plugin) failure(failed handle) error {
	if failed == 0 {
		return nil
	}
	message := silently(p, errorMessage, textArgs{object: failed})
	code := silently(p, errorGetCode, resultArgs{object: failed})
	e := &Error{Code: Code(int32(code.result)), Message: text(message.data, message.length)}
	silently(p, errorDestroy, objectArgs{object: failed})
	return e
}

// textOf calls a function that returns a text of an object.
func (p *Plugin) textOf(f function, object handle) (string, error) {
	args := textArgs{object: object}
	if err := call(p, f, &args); err != nil {
		return "", err
	}
	return text(args.data, args.length), nil
}

// Attributes returns what the plugin reports of itself, such as its xla_version
// and cuda_version: values of type string, int64, []int64, float32 or bool.
func (p *Plugin) Attributes() (map[string]any, error) {
	var args attributesArgs
	if err := call(p, pluginAttributes, &args); err != nil {
		return nil, fmt.Errorf("read the plugin's attributes: %w", err)
	}
	list := make(map[string]any, args.count)
	if args.count == 0 {
		return list, nil
	}
	for _, v := range unsafe.Slice((*namedValue)(pointer(args.values)), args.count) {
		list[text(uintptr(v.name), v.nameLength)] = v.read()
	}
	return list, nil
}
