package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hyperparameters are values for an argument with arguments of its own, by the
// name in them that it does not have ("" where all are its own) and the line
// and column where that is told.
var hyperparameters = []struct{ expr, name, at string }{
	{`{ learning_rate = 0.1, epochs = "2" }`, "", ""},
	{`{}`, "", ""},
	{`null`, "", ""},
	{`merge({ learning_rate = 0.1 }, { epochs = 2 })`, "", ""},
	{`jsondecode("{\"learning_rate\": 0.1}")`, "", ""},
	{`{ learning_rate = 0.1, lr = null }`, "", ""},
	{`{ for k in ["learning_rate", "epochs"] : k => 1 }`, "", ""},
	{`local.on ? { learning_rate = 1 } : null`, "", ""},
	{`var.any`, "", ""}, // nothing is known of it before there is a plan
	{`terraform_data.some.output`, "", ""},
	{`{ lr = 3 }`, "lr", "8:23"},
	{`{ "lr" = 3 }`, "lr", "8:23"},
	{`{ ("lr") = 3 }`, "lr", "8:23"},
	{`{ (local.name) = 3 }`, "lr", "8:21"},
	{`({ lr = 3 })`, "lr", "8:24"},
	{`merge({ lr = 3 }, {})`, "lr", "8:21"},
	{`local.on ? { lr = 3 } : null`, "lr", "8:21"},
	{`{ for k in ["lr"] : k => 3 }`, "lr", "8:21"},
	{`{ for k in toset([local.name]) : k => 3 }`, "lr", "8:21"},
	{`jsondecode("{\"lr\": 3}")`, "lr", "8:21"},
	{`yamldecode("lr: 3")`, "lr", "8:21"},
	{`local.wrong`, "lr", "8:21"},
	{`tomap({ lr = 3 })`, "lr", "8:21"},
	{`one([{ lr = 3 }])`, "lr", "8:21"},
	{`try({ lr = 3 }, {})`, "lr", "8:21"},
	{`coalesce(null, { lr = 3 })`, "lr", "8:21"},
	{`{ lr = terraform_data.some.id }`, "lr", "8:23"},
	{`merge(local.wrong, { momentum = terraform_data.some.id })`, "lr", "8:21"},
	{`sensitive({ lr = 3 })`, "sensitive", "8:21"},
	{`{ learningrate = sensitive(3) }`, "learningrate", "8:23"},
}

// nestedConfig has the value as the argument of line 8.
const nestedConfig = `
locals {
  on    = true
  name  = "lr"
  wrong = { lr = 3 }
}
resource "train_experiment" "a" {
  hyperparameters = %s
  model           = "mlp"
  dataset         = "/nowhere"
  worker {}
}
resource "terraform_data" "some" {}
variable "any" {}
`

// TestNestedNames refuses names that an argument's object does not have, wherever it comes from.
func TestNestedNames(t *testing.T) {
	for _, c := range hyperparameters {
		validated(t, c.expr, map[string]string{"main.tf": fmt.Sprintf(nestedConfig, c.expr)}, c.name, "main.tf:"+c.at)
	}
	const json = `{"resource": {"train_experiment": {"a": {"hyperparameters": %s, "model": "mlp", "dataset": "/nowhere", "worker": {}}}}}`
	validated(t, "JSON", map[string]string{"main.tf.json": fmt.Sprintf(json, `{"learning_rate": 1}`)}, "", "")
	for _, text := range []string{`{"lr": 3}`, `"${{ lr = 3 }}"`, `{"${lower(\"LR\")}": 3}`} {
		validated(t, "JSON "+text, map[string]string{"main.tf.json": fmt.Sprintf(json, text)}, "lr", "main.tf.json:1:")
	}
	const cluster = `
resource "kube_namespace" "a" {
  name    = "a"
  cluster = {
    credential = {
      kubeconfig = { path = "config", %s = "c" }
    }
  }
}
`
	validated(t, "deep", map[string]string{"main.tf": fmt.Sprintf(cluster, "context")}, "", "")
	validated(t, "deep", map[string]string{"main.tf": fmt.Sprintf(cluster, "contxt")}, "contxt", "main.tf:6:39")
	validated(t, "module", map[string]string{
		"main.tf":       "module \"m\" {\n  source = \"./child\"\n  in     = { lr = 3 }\n  any    = 1\n}\n",
		"child/main.tf": fmt.Sprintf(nestedConfig, "{ for k, v in { lr = 3 } : k => v }") + "variable \"in\" {}\n",
	}, "lr", "child/main.tf:8:21")
}

// validated validates a configuration, which has to be valid, or to be told that it has a
// name too many, at a place.
func validated(t *testing.T, what string, files map[string]string, name, at string) {
	t.Helper()
	dir := t.TempDir()
	for file, text := range files {
		write(t, filepath.Join(dir, file), []byte(text))
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	t.Chdir(dir)
	st := stage{in: os.Stdin, out: out, err: out, environ: []string{"HOME=" + dir, "TF_CLI_CONFIG_FILE=" + os.DevNull}, built: catalogue()}
	if len(files) > 1 {
		if code := execute([]string{"get"}, st); code != 0 {
			t.Fatalf("%s: get: %d", what, code)
		}
		if err := out.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
	}
	execute([]string{"validate", "-json"}, st)
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	result := document(t, text)
	if name == "" {
		if result["valid"] != true {
			t.Errorf("%s: it is valid, but: %s", what, text)
		}
		return
	}
	for _, d := range list(result["diagnostics"]) {
		d := d.(object)
		r, _ := d["range"].(object)
		start, _ := r["start"].(object)
		place := fmt.Sprintf("%v:%v:%v", r["filename"], start["line"], start["column"])
		if d["summary"] == "Unsupported argument" && strings.Contains(fmt.Sprint(d["detail"]), name) && strings.HasPrefix(filepath.ToSlash(place), at) {
			return
		}
	}
	t.Errorf("%s: nothing says at %s that %q is not expected: %s", what, at, name, text)
}

// TestLibraryTakesEveryArgument gives the modules that wrap a run everything that
// its blocks and objects have, and something that they do not have.
func TestLibraryTakesEveryArgument(t *testing.T) {
	const needed = "source = \"library//%s\"\n  format = \"synthetic-digits\"\n  model = \"mlp\"\n"
	calls := map[string]string{
		"local-training":   fmt.Sprintf(needed, "local-training"),
		"cluster-training": fmt.Sprintf(needed, "cluster-training") + "  namespace = \"a\"\n  push = \"example.com/a/b:1\"\n  cluster = { credential = { kubeconfig = { path = \"config\" } } }\n",
	}
	texts, err := filepath.Abs("../../modules/library")
	if err != nil {
		t.Fatal(err)
	}
	parts := experimentParts(t)
	for module, names := range map[string][]string{
		"local-training":   {"hyperparameters"},
		"cluster-training": {"hyperparameters", "coordinator", "parameter_server", "worker"},
	} {
		text, err := os.ReadFile(filepath.Join(texts, module, "main.tf"))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range names {
			var all []string
			for name, ty := range parts[part] {
				all = append(all, fmt.Sprintf("%s = %s", name, map[string]string{"number": "1", "bool": "true", "string": `"1"`}[fmt.Sprint(ty)]))
				if ty, ok := ty.([]any); ok {
					all[len(all)-1] = name + map[any]string{"map": " = {}", "list": " = [1]"}[ty[0]]
				}
				if part != "hyperparameters" && !strings.Contains(strings.Join(strings.Fields(string(text)), " "), fmt.Sprintf("%s = var.%s.%s", name, part, name)) {
					t.Errorf("%s does not pass %s.%s on", module, part, name)
				}
			}
			if len(all) < 7 {
				t.Errorf("%s has %d arguments", part, len(all))
			}
			call := "module \"m\" {\n  " + calls[module]
			value := "{ " + strings.Join(all, ", ") + " }"
			main := map[string]string{"main.tf": call + "  " + part + " = " + value + "\n}\n", "empty.tf": ""}
			validated(t, module+" "+part, main, "", "")
			line := strings.Count(call, "\n") + 1
			main["main.tf"] = call + "  " + part + " = merge(" + value + ", { nope = 1 })\n}\n"
			validated(t, module+" "+part, main, "nope", fmt.Sprintf("main.tf:%d:", line))
			main["main.tf"] = call + "  " + part + " = { nope = 1 }\n}\n"
			validated(t, module+" "+part, main, "nope", fmt.Sprintf("main.tf:%d:%d", line, len(part)+8))
		}
	}
}

// experimentParts are the types of the arguments that train_experiment's blocks and
// objects have, by their names.
func experimentParts(t *testing.T) map[string]object {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.tf"), []byte("terraform {\n  required_providers {\n    train = { source = \"stokehq/train\" }\n  }\n}\n"))
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	t.Chdir(dir)
	st := stage{in: os.Stdin, out: out, err: os.Stderr, environ: []string{"HOME=" + dir}, built: catalogue()}
	if code := execute([]string{"providers", "schema", "-json"}, st); code != 0 {
		t.Fatalf("providers schema: %d", code)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]object{}
	for _, p := range document(t, text)["provider_schemas"].(object) {
		schemas, _ := p.(object)["resource_schemas"].(object)
		experiment, ok := schemas["train_experiment"].(object)
		if !ok {
			continue
		}
		block := experiment["block"].(object)
		types := func(attributes any) object {
			found := object{}
			for name, a := range attributes.(object) {
				found[name] = a.(object)["type"]
			}
			return found
		}
		for name, b := range block["block_types"].(object) {
			parts[name] = types(b.(object)["block"].(object)["attributes"])
		}
		parts["hyperparameters"] = types(block["attributes"].(object)["hyperparameters"].(object)["nested_type"].(object)["attributes"])
	}
	return parts
}
