package plan

import (
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// Mode is what a plan is for.
type Mode uint8

const (
	Normal Mode = iota
	Destroy
	RefreshOnly
)

// Action is the planned change of one object.
type Action uint8

const (
	NoOp Action = iota
	Create
	Read // a data source that can only be read while applying
	Update
	Delete
	DeleteThenCreate
	CreateThenDelete
	Forget // removed from the state, and kept as it is
)

// Replaces reports whether the object is replaced.
func (a Action) Replaces() bool { return a == DeleteThenCreate || a == CreateThenDelete }

// Reason is why an action was chosen where the values do not show it. The words
// come from Terraform's plan JSON (action_reason).
type Reason string

const (
	NoReason               Reason = ""
	ReplaceCannotUpdate    Reason = "replace_because_cannot_update"
	ReplaceTainted         Reason = "replace_because_tainted"
	ReplaceByRequest       Reason = "replace_by_request"
	ReplaceByTriggers      Reason = "replace_by_triggers"
	DeleteNoResourceConfig Reason = "delete_because_no_resource_config"
	DeleteWrongRepetition  Reason = "delete_because_wrong_repetition"
	DeleteCountIndex       Reason = "delete_because_count_index"
	DeleteEachKey          Reason = "delete_because_each_key"
	DeleteNoModule         Reason = "delete_because_no_module"
	DeleteNoMoveTarget     Reason = "delete_because_no_move_target"
	ReadConfigUnknown      Reason = "read_because_config_unknown"
	ReadDependencyPending  Reason = "read_because_dependency_pending"
	ReadCheckNested        Reason = "read_because_check_nested"
)

// Change is what the plan has in mind for one object. Values are unmarked;
// what is sensitive in them is named by paths.
type Change struct {
	Addr    address.Instance
	Deposed string // key of a deposed object, else ""
	// Previous is where the object was before it moved; zero where it didn't.
	Previous address.Instance
	// Importing is the id of an imported object; "" otherwise.
	Importing string
	// Generated is the resource's configuration where it was written by the
	// plan.
	Generated string
	Provider  string // as the state writes it: provider["…"]
	Action    Action
	Reason    Reason

	// Before is the refreshed object (null if there is none). After is the planned
	// object: unknown where only apply can know it, null for a deletion.
	Before, After                   cty.Value
	BeforeSensitive, AfterSensitive []cty.Path
	// Replace names the attributes that force a new object.
	Replace []cty.Path
	// Private is the provider's note to itself, made while planning.
	Private []byte
	// PriorPrivate is the stored object's.
	PriorPrivate []byte
	// PriorDependencies are the dependencies of the stored object.
	PriorDependencies []string

	// Version is the version of the stored object in a pinned plan, "" if there is
	// no object; Needed: unchanged, but read by a change. Outdated: the stored
	// object has changed since planning.
	Version          string
	Needed, Outdated bool

	// Legacy is set by providers of the legacy type system, whose results are
	// not held against the plan.
	Legacy bool

	// Config is the configuration where it is wholly known; with cty.NilVal, apply
	// has to evaluate it again.
	Config cty.Value
	// CreateBeforeDestroy is written to the state, whether set or forced by a
	// dependent.
	CreateBeforeDestroy bool
	// Dependencies are written to the state: resource addresses without keys.
	Dependencies []string
	// Schema is the resource type's; a plan read from a file has it again
	// once providers are there.
	Schema *providers.ResourceSchema
}

// OutputChange is the planned change of one root output.
type OutputChange struct {
	Name            string
	Action          Action // NoOp, Create, Update or Delete
	Before, After   cty.Value
	BeforeSensitive bool
	Sensitive       bool
	// Deferred reports that the value depends on something deferred: the output
	// keeps its value, if any.
	Deferred bool
}

// OpKind is the kind of an operation.
type OpKind uint8

const (
	// Barrier does nothing: it is done when all it waits for is done, and
	// keeps the edges at n + m.
	Barrier OpKind = iota
	// Put creates or updates the change's object; of a CreateThenDelete the
	// old one is set aside as deposed by the same operation.
	Put
	// Remove deletes the change's object; of a CreateThenDelete the deposed one.
	Remove
	// ReadData reads a data source.
	ReadData
	// Verify evaluates conditions of an unchanged object that planning could
	// not decide.
	Verify
)

// Op is one operation of a plan. Operations refer to each other and to
// changes by index.
type Op struct {
	Kind   OpKind
	Change int32   // index in Plan.Changes; -1 for barriers
	After  []int32 // operations that come before; all have smaller indices
}

// Plan is pure data: the changes, their order and their preconditions. Views
// render it, a plan file holds it, run carries it out.
type Plan struct {
	Mode    Mode
	Changes []*Change // in address order, unchanged objects included
	Drift   []*Change // what changed outside since the last apply: Before is stored, After is real
	Outputs []*OutputChange
	Ops     []Op
	// Deferred holds what only a later plan can decide, in address order.
	Deferred []*Deferral
	Notes    []providers.Note
	Checks   []state.CheckResult // what became of conditions, as far as it is known
	Warnings []Warning

	// What the plan rests on. PinKey is the key of the versions; nil if there are
	// no versions.
	PinKey    []byte
	Lineage   string
	Serial    uint64
	Dir       string // the root module's folder
	Workspace string
	Files     map[string][]byte    // every configuration file that was read
	Variables map[string]cty.Value // root variables as given, converted, unmarked; without ephemeral ones
	// SensitiveVariables are the names of root variables that are declared so.
	SensitiveVariables []string
	// SensitiveDefaults are the defaults of sensitive variables, of modules
	// too. They are in no plan file: files that spell them out are sealed.
	SensitiveDefaults []cty.Value
	Ephemeral         []string // ephemeral root variables that were given, and have to be given again
	Targets           []string
	Excludes          []string
	Made              time.Time

	// Locked is set where the plan was read without its key, Signed where it
	// was read with it.
	Locked *Locked
	Signed bool

	// Moves are stored before anything else, all of them at once.
	Moves []Move
	// Refreshed holds objects whose reading differs from the state: apply
	// stores them first. After is what was read.
	Refreshed []*Change
	// Generated is configuration that was written for imported objects; Changes
	// have it one by one, and Files has it too.
	Generated []byte
	// Unread is how many objects were not read (Request.RefreshChanged).
	Unread int
	// Unseen is how many objects their provider could not look at: it answered
	// with a warning, and with what the state has.
	Unseen int
	// Complete is false for a plan that ends in errors, covers targets only or
	// defers something.
	Complete bool
}

// Changed reports whether applying the plan would do anything at all.
func (p *Plan) Changed() bool {
	for _, c := range p.Changes {
		if c.Action != NoOp || c.Importing != "" {
			return true
		}
	}
	for _, o := range p.Outputs {
		if o.Action != NoOp && !o.Deferred {
			return true
		}
	}
	if p.Mode != RefreshOnly && len(p.Moves) > 0 {
		return true
	}
	return p.Mode == RefreshOnly && len(p.Refreshed) > 0
}

// Count returns how many objects are added, changed and destroyed, as the
// summary line counts them.
func (p *Plan) Count() (add, change, destroy int) {
	for _, c := range p.Changes {
		switch c.Action {
		case Create:
			add++
		case Update:
			change++
		case Delete:
			destroy++
		case DeleteThenCreate, CreateThenDelete:
			add++
			destroy++
		}
	}
	for _, n := range p.Notes {
		if n.Kind == providers.NoteDeletion {
			add += int(n.Number)
			destroy++
		}
	}
	return add, change, destroy
}
