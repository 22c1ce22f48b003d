package view

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
)

type jsonVariable struct {
	Value any `json:"value"`
}

type jsonChange struct {
	Actions         []string        `json:"actions"`
	Before          any             `json:"before"`
	After           json.RawMessage `json:"after,omitempty"` // left out where all of it is unknown
	AfterUnknown    any             `json:"after_unknown"`
	BeforeSensitive any             `json:"before_sensitive"`
	AfterSensitive  any             `json:"after_sensitive"`
	ReplacePaths    [][]any         `json:"replace_paths,omitempty"`
	jsonImport
}

type jsonResourceChange struct {
	Address       string     `json:"address"`
	Previous      string     `json:"previous_address,omitempty"`
	ModuleAddress string     `json:"module_address,omitempty"`
	Mode          string     `json:"mode"`
	Type          string     `json:"type"`
	Name          string     `json:"name"`
	Index         any        `json:"index,omitempty"`
	Deposed       string     `json:"deposed,omitempty"`
	ProviderName  string     `json:"provider_name"`
	Change        jsonChange `json:"change"`
	ActionReason  string     `json:"action_reason,omitempty"`
}

type jsonDeferred struct {
	Reason string             `json:"reason"`
	Change jsonResourceChange `json:"resource_change"`
}

// PlanJSON writes a plan in Terraform's published format 1.2.
// https://developer.hashicorp.com/terraform/internals/json-format#plan-representation
func PlanJSON(out io.Writer, pl *plan.Plan, c Configuration) error {
	w := &planWriter{jsonWriter: newJSONWriter(out), plan: pl}
	w.object(func() {
		w.member("format_version", "1.2")
		w.member("terraform_version", TerraformVersion)
		w.variables(c.Root)
		w.name("planned_values")
		w.planned()
		w.changes("resource_drift", pl.Drift, driftActions)
		w.changes("resource_changes", byDepth(toChange(pl)), func(c *plan.Change) []string { return actionNames(c.Action) })
		w.deferred()
		w.outputChanges()
		w.prior()
		w.member("configuration", configurationJSON(c))
		if relevant := relevantJSON(pl, c); len(relevant) > 0 {
			w.member("relevant_attributes", relevant)
		}
		w.checks(pl.Checks)
		w.member("timestamp", pl.Made.UTC().Format(time.RFC3339))
		w.member("applyable", pl.Changed())
		w.member("complete", pl.Complete)
		w.member("errored", false)
	})
	if err := w.finish(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

type planWriter struct {
	*jsonWriter
	plan *plan.Plan
}

// variables writes the given values, and the defaults of the others.
func (w *planWriter) variables(root *modules.Module) {
	all := maps.Clone(w.plan.Variables)
	if all == nil {
		all = map[string]cty.Value{}
	}
	if root != nil {
		for name, v := range root.Variables {
			if _, given := all[name]; !given && !v.Required() && !slices.Contains(w.plan.Ephemeral, name) {
				all[name] = v.Default
			}
		}
	}
	if len(all) == 0 {
		return
	}
	w.name("variables")
	w.object(func() {
		for _, name := range sortedKeys(all) {
			w.member(name, jsonVariable{plainJSON(all[name])})
		}
	})
}

// planned writes how everything will be: what planning has read is there
// already, and in the prior state.
func (w *planWriter) planned() {
	tree := newModuleTree()
	for _, c := range toChange(w.plan) {
		if !absent(c.After) && c.Deposed == "" {
			tree.add(c.Addr.Module, func() jsonResource {
				return resourceJSON(c.Addr, c.Provider, schemaVersion(c), c.After, secret{placesOf(c.AfterSensitive), sensitivePlaces(schemaBlock(c))})
			})
		}
	}
	w.object(func() {
		w.outputs(func(o *plan.OutputChange) (cty.Value, bool, bool) {
			if o.Action == plan.NoOp && absent(o.After) { // was not stored, will not be, and has no type
				return cty.NullVal(cty.DynamicPseudoType), o.Sensitive, true
			}
			return o.After, o.Sensitive || o.BeforeSensitive, o.Action != plan.Delete
		})
		w.name("root_module")
		tree.write(w.jsonWriter)
	})
}

// prior writes how everything was when the plan was made: the state, with
// what refreshing and planning found out since.
func (w *planWriter) prior() {
	tree := newModuleTree()
	for _, c := range w.plan.Changes {
		if absent(c.Before) {
			continue
		}
		tree.add(c.Addr.Module, func() jsonResource {
			r := resourceJSON(c.Addr, c.Provider, schemaVersion(c), c.Before, secret{placesOf(c.BeforeSensitive),
				sensitivePlaces(schemaBlock(c))})
			r.DeposedKey, r.DependsOn, r.Tainted = c.Deposed, c.PriorDependencies, c.Reason == plan.ReplaceTainted
			return r
		})
	}
	value := func(o *plan.OutputChange) (cty.Value, bool, bool) {
		if o.Action == plan.Delete {
			return o.Before, o.BeforeSensitive, true
		}
		if o.After != cty.NilVal && !o.After.IsWhollyKnown() && !absent(o.Before) { // planning found out nothing
			return o.Before, o.BeforeSensitive, true
		}
		return o.After, o.Sensitive, !absent(o.After) && o.After.IsWhollyKnown()
	}
	some := tree.some
	for _, o := range w.plan.Outputs {
		_, _, there := value(o)
		some = some || there
	}
	if !some {
		return
	}
	w.name("prior_state")
	w.object(func() {
		w.member("format_version", "1.0")
		w.member("terraform_version", TerraformVersion)
		w.name("values")
		w.object(func() {
			w.outputs(value)
			w.name("root_module")
			tree.write(w.jsonWriter)
		})
	})
}

// outputs writes the outputs that value picks.
func (w *planWriter) outputs(value func(o *plan.OutputChange) (v cty.Value, sensitive, there bool)) {
	all := make(map[string]jsonOutput)
	for _, o := range w.plan.Outputs {
		v, sensitive, there := value(o)
		if !there {
			continue
		}
		j, err := outputJSON(v, sensitive)
		if err != nil {
			w.fail(fmt.Errorf("encode output %s: %w", o.Name, err))
		}
		all[o.Name] = j
	}
	if len(all) > 0 {
		w.member("outputs", all)
	}
}

func (w *planWriter) changes(name string, list []*plan.Change, actions func(*plan.Change) []string) {
	if len(list) == 0 {
		return
	}
	w.name(name)
	w.array(func() {
		for _, c := range list {
			w.value(changeJSON(c, actions(c)))
		}
	})
}

// deferred writes what only a later round can decide.
func (w *planWriter) deferred() {
	if len(w.plan.Deferred) == 0 {
		return
	}
	w.name("deferred_changes")
	w.array(func() {
		for _, d := range w.plan.Deferred {
			w.value(jsonDeferred{string(d.Reason), changeJSON(d.Change, actionNames(d.Change.Action))})
		}
	})
}

func (w *planWriter) outputChanges() {
	if len(w.plan.Outputs) == 0 {
		return
	}
	w.name("output_changes")
	w.object(func() {
		for _, o := range w.plan.Outputs {
			sensitive := o.Sensitive || o.BeforeSensitive // the format knows one of both
			w.member(o.Name, jsonChange{
				Actions: actionNames(o.Action), Before: plainJSON(o.Before), After: rawJSON(o.After),
				AfterUnknown:    unknownInOutput(o.After),
				BeforeSensitive: sensitive, AfterSensitive: sensitive,
			})
		}
	})
}

func unknownInOutput(v cty.Value) any {
	if v == cty.NilVal || v.IsWhollyKnown() {
		return false
	}
	return outline(v, secret{}, isUnknown)
}

// toChange leaves out what planning has read already, and all objects of a plan
// that changes none.
func toChange(pl *plan.Plan) []*plan.Change {
	if pl.Mode == plan.RefreshOnly {
		return nil
	}
	if !slices.ContainsFunc(pl.Changes, alreadyRead) {
		return pl.Changes
	}
	return slices.DeleteFunc(slices.Clone(pl.Changes), alreadyRead)
}

// alreadyRead reports whether planning has read a data source.
func alreadyRead(c *plan.Change) bool { return c.Action == plan.NoOp && c.Addr.Mode == address.Data }

// byDepth orders changes as Terraform does: changes of called modules after
// changes of their callers.
func byDepth(changes []*plan.Change) []*plan.Change {
	list := append([]*plan.Change{}, changes...)
	depth := make(map[string]int)
	for _, c := range list {
		if m := string(c.Addr.Module); depth[m] == 0 {
			depth[m] = 1 + len(c.Addr.Module.Steps())
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return depth[string(list[i].Addr.Module)] < depth[string(list[j].Addr.Module)] })
	return list
}

func schemaVersion(c *plan.Change) int64 {
	if c.Schema == nil {
		return 0
	}
	return c.Schema.Version
}

// rawJSON is a value's JSON, nothing for a wholly unknown one.
func rawJSON(v cty.Value) json.RawMessage {
	x, known := jsonValue(v)
	if !known {
		return nil
	}
	text, err := json.Marshal(x)
	if err != nil {
		return nil // strings, numbers and compound values always encode
	}
	return text
}

func changeJSON(c *plan.Change, actions []string) jsonResourceChange {
	p := whatChanges(c)
	before, _ := jsonValue(c.Before)
	out := jsonResourceChange{
		Address: c.Addr.String(), ModuleAddress: string(c.Addr.Module), Mode: modeName(c.Addr.Mode),
		Type: c.Addr.Type, Name: c.Addr.Name, Index: jsonKey(c.Addr.Key), Deposed: c.Deposed,
		ProviderName: ProviderSource(c.Provider), ActionReason: string(c.Reason),
		Change: jsonChange{
			Actions: actions, Before: before, After: rawJSON(c.After),
			AfterUnknown:    unknownIn(c.After),
			BeforeSensitive: outline(c.Before, p.beforeSecret, isSecret),
			AfterSensitive:  outline(c.After, p.afterSecret, isSecret),
		},
	}
	out.Change.jsonImport = importJSON(c)
	if c.Moved() {
		out.Previous = c.Previous.String()
	}
	for _, path := range c.Replace {
		out.Change.ReplacePaths = append(out.Change.ReplacePaths, jsonPath(path))
	}
	return out
}

// unknownIn returns the unknown parts of an object: none for an object that is
// wholly known or removed.
func unknownIn(v cty.Value) any {
	if absent(v) || v.IsWhollyKnown() {
		return map[string]any{}
	}
	return outline(v, secret{}, isUnknown)
}

func driftActions(c *plan.Change) []string {
	if c.Action == plan.NoOp && c.Moved() { // and that is all
		return []string{"no-op"}
	}
	if absent(c.After) {
		return []string{"delete"}
	}
	return []string{"update"}
}

func actionNames(a plan.Action) []string {
	switch a {
	case plan.Create:
		return []string{"create"}
	case plan.Read:
		return []string{"read"}
	case plan.Update:
		return []string{"update"}
	case plan.Delete:
		return []string{"delete"}
	case plan.DeleteThenCreate:
		return []string{"delete", "create"}
	case plan.CreateThenDelete:
		return []string{"create", "delete"}
	case plan.Forget:
		return []string{"forget"}
	}
	return []string{"no-op"}
}
