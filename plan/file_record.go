package plan

import (
	"encoding/json"
	"time"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// fileHeader is the first record of a plan file.
type fileHeader struct {
	Format    int       `json:"stoke_plan"`
	Mode      Mode      `json:"mode"`
	Lineage   string    `json:"lineage"`
	Serial    uint64    `json:"serial"`
	Dir       string    `json:"dir"`
	Workspace string    `json:"workspace"`
	Made      time.Time `json:"made"`
	Complete  bool      `json:"complete"`
	Targets   []string  `json:"targets,omitempty"`
	Excludes  []string  `json:"excludes,omitempty"`
	Unread    int       `json:"unread,omitempty"`
	Unseen    int       `json:"unseen,omitempty"`
	Seal      *fileSeal `json:"seal,omitempty"`
	PinKey    []byte    `json:"pin_key,omitempty"` // sealed where the file is
	Ephemeral []string  `json:"ephemeral,omitempty"`
}

// fileRecord is any record after the first; exactly one member is set. Within a
// kind the records have the order of the plan, and a type precedes the records
// that use it.
type fileRecord struct {
	Type      json.RawMessage `json:"type,omitempty"` // numbered from 0 in the order of their occurrence
	Variable  *fileVariable   `json:"variable,omitempty"`
	Move      *fileMove       `json:"move,omitempty"`
	Change    *fileChange     `json:"change,omitempty"`
	Drift     *fileChange     `json:"drift,omitempty"`
	Refreshed *fileChange     `json:"refreshed,omitempty"`
	Deferral  *fileDeferral   `json:"deferral,omitempty"`
	Output    *fileOutput     `json:"output,omitempty"`
	Note      *fileNote       `json:"note,omitempty"`
	Check     *fileCheck      `json:"check,omitempty"`
	Warning   *Warning        `json:"warning,omitempty"`
	Op        *Op             `json:"op,omitempty"`
}

type fileVariable struct {
	Name   string `json:"name"`
	Type   int    `json:"type"`
	Value  []byte `json:"value,omitempty"`
	Sealed []byte `json:"sealed,omitempty"`
}

type fileChange struct {
	fileRefactoring
	Addr     string `json:"addr"`
	Deposed  string `json:"deposed,omitempty"`
	Provider string `json:"provider"`
	Version  string `json:"version,omitempty"`
	Needed   bool   `json:"needed,omitempty"`
	Action   Action `json:"action"`
	Reason   Reason `json:"reason,omitempty"`
	Type     int    `json:"type"`
	Before   []byte `json:"before"`
	After    []byte `json:"after"`
	Config   []byte `json:"config,omitempty"`
	Sealed   []byte `json:"sealed,omitempty"`
	// Where in the values something is sealed, and whether notes are.
	HiddenBefore       [][]step `json:"hidden_before,omitempty"`
	HiddenAfter        [][]step `json:"hidden_after,omitempty"`
	HiddenConfig       [][]step `json:"hidden_config,omitempty"`
	HiddenPrivate      bool     `json:"hidden_private,omitempty"`
	HiddenPriorPrivate bool     `json:"hidden_prior_private,omitempty"`
	BeforeSensitive    [][]step `json:"before_sensitive,omitempty"`
	AfterSensitive     [][]step `json:"after_sensitive,omitempty"`
	Replace            [][]step `json:"replace,omitempty"`
	Legacy             bool     `json:"legacy,omitempty"`
	CBD                bool     `json:"create_before_destroy,omitempty"`
	Dependencies       []string `json:"dependencies,omitempty"`
	PriorDependencies  []string `json:"prior_dependencies,omitempty"`
}

type fileOutput struct {
	Name            string `json:"name"`
	Action          Action `json:"action"`
	Before          []byte `json:"before"`
	After           []byte `json:"after"`
	BeforeSensitive bool   `json:"before_sensitive,omitempty"`
	Sensitive       bool   `json:"sensitive,omitempty"`
	Deferred        bool   `json:"deferred,omitempty"`
	Sealed          []byte `json:"sealed,omitempty"`
}

type fileNote struct {
	Address string             `json:"address"`
	Path    []step             `json:"path,omitempty"`
	Kind    providers.NoteKind `json:"kind"`
	Text    string             `json:"text"`
	Number  float64            `json:"number,omitempty"`
}

type fileCheck struct {
	Kind    state.CheckKind     `json:"kind"`
	Config  string              `json:"config"`
	Status  state.CheckStatus   `json:"status"`
	Objects []fileCheckedObject `json:"objects,omitempty"`
}

type fileCheckedObject struct {
	Address  string            `json:"address"`
	Status   state.CheckStatus `json:"status"`
	Messages []string          `json:"messages,omitempty"`
}

// step is one step of a path; exactly one member is set.
type step struct {
	Attr  *string         `json:"attr,omitempty"`
	Index json.RawMessage `json:"index,omitempty"`
}
