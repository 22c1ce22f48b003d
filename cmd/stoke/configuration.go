package main

import (
	"cmp"
	"fmt"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
)

// configuration is what the files of the working directory say.
type configuration struct {
	root      *modules.Module
	variables map[string]cty.Value
}

// load reads the configuration in the working directory. A destroy works on
// what the state holds, and needs none.
func (s *session) load(destroy bool) (*modules.Module, error) {
	root, diags := s.read()
	return s.loaded(root, diags, destroy)
}

// structure is load for commands that ask only what the configuration is made
// of: what modules are given is the business of those that evaluate it. There
// may be none where optional is true.
func (s *session) structure(optional bool) (*modules.Module, error) {
	root, diags := s.read()
	return s.loaded(root, modules.Structural(diags), optional)
}

func (s *session) loaded(root *modules.Module, diags hcl.Diagnostics, optional bool) (*modules.Module, error) {
	if optional && noConfiguration(diags) {
		diags = nil
	}
	s.complain(diags...)
	if diags.HasErrors() {
		return nil, failed
	}
	return root, nil
}

// noConfiguration reports whether all that is wrong is that there are no files.
func noConfiguration(diags hcl.Diagnostics) bool {
	return len(diags) == 1 && diags[0].Summary == modules.NoConfiguration
}

// read loads the files. A module that is written for another version may
// have all sorts of mistakes in this one, which would say nothing.
func (s *session) read() (*modules.Module, hcl.Diagnostics) {
	dir := cmp.Or(s.configDir, ".")
	source := modules.Source(modules.OnDiskWith(s.dataDir()))
	if s.draft != nil {
		source = drafted{source, dir, *s.draft}
	}
	root, files, diags := modules.Load(source, dir)
	s.files = files
	if unsupported := versionDiagnostics(root); unsupported.HasErrors() {
		return root, unsupported
	}
	return root, diags
}

// configure reads the configuration and finds the values of its variables,
// asking for missing ones where that is possible.
func (s *session) configure(f *planFlags) (*configuration, error) {
	root, err := s.load(f.destroy)
	if err != nil {
		return nil, err
	}
	values, missing, diags := modules.Values(root, modules.Inputs{
		Environ: s.environ, Source: modules.OnDisk(), Dir: ".", Flags: f.variables,
	}, s.files)
	if len(missing) > 0 && !diags.HasErrors() {
		if s.mayAsk(f.input) && !f.json {
			diags = append(diags, s.askVariables(missing, values)...)
		} else {
			diags = append(diags, modules.MissingDiagnostics(missing)...)
		}
	}
	s.complain(diags...)
	if diags.HasErrors() {
		return nil, failed
	}
	c := &configuration{root: root, variables: make(map[string]cty.Value, len(values))}
	for name, v := range values {
		c.variables[name] = v.Value
	}
	return c, nil
}

// askVariables asks for each variable that has no value.
func (s *session) askVariables(missing []*modules.Variable, values map[string]modules.Value) hcl.Diagnostics {
	for i, v := range missing {
		s.printf("var.%s\n", v.Name)
		if v.Description != "" {
			s.printf("  %s\n\n", v.Description)
		}
		s.printf("  Enter a value: ")
		read := s.answers.Line
		if v.Sensitive {
			read = s.answers.Secret
		}
		text, err := read(s.signals.stopping)
		s.printf("\n")
		if err != nil {
			return modules.MissingDiagnostics(missing[i:])
		}
		value, diags := v.Parse(text, modules.FromPrompt, s.files)
		if diags.HasErrors() {
			return diags
		}
		values[v.Name] = value
	}
	return nil
}

// versionDiagnostics compares what the modules require with the version of
// Terraform that this program is compatible with.
func versionDiagnostics(root *modules.Module) hcl.Diagnostics {
	ours := goversion.Must(goversion.NewVersion(terraformVersion))
	var diags hcl.Diagnostics
	for _, m := range everyModule(root) {
		for _, required := range m.Settings.RequiredVersion {
			constraints, err := goversion.NewConstraint(required.Text)
			summary, detail := "Unsupported version required",
				fmt.Sprintf("This stoke speaks the language of Terraform %s, and the module requires %q. Widen required_version, or use a stoke that fits it.", terraformVersion, required.Text)
			switch {
			case err != nil:
				summary, detail = "Invalid version constraint", fmt.Sprintf("%q cannot be read as a version constraint, such as \">= 1.5\".", required.Text)
			case constraints.Check(ours):
				continue
			}
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: required.Range.Ptr()})
		}
	}
	return diags
}

// everyModule lists a module and all that it calls, each declaration once.
func everyModule(root *modules.Module) []*modules.Module {
	seen := make(map[string]bool)
	var all []*modules.Module
	var visit func(m *modules.Module)
	visit = func(m *modules.Module) {
		if m == nil || seen[m.Dir] {
			return
		}
		seen[m.Dir] = true
		all = append(all, m)
		for _, call := range m.Calls {
			visit(call.Module)
		}
	}
	visit(root)
	return all
}
