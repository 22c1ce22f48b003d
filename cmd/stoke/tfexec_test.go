package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/stokehq/stoke/plan/state/store/storetest"
)

const executed = `
terraform {
  required_version = ">= 1.5"
}

variable "token" {
  type      = string
  sensitive = true
  default   = "t"
}

resource "terraform_data" "a" {
  input = { size = 1, token = var.token }
}

resource "terraform_data" "b" {
  count            = 2
  input            = terraform_data.a.output.size
  triggers_replace = [terraform_data.a.id]
  lifecycle {
    postcondition {
      condition     = self.output == 1
      error_message = "Not one."
    }
  }
}

module "m" {
  source = "./m"
  text   = "x"
}

output "a" { value = terraform_data.a.id }

output "token" {
  value     = var.token
  sensitive = true
}

output "object" { value = { list = [1, "x"], m = module.m.text } }
`

const executedChild = `
variable "text" {}
resource "terraform_data" "c" { input = var.text }
output "text" { value = terraform_data.c.output }
`

// driven is the program as HashiCorp's library for Go drives it.
func driven(t *testing.T, files map[string]string) (*tfexec.Terraform, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path, err := exec.LookPath("stoke") // this binary: see TestMain
	if err != nil {
		t.Fatal(err)
	}
	tf, err := tfexec.NewTerraform(dir, path)
	if err != nil {
		t.Fatal(err)
	}
	return tf, dir
}

// steps runs commands that need nothing but to succeed.
func steps(t *testing.T, all ...error) {
	t.Helper()
	for i, err := range all {
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

// TestTerraformExec drives stoke through terraform-exec, as terratest, CI
// actions and operators do: what that library sends is understood, and what
// stoke answers, unchanged, is what it reads.
func TestTerraformExec(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	tf, dir := driven(t, map[string]string{"main.tf": executed, "m/main.tf": executedChild})
	v, _, err := tf.Version(ctx, true)
	if err != nil || v.String() != terraformVersion {
		t.Fatalf("version %v, %v", v, err)
	}
	steps(t, tf.Init(ctx, tfexec.Upgrade(false), tfexec.BackendConfig("path=terraform.tfstate")))
	if out, err := tf.Validate(ctx); err != nil || !out.Valid || out.FormatVersion != "1.0" {
		t.Fatalf("validate: %+v, %v", out, err)
	}
	changes, err := tf.Plan(ctx, tfexec.Out("p.plan"), tfexec.Var("token=secret"), tfexec.Parallelism(4))
	if err != nil || !changes {
		t.Fatalf("plan: %v, %v", changes, err)
	}
	pl, err := tf.ShowPlanFile(ctx, "p.plan")
	steps(t, err)
	if len(pl.ResourceChanges) != 4 || !pl.ResourceChanges[0].Change.Actions.Create() || pl.Variables["token"].Value != "secret" ||
		pl.Config.RootModule.ModuleCalls["m"].Source != "./m" || !pl.OutputChanges["token"].Actions.Create() {
		t.Errorf("the plan is %+v", pl)
	}
	if text, err := tf.ShowPlanFileRaw(ctx, "p.plan"); err != nil || !strings.Contains(text, "4 to add") || strings.Contains(text, "secret\"") {
		t.Errorf("the plan in words: %v\n%s", err, text)
	}
	steps(t, tf.Apply(ctx, tfexec.DirOrPlan("p.plan")))
	if changes, err := tf.Plan(ctx, tfexec.Var("token=secret")); err != nil || changes {
		t.Errorf("planned again: %v, %v", changes, err)
	}
	st, err := tf.Show(ctx)
	steps(t, err)
	if n := len(st.Values.RootModule.Resources); n != 3 || st.Values.RootModule.ChildModules[0].Address != "module.m" || st.Values.Outputs["token"].Value != "secret" {
		t.Errorf("%d resources in %+v", n, st.Values.RootModule)
	}
	steps(t, wrote(filepath.Join(dir, "copy.json"), func() (string, error) { return tf.StatePull(ctx) }))
	if copied, err := tf.ShowStateFile(ctx, "copy.json"); err != nil || !reflect.DeepEqual(copied.Values, st.Values) {
		t.Errorf("the state pulled: %v, %+v", err, copied)
	}
	outputs, err := tf.Output(ctx)
	steps(t, err)
	if o := outputs["token"]; !o.Sensitive || string(o.Value) != `"secret"` || len(outputs) != 3 {
		t.Errorf("outputs: %+v", outputs)
	}
	functions, err := tf.MetadataFunctions(ctx)
	if err != nil || functions.Signatures["upper"] == nil {
		t.Errorf("functions: %v", err)
	}
	schemas, err := tf.ProvidersSchema(ctx)
	if err != nil || schemas.Schemas["terraform.io/builtin/terraform"].ResourceSchemas["terraform_data"].Block.Attributes["input"] == nil {
		t.Errorf("schemas: %+v, %v", schemas, err)
	}
	if text, err := tf.Graph(ctx); err != nil || !strings.HasPrefix(text, "digraph") {
		t.Errorf("graph: %v, %s", err, text)
	}
	steps(t, tf.Destroy(ctx, tfexec.Target("terraform_data.b[1]")), tf.Destroy(ctx))
	if st, err := tf.Show(ctx); err != nil || st.Values != nil {
		t.Errorf("after destroying: %+v, %v", st, err)
	}
}

// offered reports whether the program has all of the commands.
func offered(names ...string) bool {
	have := commandNames(newRoot(newSession(stage{in: os.Stdin, out: os.Stdout, err: os.Stderr})))
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(have, name) })
}

func wrote(name string, text func() (string, error)) error {
	s, err := text()
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(s), 0o600)
}

// TestTerraformExecState drives the commands that work on states.
func TestTerraformExecState(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	tf, dir := driven(t, map[string]string{"main.tf": executed, "m/main.tf": executedChild})
	if !offered("get", "refresh", "import", "taint") {
		t.Skip("not all commands are there yet")
	}
	steps(t, tf.Init(ctx), tf.Get(ctx), tf.Apply(ctx), tf.StateMv(ctx, "terraform_data.b[1]", "terraform_data.z"), tf.StateRm(ctx, "terraform_data.z"),
		tf.Taint(ctx, "terraform_data.a"), tf.Untaint(ctx, "terraform_data.a"), tf.Refresh(ctx),
		tf.Import(ctx, "terraform_data.b[1]", "some-id"))
	st, err := tf.Show(ctx)
	steps(t, err)
	var got []string
	for _, r := range st.Values.RootModule.Resources {
		got = append(got, r.Address)
	}
	if want := []string{"terraform_data.a", "terraform_data.b[0]", "terraform_data.b[1]"}; !slices.Equal(got, want) {
		t.Errorf("the state holds %q, want %q", got, want)
	}
	text, err := tf.StatePull(ctx)
	steps(t, err, os.WriteFile(filepath.Join(dir, "s.json"), []byte(text), 0o600), tf.StatePush(ctx, "s.json"))

	steps(t, tf.WorkspaceNew(ctx, "blue"))
	if all, current, err := tf.WorkspaceList(ctx); err != nil || current != "blue" || !slices.Equal(all, []string{"default", "blue"}) && !slices.Equal(all, []string{"blue", "default"}) {
		t.Errorf("workspaces %q, %q, %v", all, current, err)
	}
	if name, err := tf.WorkspaceShow(ctx); err != nil || name != "blue" {
		t.Errorf("workspace %q, %v", name, err)
	}
	steps(t, tf.WorkspaceSelect(ctx, "default"), tf.WorkspaceDelete(ctx, "blue"))
	if err := tf.ForceUnlock(ctx, "no-such-lock"); err == nil {
		t.Error("a lock was broken that nobody holds")
	}
	unlock(t, tf, dir)

	if ok, files, err := tf.FormatCheck(ctx); err != nil || !ok {
		t.Errorf("format: %v, %q, %v", ok, files, err)
	}
	if text, err := tf.FormatString(ctx, "a   = 1\nbb = 2\n"); err != nil || text != "a  = 1\nbb = 2\n" {
		t.Errorf("formatted as %q, %v", text, err)
	}
}

// unlock breaks a lock that a dead holder has left on a state in a server.
func unlock(t *testing.T, tf *tfexec.Terraform, dir string) {
	t.Helper()
	ctx := context.Background()
	web := httptest.NewServer(&storetest.Web{})
	defer web.Close()
	steps(t, os.WriteFile(filepath.Join(dir, "backend.tf"), []byte("terraform {\n  backend \"http\" {}\n}\n"), 0o600),
		tf.Init(ctx, tfexec.Reconfigure(true), tfexec.BackendConfig("address="+web.URL+"/state"),
			tfexec.BackendConfig("lock_address="+web.URL+"/lock"), tfexec.BackendConfig("unlock_address="+web.URL+"/lock")),
		tf.Apply(ctx))
	lock := func() {
		req, err := http.NewRequest("LOCK", web.URL+"/lock", strings.NewReader(`{"ID":"left-behind","Operation":"Apply","Who":"somebody"}`))
		steps(t, err)
		resp, err := web.Client().Do(req)
		steps(t, err)
		_ = resp.Body.Close()
	}
	lock()
	if err := tf.Apply(ctx); err == nil || !strings.Contains(err.Error(), "left-behind") {
		t.Errorf("applied beside a lock: %v", err)
	}
	steps(t, tf.ForceUnlock(ctx, "left-behind"), tf.Apply(ctx), tf.Destroy(ctx))
}

// TestTerraformExecJSON reads the event streams with terraform-json.
func TestTerraformExecJSON(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	tf, dir := driven(t, map[string]string{"main.tf": executed, "m/main.tf": executedChild})
	var all bytes.Buffer
	steps(t, tf.InitJSON(ctx, &all))
	if _, err := tf.PlanJSON(ctx, &all, tfexec.Out("p")); err != nil {
		t.Fatal(err)
	}
	steps(t, tf.ApplyJSON(ctx, &all, tfexec.DirOrPlan("p")))
	if offered("refresh") {
		steps(t, tf.RefreshJSON(ctx, &all))
	}
	steps(t, tf.DestroyJSON(ctx, &all))
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("resource \"terraform_data\" \"a\" {\n  inputs = 1\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tf.PlanJSON(ctx, &all); err == nil {
		t.Error("a misspelled argument is planned")
	}
	events := bytes.Clone(all.Bytes())
	if out, err := tf.Validate(ctx); err != nil || out.Valid || out.Diagnostics[0].Range.Start.Line != 2 {
		t.Errorf("validate: %+v, %v", out, err)
	}
	kinds := map[tfjson.LogMessageType]int{}
	lines := bufio.NewScanner(bytes.NewReader(events))
	for lines.Scan() {
		m, err := tfjson.UnmarshalLogMessage(lines.Bytes())
		if err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		var raw struct {
			Type      tfjson.LogMessageType `json:"type"`
			Timestamp string                `json:"@timestamp"`
		}
		if err := json.Unmarshal(lines.Bytes(), &raw); err != nil || m.Message() == "" || raw.Timestamp == "" {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		kinds[raw.Type]++
	}
	for _, want := range []tfjson.LogMessageType{
		"version", "planned_change", "change_summary", "outputs", "apply_start", "apply_complete", "diagnostic", "init_output",
	} {
		if kinds[want] == 0 {
			t.Errorf("the streams hold no %s: %v", want, kinds)
		}
	}
}
