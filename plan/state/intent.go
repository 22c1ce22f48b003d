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

// Intent announces a provider call. Its operation id goes to the provider,
// which stamps it on what it makes.
type Intent struct {
	ID      string // the operation's id; unique
	Address address.Instance
	Deposed string // the key of the deposed object that is meant, if it is one
	Action  Action
	// DeposeTo is the deposed key that the old object moves to when the create
	// of its replacement succeeds; empty unless the new one is made first.
	DeposeTo string
	// Planned is JSON of the planned state with nulls for what is unknown; nil
	// for a delete.
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

// Change says what an object has become.
type Change struct {
	Address address.Instance
	Deposed string  // the deposed key; "" for the current object
	Object  *Object // nil: it is gone
}

// Result says what came of a call; its changes are made at once. After a
// create-before-destroy the changes hold both the new object and the old one
// under its deposed key.
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
