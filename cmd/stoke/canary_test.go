package main

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/plan/state/store/storetest"
)

// canary begins every secret in the tests below: nothing else holds it.
const canary = "Kanarienvogel7x"

// canaryConfig has secrets of every kind. A word after the canary says which.
const canaryConfig = `
variable "token" {
  type      = string
  sensitive = true
}
variable "settings" {
  type      = object({ user = string, password = string })
  sensitive = true
}
variable "once" {
  type      = string
  ephemeral = true
}
variable "suffix" { default = "1" }
variable "delay" { default = null }
variable "fail" { default = null }

locals {
  key = sensitive(file("${path.module}/secret.txt"))
  url = "https://user:${var.token}@localhost/"
}

resource "terraform_data" "a" {
  input            = { token = var.token, all = var.settings, list = [local.key], text = "first\n${var.token}\nlast\n" }
  triggers_replace = [var.suffix, var.token]
}
resource "terraform_data" "b" {
  count = 2
  input = "${local.url}${var.suffix}"
}
resource "test_secret" "c" {
  directory      = "out"
  name           = "c"
  secret         = var.once
  secret_version = var.suffix
  password       = "` + canary + `declared${var.suffix}"
}
resource "test_file" "d" {
  directory  = "out"
  name       = "d${var.suffix}"
  content    = jsonencode({ token = var.token })
  delay      = var.delay
  fail       = var.fail
  depends_on = [terraform_data.a, test_secret.c]
}
module "m" {
  source = "./m"
  token  = var.token
}

check "token" {
  assert {
    condition     = length(var.token) < 10
    error_message = "The token is too long."
  }
}

output "token" {
  value     = var.token
  sensitive = true
}
output "all" {
  value     = { a = terraform_data.a, m = module.m.token }
  sensitive = true
}
output "plain" { value = test_file.d.name }
`

const canaryModule = `
variable "token" { sensitive = true }
resource "terraform_data" "x" { input = [var.token] }
output "token" {
  value     = terraform_data.x.output
  sensitive = true
}
`

// aviary is a folder in which nothing may let the canary out.
type aviary struct {
	t   *testing.T
	dir string
	env []string
}

func newAviary(t *testing.T, files map[string]string, env ...string) *aviary {
	t.Helper()
	a := &aviary{t: t, dir: t.TempDir(), env: append(os.Environ(),
		"TF_LOG=trace", "TF_LOG_PATH=stoke.log", "TF_VAR_once="+canary+"ephemeral", "TF_IN_AUTOMATION=1")}
	a.env = append(a.env, env...)
	for name, text := range files {
		a.write(name, text)
	}
	return a
}

func (a *aviary) write(name, text string) {
	a.t.Helper()
	name = filepath.Join(a.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *aviary) command(stdin string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	path, err := exec.LookPath("stoke") // this binary: see TestMain
	if err != nil {
		a.t.Fatal(err)
	}
	out := &bytes.Buffer{}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = a.dir, a.env, strings.NewReader(stdin), out, out
	return cmd, out
}

// run runs a command and looks at all that it has said and written.
func (a *aviary) run(ok bool, args ...string) string {
	a.t.Helper()
	return a.typed(ok, "", args...)
}

func (a *aviary) typed(ok bool, stdin string, args ...string) string {
	a.t.Helper()
	cmd, out := a.command(stdin, args...)
	if err := cmd.Run(); (err == nil) != ok {
		a.t.Fatalf("stoke %q: %v\n%s", args, err, out)
	}
	what := "stoke " + strings.Join(args, " ")
	if found := sighting(out.Bytes()); found != "" {
		a.t.Errorf("%s says %s", what, found)
	}
	a.search(what)
	return out.String()
}

// secretly runs a command whose output may hold secrets, and does.
func (a *aviary) secretly(args ...string) {
	a.t.Helper()
	cmd, out := a.command("", args...)
	if err := cmd.Run(); err != nil {
		a.t.Fatalf("stoke %q: %v\n%s", args, err, out)
	}
	if sighting(out.Bytes()) == "" {
		a.t.Errorf("stoke %q does not show what it is asked for", args)
	}
	a.search("stoke " + strings.Join(args, " "))
}

// search looks into every file but those that hold the secrets by design:
// the configuration, the snapshots of states, and the objects themselves.
func (a *aviary) search(after string) {
	a.t.Helper()
	err := filepath.WalkDir(a.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(a.dir, path)
		base := filepath.Base(name)
		if strings.HasSuffix(base, ".tf") || base == "secret.txt" || base == "terraform.tfvars" || strings.HasPrefix(name, "out/") ||
			base == "terraform.tfstate" || strings.HasPrefix(base, "terraform.tfstate.") && strings.HasSuffix(base, "backup") {
			if name != ".terraform/terraform.tfstate" {
				return nil
			}
		}
		text, err := os.ReadFile(path)
		if found := sighting(text); found != "" {
			a.t.Errorf("after %s, %s holds %s", after, name, found)
		}
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
}

// sighting is a piece of text around the canary, or "". It is looked for as it
// is, in base64, in hexadecimal, and within archives.
func sighting(text []byte) string {
	if bytes.HasPrefix(text, []byte("PK")) {
		if z, err := zip.NewReader(bytes.NewReader(text), int64(len(text))); err == nil {
			for _, f := range z.File {
				if strings.HasSuffix(f.Name, ".tf") {
					continue // the configuration, with what somebody has written into it
				}
				r, err := f.Open()
				if err != nil {
					return err.Error()
				}
				inner, err := io.ReadAll(r)
				if err != nil {
					return err.Error()
				}
				if found := sighting(inner); found != "" {
					return f.Name + ": " + found
				}
			}
		}
	}
	for _, form := range canaryForms() {
		if i := bytes.Index(text, []byte(form)); i >= 0 {
			return string(text[max(0, i-60):min(len(text), i+len(form)+30)])
		}
	}
	return ""
}

func canaryForms() []string {
	forms := []string{canary, hex.EncodeToString([]byte(canary)), strings.ToUpper(hex.EncodeToString([]byte(canary)))}
	for shift := range 3 { // where it stands within groups of three bytes
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			text := e.EncodeToString([]byte(strings.Repeat("\x00", shift) + canary))
			forms = append(forms, text[4:len(text)-4])
		}
	}
	return forms
}

// TestCanary has every command work with secrets: they are where they are
// meant to be, and nowhere in what is said, logged or written otherwise.
func TestCanary(t *testing.T) {
	t.Parallel()
	files := map[string]string{"main.tf": canaryConfig, "m/main.tf": canaryModule, "secret.txt": canary + "file",
		"terraform.tfvars": "token = \"" + canary + "variable\"\nsettings = {\n  user     = \"root\"\n  password = \"" + canary + "nested\"\n}\n"}
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		if underRace {
			t.Skip("what is said is the same; one life is enough to look for races")
		}
		a := newAviary(t, files)
		a.life(true)
		a.mistakes()
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		web := &storetest.Web{ETags: true, User: "u", Password: canary + "backend"}
		srv := httptest.NewServer(web)
		defer srv.Close()
		a := newAviary(t, files, "TF_HTTP_PASSWORD="+web.Password)
		a.write("backend.tf", "terraform {\n  backend \"http\" {\n    address        = \""+srv.URL+"/state\"\n    lock_address   = \""+srv.URL+"/lock\"\n    unlock_address = \""+srv.URL+"/lock\"\n    username       = \"u\"\n  }\n}\n")
		a.life(false)
		srv.Close()
		a.run(false, "plan")
	})
}

// life is all that may happen to a configuration.
func (a *aviary) life(local bool) {
	a.run(true, "init")
	a.run(true, "validate")
	a.run(true, "validate", "-json")
	a.run(true, "plan")
	a.run(true, "plan", "-json", "-out=p")
	a.planFile("p")
	a.run(true, "apply", "p")
	a.run(true, "plan", "-detailed-exitcode")
	a.reading()

	a.write("secret.txt", canary+"file2")
	a.run(true, "plan", "-out=p", "-var=suffix=2", "-var=token="+canary+"other")
	a.planFile("p")
	a.run(true, "show", "-no-color", "p")
	a.run(true, "apply", "-json", "p")
	a.run(true, "state", "mv", "terraform_data.b[1]", "terraform_data.z")
	a.run(true, "plan", "-out=p")
	a.planFile("p")
	a.run(true, "state", "rm", "terraform_data.z")
	a.run(true, "taint", "terraform_data.a")
	a.run(true, "plan")
	a.run(true, "untaint", "terraform_data.a")
	a.run(true, "refresh")
	a.run(true, "apply", "-refresh-only", "-auto-approve", "-json")
	a.run(true, "state", "rm", "test_file.d")
	a.run(true, "import", "test_file.d", "out/d2")

	a.run(false, "apply", "-auto-approve", "-var=suffix=3", "-var=fail=create")
	a.run(false, "apply", "-auto-approve", "-json", "-var=suffix=3", "-var=fail=panic", "-var=token="+canary+"panic")
	a.run(true, "plan", "-var=suffix=3")
	a.killed(local)
	a.run(true, "plan", "-destroy", "-out=p")
	a.planFile("p")
	a.run(true, "destroy", "-auto-approve")
}

// planFile shows a saved plan in every way; that as JSON is documented to hold
// what is sensitive, as long as there is a key.
func (a *aviary) planFile(name string) {
	a.t.Helper()
	a.run(true, "show", name)
	a.run(true, "show", "-markdown", name)
	a.secretly("show", "-json", name)
	a.run(true, "graph", "-plan="+name)
	key := filepath.Join(a.dir, ".terraform", planKeyFile)
	if err := os.Rename(key, key+"2"); err != nil {
		a.t.Fatal(err)
	}
	a.run(true, "show", "-json", name)
	if err := os.Rename(key+"2", key); err != nil {
		a.t.Fatal(err)
	}
}

// reading is all that only looks.
func (a *aviary) reading() {
	a.run(true, "show")
	a.run(true, "show", "-markdown")
	a.secretly("show", "-json")
	a.secretly("state", "pull")
	a.run(true, "state", "list")
	for _, address := range []string{"terraform_data.a", "terraform_data.b[0]", "test_secret.c", "test_file.d", "module.m.terraform_data.x"} {
		if text := a.run(true, "state", "show", address); !strings.Contains(text, "(sensitive value)") {
			a.t.Errorf("%s holds nothing sensitive", address)
		}
	}
	a.run(true, "output")
	a.secretly("output", "-json")
	a.secretly("output", "-raw", "token")
	a.run(true, "providers")
	a.run(true, "graph")
	for _, expression := range []string{
		"var.token", "var.settings", "local.url", "local.key", "terraform_data.a", "test_secret.c", "test_file.d", "module.m",
		"[for c in split(\"\", var.token) : c]", "{ x = var.token }", "type(var.token)",
	} {
		a.typed(true, expression+"\n", "console")
	}
	for _, expression := range []string{"tonumber(var.token)", "var.token.x", "regex(\"^x\", var.token)", "jsondecode(var.token)", "var.settings.absent"} {
		a.typed(false, expression+"\n", "console")
	}
}

// killed kills an apply that has secrets in its journal, looks at what it has
// left behind, and goes on from there.
func (a *aviary) killed(local bool) {
	a.t.Helper()
	log, err := os.ReadFile(filepath.Join(a.dir, "stoke.log"))
	if err != nil {
		a.t.Fatal(err)
	}
	begun := len(log)
	cmd, out := a.command("", "apply", "-auto-approve", "-var=suffix=4", "-var=delay=1h")
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			a.t.Fatalf("the apply that is to be killed does not begin:\n%s", out)
		}
		if log, err := os.ReadFile(filepath.Join(a.dir, "stoke.log")); err == nil && bytes.Contains(log[min(begun, len(log)):], []byte("applying: address=test_file.d")) {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		a.t.Fatal(err)
	}
	_ = cmd.Wait()
	if found := sighting(out.Bytes()); found != "" {
		a.t.Errorf("the apply that was killed says %s", found)
	}
	if journals, _ := filepath.Glob(filepath.Join(a.dir, "*journal*")); local && len(journals) == 0 {
		a.t.Errorf("the apply that was killed has left no journal:\n%s", out)
	}
	a.search("an apply that was killed")
	if !local {
		cmd, out := a.command("", "plan")
		_ = cmd.Run()
		if id := regexp.MustCompile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").FindString(out.String()); id != "" {
			a.run(true, "force-unlock", "-force", id)
		}
	}
	a.run(true, "plan", "-var=suffix=4")
	a.run(true, "apply", "-auto-approve", "-var=suffix=5")
}

// mistakes are configurations that do not work, for which messages show what
// expressions stand for.
func (a *aviary) mistakes() {
	const head = "variable \"token\" {\n  sensitive = true\n}\nvariable \"settings\" {\n  sensitive = true\n}\n"
	for _, mistake := range []string{
		"resource \"terraform_data\" \"a\" {\n  for_each = toset([var.token])\n}",
		"resource \"terraform_data\" \"a\" {\n  count = var.token\n}",
		"resource \"terraform_data\" \"a\" {\n  input = var.token.x\n}",
		"resource \"terraform_data\" \"a\" {\n  input = tonumber(var.token)\n}",
		"resource \"terraform_data\" \"a\" {\n  input = \"x\" + var.token\n}",
		"resource \"test_file\" \"a\" {\n  directory = \"out\"\n  name = \"a/${var.token}\"\n}",
		"resource \"test_file\" \"a\" {\n  directory = \"out\"\n  name = \"a\"\n  delay = var.token\n}",
		"resource \"test_file\" \"a\" {\n  directory = \"out\"\n  name = \"a\"\n  fail = var.token\n}",
		"resource \"terraform_data\" \"a\" {\n  input = var.token\n  lifecycle {\n    precondition {\n      condition = var.token == \"\"\n      error_message = \"It is ${var.token}.\"\n    }\n  }\n}",
		"output \"a\" {\n  value = var.token\n}",
		"output \"a\" {\n  value = nonsensitive(1)\n  precondition {\n    condition = var.token == \"\"\n    error_message = \"It is not.\"\n  }\n}",
		"data \"test_file\" \"a\" {\n  directory = \"out\"\n  name = var.token\n}",
		"resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    command = var.token\n  }\n}",
		"locals {\n  a = templatestring(\"$${x}\", { y = var.token })\n}\noutput \"a\" {\n  value = local.a\n}",
		"import {\n  to = test_file.i\n  id = var.token\n}\nresource \"test_file\" \"i\" {\n  directory = \"out\"\n  name = \"i\"\n}",
		"provider \"test\" {\n  token = var.token\n}\nresource \"test_file\" \"i\" {\n  directory = \"out\"\n  name = \"i\"\n}",
		"terraform {\n  backend \"http\" {\n    address = var.token\n  }\n}",
		"variable \"size\" {\n  sensitive = true\n  default   = \"" + canary + "\"\n  validation {\n    condition = length(var.size) < 3\n    error_message = \"Not ${var.size}.\"\n  }\n}",
	} {
		a.write("main.tf", head+mistake+"\n")
		before := a.t.Failed()
		a.run(false, "plan", "-no-color")
		a.run(false, "plan", "-json")
		a.either("validate", "-json")
		if a.t.Failed() && !before {
			a.t.Logf("with:\n%s", mistake)
		}
	}
}

func (a *aviary) either(args ...string) {
	a.t.Helper()
	cmd, out := a.command("", args...)
	_ = cmd.Run()
	if found := sighting(out.Bytes()); found != "" {
		a.t.Errorf("stoke %q says %s", args, found)
	}
	a.search("stoke " + strings.Join(args, " "))
}
