package view

import (
	"strings"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

// jsonCheck is the result of one declaration's conditions, in the plan's and the
// state's JSON.
// https://developer.hashicorp.com/terraform/internals/json-format#checks-representation
type jsonCheck struct {
	Address   jsonCheckAddress    `json:"address"`
	Status    string              `json:"status"`
	Instances []jsonCheckInstance `json:"instances,omitempty"`
}

type jsonCheckAddress struct {
	Kind    string `json:"kind"`
	Display string `json:"to_display"`
	Mode    string `json:"mode,omitempty"`
	Module  string `json:"module,omitempty"`
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
}

type jsonCheckInstance struct {
	Address  jsonCheckObject    `json:"address"`
	Status   string             `json:"status"`
	Problems []jsonCheckProblem `json:"problems,omitempty"`
}

type jsonCheckObject struct {
	Display string `json:"to_display"`
	Module  string `json:"module,omitempty"`
	Key     any    `json:"instance_key,omitempty"`
}

type jsonCheckProblem struct {
	Message string `json:"message"`
}

// checks writes the member "checks", unless it would be empty.
func (w *jsonWriter) checks(results []state.CheckResult) {
	if len(results) == 0 {
		return
	}
	w.name("checks")
	w.array(func() {
		for _, r := range results {
			w.value(checkJSON(r))
		}
	})
}

func checkJSON(r state.CheckResult) jsonCheck {
	c := jsonCheck{Address: checkAddress(r), Status: string(r.Status)}
	for _, o := range r.Objects {
		i := jsonCheckInstance{Address: checkObject(r.Kind, o.Address), Status: string(o.Status)}
		for _, m := range o.Messages {
			i.Problems = append(i.Problems, jsonCheckProblem{m})
		}
		c.Instances = append(c.Instances, i)
	}
	return c
}

func checkAddress(r state.CheckResult) jsonCheckAddress {
	a := jsonCheckAddress{Kind: string(r.Kind), Display: r.Config}
	if r.Kind == state.CheckedOutput {
		a.Kind = "output_value"
	}
	if r.Kind == state.CheckedResource {
		if addr, err := address.ParseResource(r.Config); err == nil {
			a.Mode, a.Module, a.Type, a.Name = modeName(addr.Mode), string(addr.Module), addr.Type, addr.Name
		}
		return a
	}
	a.Module, a.Name = cutName(r.Config)
	return a
}

func checkObject(kind state.CheckKind, addr string) jsonCheckObject {
	o := jsonCheckObject{Display: addr}
	if kind != state.CheckedResource {
		o.Module, _ = cutName(addr)
		return o
	}
	if inst, err := address.ParseInstance(addr); err == nil {
		o.Module, o.Key = string(inst.Module), jsonKey(inst.Key)
	}
	return o
}

// cutName splits module.m["k"].KIND.NAME into module and name.
func cutName(addr string) (module, name string) {
	i := strings.LastIndexByte(addr, '.')
	if i < 0 {
		return "", addr
	}
	name = addr[i+1:]
	if j := strings.LastIndexByte(addr[:i], '.'); j >= 0 {
		module = addr[:j]
	}
	return module, name
}
