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
	st := stage{in: os.Stdin, out: out, err: out, environ: []string{"HOME=" + dir, "TF_CLI_CONFIG_FILE=" + os.DevNull}}
	if len(files) > 1 {
		if code := execute([]string{"-chdir=" + dir, "get"}, st); code != 0 {
			t.Fatalf("%s: get: %d", what, code)
		}
		if err := out.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
	}
	execute([]string{"-chdir=" + dir, "validate", "-json"}, st)
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
