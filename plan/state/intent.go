package state

import (
	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
)

// Action is what an intent is about to do.
type Action string

const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Intent announces a provider call. The provider gets its operation id and
// marks the object with it.
type Intent struct {
	ID      string // the operation's id; unique
	Address address.Instance
	Deposed string // the key of a deposed object
	Action  Action
	// DeposeTo is the deposed key that the old object moves to when the create
	// of its replacement succeeds; empty unless the new one is made first.
	DeposeTo string
	// Planned is JSON of the planned state with nulls for unknown values; nil for
	// a delete.
	Planned             []byte
	Provider            string // as in Meta
	SchemaVersion       int64
	Private             []byte // planned private bytes
	Dependencies        []string
	CreateBeforeDestroy bool
	Sensitive           []cty.Path
	// Durable asks Journal.Intent to return only when the record would survive
	// a power failure. Without it the record is written behind the caller's
	// back, in order, which is enough for types with no outside effect. It is
	// not stored.
	Durable bool
}

// Change is the new version of an object.
type Change struct {
	Address address.Instance
	Deposed string  // the deposed key; "" for the current object
	Object  *Object // nil: it is gone
}

// Result has the changes by a call; they are made at once.
// After a create-before-destroy the changes hold both the new object
// and the old one under its deposed key.
type Result struct {
	Intent  string // the id of the intent that this settles; "" for refresh, state commands, outputs
	Changes []Change
	Outputs map[string]Output // the root module's outputs from now on; nil: as before
	Checks  []CheckResult     // the check results from now on; nil: as before
	Err     string            // why the call failed; kept for people
	Durable bool              // as in Intent
}

// Output is one output of the root module. Value is unmarked.
type Output struct {
	Value     cty.Value
	Sensitive bool
}
