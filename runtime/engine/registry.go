package engine

import (
	"log/slog"
	"slices"
)

// Registry holds the engines of one program by name. It is filled before it is
// used; afterwards any goroutine may read it.
type Registry struct {
	names   []string // in the order of their registration
	entries map[string]Entry
}

// Entry is one engine. Problem and Devices may be called often and open no
// device.
type Entry struct {
	// New opens the engine.
	New func(Config) (Engine, error)
	// Problem returns the reason why the engine does not work on this machine;
	// nil: it works. A nil Problem is an engine that works on every machine.
	Problem func() error
	// Devices returns the devices that this process sees, in the order of their
	// indices. A nil Devices is an engine that needs none.
	Devices func() []Device
}

// Config is the part of an engine's environment that its process chooses.
type Config struct {
	Device int          // the only device that replicas are built for, as in Options
	Log    *slog.Logger // of the process
}

// Device is one device of an engine.
type Device struct {
	Index  int    `json:"index"`            // by which Options.Device names it
	Name   string `json:"name,omitempty"`   // such as NVIDIA H200
	UUID   string `json:"uuid,omitempty"`   // the same in all processes of the machine
	Memory int64  `json:"memory,omitempty"` // bytes; 0 = not known
}

// Register adds an engine. A name that is taken is a programmer's error.
func (r *Registry) Register(name string, e Entry) {
	if _, taken := r.entries[name]; taken || e.New == nil {
		panic("engine: registered twice, or without New: " + name)
	}
	if r.entries == nil {
		r.entries = make(map[string]Entry)
	}
	if e.Problem == nil {
		e.Problem = func() error { return nil }
	}
	if e.Devices == nil {
		e.Devices = func() []Device { return nil }
	}
	r.names, r.entries[name] = append(r.names, name), e
}

// Names returns the names of all engines in the order of their registration.
func (r *Registry) Names() []string { return slices.Clone(r.names) }

// Find returns the engine of a name.
func (r *Registry) Find(name string) (Entry, bool) {
	e, ok := r.entries[name]
	return e, ok
}
