package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/pattern"
)

// facts are what a tool's answers say, one a line, in an order of their own:
// what is promised to whoever reads them, and nothing that two runs of one
// tool may differ in.
type facts struct{ lines []string }

func (f *facts) add(line string) { f.lines = append(f.lines, line) }

func (f *facts) text(s string) {
	for _, line := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		f.add("  | " + line)
	}
}

type object = map[string]any

// document reads JSON with numbers as they are written.
func document(t *testing.T, text []byte) object {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out object
	if err := d.Decode(&out); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
	return out
}

func compact(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}

// stream takes the diagnostics from what -json writes, line by line.
func (f *facts) stream(t *testing.T, out string) {
	t.Helper()
	var found []any
	for _, line := range strings.Split(out, "\n") {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		if d := document(t, []byte(line))["diagnostic"]; d != nil {
			found = append(found, d)
		}
	}
	f.diagnostics(found)
}

func (f *facts) validation(t *testing.T, out string) {
	t.Helper()
	d := document(t, []byte(out))
	f.add(fmt.Sprintf("valid %v", d["valid"]))
	f.diagnostics(list(d["diagnostics"]))
}

// experimental is what Terraform 1.11 warns of when it writes configuration: in
// one run of four, whatever it wrote.
const experimental = "Config generation is experimental"

// diagnostics keeps how grave they are and which lines they are about: words
// and columns are each tool's own, and how many it has for one mistake.
func (f *facts) diagnostics(found []any) {
	var lines []string
	for _, d := range found {
		d := d.(object)
		if d["summary"] == experimental {
			continue
		}
		line := fmt.Sprintf("%v: ", d["severity"])
		if r, ok := d["range"].(object); ok {
			name, _ := r["filename"].(string)
			line += fmt.Sprintf("%s:%v", filepath.ToSlash(filepath.Clean(name)), r["start"].(object)["line"])
		} else {
			line += "nowhere"
		}
		if a, _ := d["address"].(string); a != "" {
			line += " " + a
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	f.lines = append(f.lines, slices.Compact(lines)...)
}

// plan takes what a plan's JSON says will happen.
func (f *facts) plan(t *testing.T, out string) {
	t.Helper()
	d := document(t, []byte(out))
	f.add(fmt.Sprintf("complete %v, applyable %v, errored %v", d["complete"], d["applyable"], d["errored"]))
	f.changes("drift ", d["resource_drift"])
	f.changes("", d["resource_changes"])
	outputs, _ := d["output_changes"].(object)
	for _, name := range keys(outputs) {
		f.add("output " + name + ": " + change(outputs[name].(object)))
	}
	f.checks(d["checks"])
	variables, _ := d["variables"].(object)
	for _, name := range keys(variables) {
		// Terraform tells what was typed, stoke what the variable holds.
		switch v := variables[name].(object)["value"].(type) {
		case bool, json.Number, string:
			f.add(fmt.Sprintf("variable %s = %v", name, v))
		default:
			f.add("variable " + name)
		}
	}
}

func (f *facts) changes(prefix string, changes any) {
	var lines []string
	for _, c := range list(changes) {
		c := c.(object)
		line := prefix + fmt.Sprint(c["address"])
		if k := c["deposed"]; k != nil {
			line += " deposed"
		}
		line += ": " + change(c["change"].(object))
		for _, key := range []string{"action_reason", "previous_address", "module_address", "index"} {
			if v := c[key]; v != nil {
				line += "\n    " + key + " " + compact(v)
			}
		}
		lines = append(lines, line+"\n    provider "+fmt.Sprint(c["provider_name"]))
	}
	sort.Strings(lines)
	for _, l := range lines {
		f.lines = append(f.lines, strings.Split(l, "\n")...)
	}
}

// change is one change, a line for each thing that it says.
func change(c object) string {
	line := compact(c["actions"])
	for _, key := range []string{"before", "after", "after_unknown", "before_sensitive", "after_sensitive", "replace_paths", "importing", "generated_config"} {
		v, ok := c[key]
		if !ok {
			continue
		}
		if key == "replace_paths" {
			v = sorted(v)
		}
		said := compact(v)
		if b, isThere := c["before"]; isThere && key == "after" && v != nil && said == compact(b) {
			said = "as before"
		}
		line += "\n    " + key + " " + said
	}
	return line
}

// sorted puts a list, whose order means nothing, into an order.
func sorted(v any) any {
	l, ok := v.([]any)
	if !ok {
		return v
	}
	l = append([]any(nil), l...)
	sort.Slice(l, func(i, j int) bool { return compact(l[i]) < compact(l[j]) })
	return l
}

func (f *facts) checks(checks any) {
	var lines []string
	for _, c := range list(checks) {
		c := c.(object)
		address, _ := c["address"].(object)
		instances := list(c["instances"])
		for _, i := range instances {
			i := i.(object)
			delete(i, "problems") // words
		}
		lines = append(lines, fmt.Sprintf("check %v: %v %s", address["to_display"], c["status"], compact(sorted(instances))))
	}
	sort.Strings(lines)
	f.lines = append(f.lines, lines...)
}

// state takes what a state file holds.
func (f *facts) state(t *testing.T, text []byte) {
	t.Helper()
	d := document(t, text)
	f.add(fmt.Sprintf("state version %v", d["version"]))
	outputs, _ := d["outputs"].(object)
	for _, name := range keys(outputs) {
		f.add("state output " + name + " = " + compact(outputs[name]))
	}
	var lines []string
	resources := list(d["resources"])
	all := dependencies(resources)
	for _, r := range resources {
		lines = append(lines, storedResource(r.(object), all)...)
	}
	sort.Strings(lines)
	for _, c := range list(sorted(d["check_results"])) {
		c := c.(object)
		objects := list(c["objects"])
		for _, o := range objects {
			delete(o.(object), "failure_messages") // words
		}
		lines = append(lines, fmt.Sprintf("state check %v %v: %v %s", c["object_kind"], c["config_addr"], c["status"], compact(sorted(objects))))
	}
	for _, l := range lines {
		f.lines = append(f.lines, strings.Split(l, "\n")...)
	}
}

// storedName is a resource's address in a state, keys of modules included.
func storedName(r object) string {
	name := fmt.Sprintf("%v.%v", r["type"], r["name"])
	if r["mode"] == "data" {
		name = "data." + name
	}
	if m := r["module"]; m != nil {
		name = fmt.Sprintf("%v.%s", m, name)
	}
	return name
}

var moduleKeys = pattern.New(`\[[^]]*\]`)

// dependencies maps each resource of a state to all that it depends on.
// Terraform stores that, stoke the direct ones alone.
func dependencies(resources []any) map[string][]any {
	direct := make(map[string]map[string]bool)
	for _, r := range resources {
		name := moduleKeys.ReplaceAllString(storedName(r.(object)), "")
		if direct[name] == nil {
			direct[name] = make(map[string]bool)
		}
		for _, i := range list(r.(object)["instances"]) {
			for _, d := range list(i.(object)["dependencies"]) {
				direct[name][d.(string)] = true
			}
		}
	}
	all := make(map[string][]any)
	for name := range direct {
		seen := make(map[string]bool)
		var reach func(string)
		reach = func(from string) {
			for d := range direct[from] {
				if !seen[d] {
					seen[d] = true
					reach(d)
				}
			}
		}
		reach(name)
		for d := range seen {
			all[name] = append(all[name], d)
		}
	}
	return all
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func storedResource(r object, dependencies map[string][]any) []string {
	name := storedName(r)
	var lines []string
	for _, i := range list(r["instances"]) {
		i := i.(object)
		line := "state " + name
		if key := i["index_key"]; key != nil {
			line += "[" + compact(key) + "]"
		}
		if i["deposed"] != nil {
			line += " deposed"
		}
		line += fmt.Sprintf("\n    %v schema %v", r["provider"], i["schema_version"])
		for _, key := range []string{"status", "attributes", "sensitive_attributes", "dependencies", "create_before_destroy"} {
			v, ok := i[key]
			if key == "dependencies" {
				v = dependencies[moduleKeys.ReplaceAllString(name, "")]
				ok = len(list(v)) > 0 && r["mode"] == "managed"
			}
			if !ok || compact(v) == "[]" {
				continue
			}
			line += "\n    " + key + " " + compact(sorted(v))
		}
		lines = append(lines, line)
	}
	return lines
}

func keys(o object) []string {
	out := make([]string, 0, len(o))
	for k := range o {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

var (
	ids   = pattern.New(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	times = pattern.New(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	marks = pattern.New(`"mark":"[^"]*"`)
)

// normal is the text of the facts, without what no two runs agree on: the
// folder, moments, and ids, which are numbered as they turn up.
func (f *facts) normal(dir string) string {
	text := strings.Join(f.lines, "\n") + "\n"
	text = strings.ReplaceAll(text, dir, "$WORK")
	text = marks.ReplaceAllString(text, `"mark":"…"`) // stoke's own addition
	text = times.ReplaceAllString(text, "TIME")
	numbers := make(map[string]string)
	return ids.ReplaceAllStringFunc(text, func(id string) string {
		id = strings.ToLower(id)
		if numbers[id] == "" {
			numbers[id] = "ID" + strconv.Itoa(len(numbers)+1)
		}
		return numbers[id]
	})
}
