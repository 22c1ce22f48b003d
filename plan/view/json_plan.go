package view

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
)

// jsonPlan is Terraform's published JSON of a plan, format 1.2.
// https://developer.hashicorp.com/terraform/internals/json-format#plan-representation
type jsonPlan struct {
	FormatVersion    string                      `json:"format_version"`
	TerraformVersion string                      `json:"terraform_version"`
	Variables        map[string]jsonVariable     `json:"variables,omitempty"`
	PlannedValues    jsonValues                  `json:"planned_values"`
	ResourceDrift    []jsonResourceChange        `json:"resource_drift,omitempty"`
	ResourceChanges  []jsonResourceChange        `json:"resource_changes,omitempty"`
	OutputChanges    map[string]jsonOutputChange `json:"output_changes,omitempty"`
	PriorState       *jsonState                  `json:"prior_state,omitempty"`
	Configuration    jsonConfiguration           `json:"configuration"`
	Timestamp        string                      `json:"timestamp"`
	Applyable        bool                        `json:"applyable"`
	Complete         bool                        `json:"complete"`
	Errored          bool                        `json:"errored"`
}

type jsonVariable struct {
	Value any `json:"value"`
}

type jsonConfiguration struct {
	RootModule struct{} `json:"root_module"`
}

type jsonChange struct {
	Actions         []string `json:"actions"`
	Before          any      `json:"before"`
	After           any      `json:"after"`
	AfterUnknown    any      `json:"after_unknown"`
	BeforeSensitive any      `json:"before_sensitive"`
	AfterSensitive  any      `json:"after_sensitive"`
	ReplacePaths    [][]any  `json:"replace_paths,omitempty"`
}

type jsonOutputChange = jsonChange

type jsonResourceChange struct {
	Address       string     `json:"address"`
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

// PlanJSON is a plan in Terraform's published format.
func PlanJSON(pl *plan.Plan) ([]byte, error) {
	out := jsonPlan{
		FormatVersion: "1.2", TerraformVersion: TerraformVersion,
		Timestamp: pl.Made.UTC().Format(time.RFC3339),
		Applyable: pl.Changed(), Complete: pl.Complete,
	}
	for name, v := range pl.Variables {
		if out.Variables == nil {
			out.Variables = make(map[string]jsonVariable)
		}
		x, _ := jsonValue(v)
		out.Variables[name] = jsonVariable{x}
	}
	for _, c := range pl.Drift {
		out.ResourceDrift = append(out.ResourceDrift, changeJSON(c, driftActions(c)))
	}
	for _, c := range pl.Changes {
		out.ResourceChanges = append(out.ResourceChanges, changeJSON(c, actionNames(c.Action)))
	}
	if err := out.addValues(pl); err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// addValues adds what the plan says about whole objects: how they will be,
// and how they were.
func (out *jsonPlan) addValues(pl *plan.Plan) error {
	planned, prior := newModuleTree(), newModuleTree()
	some := false
	for _, c := range pl.Changes {
		known := declared(schemaBlock(c))
		version := int64(0)
		if c.Schema != nil {
			version = c.Schema.Version
		}
		if !absent(c.After) && c.Deposed == "" {
			planned.add(c.Addr.Module, resourceJSON(c.Addr, c.Provider, version, c.After, secret{placesOf(c.AfterSensitive), known}))
		}
		if !absent(c.Before) {
			r := resourceJSON(c.Addr, c.Provider, version, c.Before, secret{placesOf(c.BeforeSensitive), known})
			r.DeposedKey = c.Deposed
			prior.add(c.Addr.Module, r)
			some = true
		}
	}
	out.PlannedValues.RootModule = planned.finish()
	values := &jsonValues{RootModule: prior.finish()}
	for _, o := range pl.Outputs {
		if err := out.addOutput(o, values); err != nil {
			return fmt.Errorf("encode output %s: %w", o.Name, err)
		}
	}
	if some || len(values.Outputs) > 0 {
		out.PriorState = &jsonState{FormatVersion: "1.0", TerraformVersion: TerraformVersion, Values: values}
	}
	return nil
}

func (out *jsonPlan) addOutput(o *plan.OutputChange, prior *jsonValues) error {
	if out.OutputChanges == nil {
		out.OutputChanges = make(map[string]jsonOutputChange)
	}
	before, _ := jsonValue(o.Before)
	after, _ := jsonValue(o.After)
	out.OutputChanges[o.Name] = jsonChange{
		Actions: actionNames(o.Action), Before: before, After: after,
		AfterUnknown:    outline(o.After, secret{}, isUnknown),
		BeforeSensitive: o.BeforeSensitive, AfterSensitive: o.Sensitive,
	}
	if o.Action != plan.Delete {
		j, err := outputJSON(o.After, o.Sensitive)
		if err != nil {
			return err
		}
		if out.PlannedValues.Outputs == nil {
			out.PlannedValues.Outputs = make(map[string]jsonOutput)
		}
		out.PlannedValues.Outputs[o.Name] = j
	}
	if o.Before != cty.NilVal && o.Action != plan.Create {
		j, err := outputJSON(o.Before, o.BeforeSensitive)
		if err != nil {
			return err
		}
		if prior.Outputs == nil {
			prior.Outputs = make(map[string]jsonOutput)
		}
		prior.Outputs[o.Name] = j
	}
	return nil
}

func changeJSON(c *plan.Change, actions []string) jsonResourceChange {
	p := whatChanges(c)
	before, _ := jsonValue(c.Before)
	after, _ := jsonValue(c.After)
	out := jsonResourceChange{
		Address: c.Addr.String(), ModuleAddress: string(c.Addr.Module), Mode: modeName(c.Addr.Mode),
		Type: c.Addr.Type, Name: c.Addr.Name, Index: jsonKey(c.Addr.Key), Deposed: c.Deposed,
		ProviderName: ProviderSource(c.Provider), ActionReason: string(c.Reason),
		Change: jsonChange{
			Actions: actions, Before: before, After: after,
			AfterUnknown:    emptied(outline(c.After, secret{}, isUnknown), c.After),
			BeforeSensitive: outline(c.Before, p.beforeSecret, isSecret),
			AfterSensitive:  outline(c.After, p.afterSecret, isSecret),
		},
	}
	for _, path := range c.Replace {
		out.Change.ReplacePaths = append(out.Change.ReplacePaths, jsonPath(path))
	}
	return out
}

// emptied is what Terraform writes for "nothing is unknown" of an object that
// goes: an empty object.
func emptied(x any, v cty.Value) any {
	if absent(v) {
		return map[string]any{}
	}
	return x
}

func driftActions(c *plan.Change) []string {
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
	}
	return []string{"no-op"}
}
