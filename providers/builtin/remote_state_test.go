package builtin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// someStates has one kind of backend, "box", with the argument "path".
type someStates map[string]map[string]Output // by path and workspace

func (s someStates) CheckBackend(kind string) error {
	if kind != "box" {
		return errors.New("There is box.")
	}
	return nil
}

func (s someStates) CheckConfig(_ string, config cty.Value) error {
	if !config.IsNull() && config.IsKnown() && !config.Type().HasAttribute("path") {
		return errors.New("There is path.")
	}
	return nil
}

func (s someStates) Outputs(_ context.Context, _ string, config cty.Value, workspace string) (map[string]Output, bool, error) {
	path := config.GetAttr("path").AsString()
	if path == "broken" {
		return nil, false, errors.New("it is broken.")
	}
	outputs, ok := s[path+"/"+workspace]
	return outputs, ok, nil
}

func TestRemoteState(t *testing.T) {
	obj := cty.ObjectVal
	at := func(path string) cty.Value { return obj(map[string]cty.Value{"path": str(path)}) }
	states := someStates{
		"a/default": {"x": {Value: str("1")}, "s": {Value: aTuple, Sensitive: true}, "n": {Value: cty.NullVal(cty.String)}},
		"a/prod":    {"x": {Value: str("2")}},
		"none/prod": {},
	}
	tests := []struct {
		name                                 string
		kind, config, workspace, defaultsFor cty.Value
		want                                 cty.Value
		sensitive                            string
		err, path                            string
	}{
		{name: "default workspace", config: at("a"),
			want: obj(map[string]cty.Value{"x": str("1"), "s": aTuple, "n": cty.NullVal(cty.String)}), sensitive: "s"},
		{name: "empty workspace", config: at("a"), workspace: str(""), sensitive: "s",
			want: obj(map[string]cty.Value{"x": str("1"), "s": aTuple, "n": cty.NullVal(cty.String)})},
		{name: "another", config: at("a"), workspace: str("prod"), want: obj(map[string]cty.Value{"x": str("2")})},
		{name: "defaults", config: at("a"), workspace: str("prod"), defaultsFor: obj(map[string]cty.Value{"x": str("no"), "y": str("yes")}),
			want: obj(map[string]cty.Value{"x": str("2"), "y": str("yes")})},
		{name: "defaults of a map", config: at("none"), workspace: str("prod"), defaultsFor: cty.MapVal(map[string]cty.Value{"y": str("yes")}),
			want: obj(map[string]cty.Value{"y": str("yes")})},
		{name: "no outputs", config: at("none"), workspace: str("prod"), want: cty.EmptyObjectVal},
		{name: "missing", config: at("none"), defaultsFor: obj(map[string]cty.Value{"x": str("no")}), err: "Unable to find remote state"},
		{name: "broken", config: at("broken"), err: "Remote state not readable"},
		{name: "kind", kind: str("bag"), config: at("a"), err: "Invalid backend configuration", path: "backend"},
		{name: "null kind", kind: cty.NullVal(cty.String), config: at("a"), err: "Invalid backend configuration", path: "backend"},
		{name: "config", config: obj(map[string]cty.Value{"pat": str("x")}), err: "Invalid backend configuration", path: "config"},
		{name: "defaults of a text", config: at("a"), defaultsFor: str("x"), err: "Invalid default values", path: "defaults"},
	}
	p := newProvider(states)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			or := func(v, other cty.Value) cty.Value {
				if v == cty.NilVal {
					return other
				}
				return v
			}
			config := obj(map[string]cty.Value{
				"backend": or(tt.kind, str("box")), "config": tt.config, "workspace": or(tt.workspace, cty.NullVal(cty.String)),
				"defaults": or(tt.defaultsFor, null), "outputs": null,
			})
			early := p.ValidateData(t.Context(), remoteStateType, config)
			if early.HasErrors() != (tt.path != "") {
				t.Errorf("validate: %v", early)
			}
			got := p.ReadData(t.Context(), providers.ReadDataRequest{Type: remoteStateType, Config: config})
			if tt.err != "" {
				if len(got.Diagnostics) != 1 || got.Diagnostics[0].Summary != tt.err {
					t.Fatalf("got %v", got.Diagnostics)
				}
				if path := got.Diagnostics[0].Path; (len(path) == 0) != (tt.path == "") || tt.path != "" && lastName(path) != tt.path {
					t.Errorf("path %v", path)
				}
				return
			}
			if got.Diagnostics != nil {
				t.Fatal(got.Diagnostics)
			}
			if v := got.State.GetAttr("outputs"); !v.RawEquals(tt.want) {
				t.Errorf("got %#v, want %#v", v, tt.want)
			}
			var names []string
			for _, path := range got.Sensitive {
				names = append(names, lastName(path))
			}
			if s := strings.Join(names, " "); s != tt.sensitive {
				t.Errorf("sensitive: %q", s)
			}
		})
	}
}

// TestRemoteStateUnknown has nothing to say about what is not known yet.
func TestRemoteStateUnknown(t *testing.T) {
	p := newProvider(someStates{})
	for _, config := range []cty.Value{
		cty.DynamicVal,
		cty.ObjectVal(map[string]cty.Value{"backend": unknown, "config": str("x"), "workspace": unknown, "defaults": cty.DynamicVal, "outputs": null}),
		cty.ObjectVal(map[string]cty.Value{"backend": str("box"), "config": cty.DynamicVal, "workspace": unknown, "defaults": cty.DynamicVal, "outputs": null}),
	} {
		if diags := p.ValidateData(t.Context(), remoteStateType, config); diags != nil {
			t.Errorf("%#v: %v", config, diags)
		}
	}
}
