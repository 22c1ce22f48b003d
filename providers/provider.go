package providers

import (
	"context"

	"github.com/zclconf/go-cty/cty"
)

// Provider is one provider as the engine drives it. A value serves one phase
// (validate, plan or apply) with one configuration; calls may run at the same
// time. Values are unmarked and conform to the schema's implied types.
type Provider interface {
	// Schema describes everything that the provider offers. The result is
	// shared and must not be changed.
	Schema(ctx context.Context) (*Schema, Diagnostics)

	ValidateProvider(ctx context.Context, config cty.Value) Diagnostics
	ValidateResource(ctx context.Context, typeName string, config cty.Value) Diagnostics
	ValidateData(ctx context.Context, typeName string, config cty.Value) Diagnostics

	// Configure is called at most once, before any of the calls below
	// (Upgrade excepted). config may hold unknowns while planning.
	Configure(ctx context.Context, config cty.Value) Diagnostics

	// Upgrade turns stored JSON of any earlier schema version into a value of
	// the current one.
	Upgrade(ctx context.Context, r UpgradeRequest) UpgradeResponse
	Read(ctx context.Context, r ReadRequest) ReadResponse
	Plan(ctx context.Context, r PlanRequest) PlanResponse
	Apply(ctx context.Context, r ApplyRequest) ApplyResponse
	Import(ctx context.Context, r ImportRequest) ImportResponse
	ReadData(ctx context.Context, r ReadDataRequest) ReadDataResponse

	// Stop asks every call in flight to return as soon as it can.
	Stop(ctx context.Context) error
	Close() error
}

// UpgradeRequest is a stored object as its JSON.
type UpgradeRequest struct {
	Type    string
	Version int64
	JSON    []byte
}

// UpgradeResponse holds the object as a value of the current schema.
type UpgradeResponse struct {
	State       cty.Value
	Diagnostics Diagnostics
}

// ReadRequest asks what an object is like now. When the context's Call says
// Settling, State is the planned state of a create whose outcome is unknown,
// unknowns null: only an object that carries the operation's mark may be
// returned, null otherwise.
type ReadRequest struct {
	Type    string
	State   cty.Value
	Private []byte
	Meta    cty.Value // provider_meta; a typed null where there is none
	// MayDefer says that the answer may be Deferred.
	MayDefer bool
}

// ReadResponse holds the object as it is now; a null State says it is gone.
type ReadResponse struct {
	State       cty.Value
	Private     []byte
	Deferred    Deferred
	Diagnostics Diagnostics
}

// PlanRequest asks what Apply would do. Prior is null for a create, Proposed
// and Config are null for a destroy.
type PlanRequest struct {
	Type     string
	Prior    cty.Value
	Proposed cty.Value
	Config   cty.Value
	Private  []byte
	Meta     cty.Value
	MayDefer bool // the answer may be Deferred
}

// PlanResponse says what an object will be like; unknowns in Planned are what
// only the apply can tell.
type PlanResponse struct {
	Planned     cty.Value
	Replace     []cty.Path // attributes whose change means a new object
	Private     []byte
	Legacy      bool // legacy type system: inconsistencies are only logged
	Deferred    Deferred
	Diagnostics Diagnostics
}

// ApplyRequest carries a plan out. Planned is null for a destroy.
type ApplyRequest struct {
	Type    string
	Prior   cty.Value
	Planned cty.Value
	Config  cty.Value
	Private []byte
	Meta    cty.Value
}

// ApplyResponse holds the object after the call, also when there are errors:
// then State is as much of it as exists. After a failed create an object that
// is not null is stored as tainted, unless Keep says that the next plan can
// finish it by an update.
//
// Lost reports that the call broke off (the provider crashed, or its process
// has ended), so that its result is unknown; there are errors then, and State
// is the prior object. The intent stays open and is settled by reading.
type ApplyResponse struct {
	State       cty.Value
	Private     []byte
	Keep        bool
	Legacy      bool // legacy type system: inconsistencies are only logged
	Lost        bool
	Diagnostics Diagnostics
}

// ImportRequest asks for existing objects by the id that people know them by.
type ImportRequest struct {
	Type string
	ID   string
	// Config is the configuration of the object, with null for each argument that holds something
	// sensitive; cty.NilVal where there is none. The protocol has no place for it: see Call.Declared.
	Config cty.Value
}

// Imported is one object that an import found.
type Imported struct {
	Type    string
	State   cty.Value
	Private []byte
}

// ImportResponse holds the objects that were found.
type ImportResponse struct {
	Objects     []Imported
	Diagnostics Diagnostics
}

// ReadDataRequest asks for a data source's values.
type ReadDataRequest struct {
	Type     string
	Config   cty.Value
	Meta     cty.Value
	MayDefer bool // the answer may be Deferred
}

// ReadDataResponse holds a data source as it is now. Sensitive names values in
// State that are sensitive in addition to the schema.
type ReadDataResponse struct {
	State       cty.Value
	Sensitive   []cty.Path
	Deferred    Deferred
	Diagnostics Diagnostics
}

// Severity of a Diagnostic.
type Severity uint8

const (
	Error Severity = iota
	Warning
)

// Diagnostic is what a provider has to say to people. Path leads to the
// attribute at fault within the object, and is empty when there is none.
// Address is for reviews alone, which see many objects: the instance that it is
// about, "" for none.
type Diagnostic struct {
	Severity Severity
	Summary  string
	Detail   string
	Path     cty.Path
	Address  string
}

// Diagnostics is a list of them, in the order they were made.
type Diagnostics []Diagnostic

// HasErrors reports whether one of them is an error.
func (d Diagnostics) HasErrors() bool {
	for i := range d {
		if d[i].Severity == Error {
			return true
		}
	}
	return false
}
