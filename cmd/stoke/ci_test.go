package main

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ctyyaml "github.com/zclconf/go-cty-yaml"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/plan/state/store/storetest"
)

const pipelineConfig = `
terraform {
  backend "http" {}
}
variable "token" { sensitive = true }
variable "size" { default = 1 }
resource "terraform_data" "a" {
  input            = { token = var.token }
  triggers_replace = var.size
}
`

// standIns are gh and curl as the pipelines use them: comments lie in
// $SERVICE, artefacts in $SERVICE/artefact, and every request is in the log.
var standIns = map[string]string{
	"gh": `#!/bin/sh
echo "gh $*" >> "$SERVICE/log"
all="$*"
while [ $# -gt 1 ] && [ "$1" != --jq ]; do shift; done
case "$all" in
"api --paginate"*/comments*) text='[{"id":5,"user":{"type":"Bot"},"body":"Hello"},{"id":6,"user":{"type":"User"},"body":"<!-- stoke plan -->"}'
	[ ! -f "$SERVICE/comment" ] || text="$text"',{"id":7,"user":{"type":"Bot"},"body":"<!-- stoke plan -->\n##"}'
	printf '%s]' "$text" | jq -r "$2" ;;
"api --silent --method PATCH "*/comments/7*|"api --silent --method POST "*/1/comments*) cp comment.md "$SERVICE/comment" ;;
"api "*"/def/pulls"*) jq -r "$2" "$SERVICE/merged" ;;
"run list"*"--commit abc "*) echo '[{"databaseId":42},{"databaseId":41}]' | jq -r "$2" ;;
"run download 42 "*"--name stoke-plan") cp "$SERVICE/artefact" plan.stoke ;;
*) echo "gh does not know: $all" >&2; exit 1 ;;
esac
`,
	"curl": `#!/bin/sh
echo "curl $*" >> "$SERVICE/log"
case "$*" in
*"-X PUT"*/notes/7*|*"-X POST"*/notes*) cp comment.md "$SERVICE/comment" ;;
*/merge_requests/3/notes*) text='[{"id":5,"body":"Hello"}'
	[ ! -f "$SERVICE/comment" ] || text="$text"',{"id":7,"body":"<!-- stoke plan -->\n##"}'
	printf '%s]' "$text" ;;
*/def/merge_requests) cat "$SERVICE/merged" ;;
*"-o plan.stoke"*/jobs/artifacts/refs%2Fmerge-requests%2F3%2Fhead/raw/plan.stoke*) cp "$SERVICE/artefact" plan.stoke ;;
*) echo "curl does not know: $*" >&2; exit 1 ;;
esac
`,
}

// TestPipelines runs the shell of examples/ci, as a runner would: a plan in
// one folder, its artefact taken to another, an apply there.
func TestPipelines(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not installed")
		}
	}
	t.Run("github", func(t *testing.T) { t.Parallel(); githubJobs(t).merge() })
	t.Run("gitlab", func(t *testing.T) { t.Parallel(); gitlabJobs(t).merge() })
}

// runner runs jobs.
type runner struct {
	*testing.T
	jobs    map[string][]string // scripts
	tools   string
	service string
	state   string // a server's address
	env     []string
}

func newRunner(t *testing.T, jobs map[string][]string) *runner {
	t.Helper()
	web := httptest.NewServer(&storetest.Web{ETags: true, User: "u", Password: canary})
	t.Cleanup(web.Close)
	r := &runner{T: t, jobs: jobs, tools: t.TempDir(), service: t.TempDir(), state: web.URL}
	for name, text := range standIns {
		if err := os.WriteFile(filepath.Join(r.tools, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path, err := exec.LookPath("stoke") // this binary: see TestMain
	if err != nil {
		t.Fatal(err)
	}
	r.env = []string{
		"PATH=" + r.tools + ":" + filepath.Dir(path) + ":" + os.Getenv("PATH"), "HOME=" + r.service, "SERVICE=" + r.service, "GORACE=" + os.Getenv("GORACE"),
		"TF_IN_AUTOMATION=1", "TF_INPUT=0", "TF_HTTP_ADDRESS=" + r.state + "/state", "TF_HTTP_LOCK_ADDRESS=" + r.state + "/lock",
		"TF_HTTP_UNLOCK_ADDRESS=" + r.state + "/lock", "TF_HTTP_USERNAME=u", "TF_HTTP_PASSWORD=" + canary, "TF_VAR_token=" + canary,
		"GITHUB_REPOSITORY=o/r", "GITHUB_SHA=def", "GITHUB_STEP_SUMMARY=" + filepath.Join(r.service, "summary"), "HEAD_SHA=abc", "NUMBER=1",
		"CI_API_V4_URL=http://gitlab", "CI_PROJECT_ID=1", "CI_MERGE_REQUEST_IID=3", "CI_COMMIT_SHA=def", "GITLAB_TOKEN=" + canary,
	}
	return r
}

// job runs a job in a fresh folder with the configuration, and returns the
// folder and what was said.
func (r *runner) job(name string, ok bool, env ...string) (dir, said string) {
	r.Helper()
	dir = r.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(strings.TrimPrefix(pipelineConfig, "\n")), 0o644); err != nil {
		r.Fatal(err)
	}
	var err error
	for _, script := range r.jobs[name] {
		cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
		cmd.Dir, cmd.Env = dir, append(r.env[:len(r.env):len(r.env)], env...)
		var out []byte
		out, err = cmd.CombinedOutput()
		said += string(out)
		if err != nil {
			break
		}
	}
	if (err == nil) != ok {
		r.Fatalf("%s: %v\n%s", name, err, said)
	}
	if found := sighting([]byte(said)); found != "" {
		r.Errorf("%s says %s", name, found)
	}
	return dir, said
}

// merge is the life of a request: planned, planned again, merged.
func (r *runner) merge() {
	const key = "STOKE_PLAN_KEY=from-the-secrets"
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(r.service, name), []byte(text), 0o644); err != nil {
			r.Fatal(err)
		}
	}
	planned := func(env ...string) {
		r.Helper()
		dir, _ := r.job("plan", true, append(env, key)...)
		artefact, err := os.ReadFile(filepath.Join(dir, "plan.stoke"))
		if err != nil {
			r.Fatal(err)
		}
		write("artefact", string(artefact))
		comment, err := os.ReadFile(filepath.Join(r.service, "comment"))
		if err != nil || !strings.HasPrefix(string(comment), "<!-- stoke plan -->\n## Plan: 1 to add") {
			r.Fatalf("the comment: %v\n%s", err, comment)
		}
		for what, text := range map[string][]byte{"the artefact": artefact, "the comment": comment} {
			if found := sighting(text); found != "" {
				r.Errorf("%s holds %s", what, found)
			}
		}
	}
	r.job("plan", false)
	planned()
	planned("TF_VAR_size=2")
	log, err := os.ReadFile(filepath.Join(r.service, "log"))
	if made, again := strings.Count(string(log), "POST"), strings.Count(string(log), "PATCH")+strings.Count(string(log), "PUT"); err != nil || made != 1 || again != 1 {
		r.Errorf("the comment was made %d times and updated %d times:\n%s", made, again, log)
	}

	write("merged", "[]")
	if _, said := r.job("apply", false, key); !strings.Contains(said, "no plan that was reviewed") {
		r.Errorf("a push without a request: %s", said)
	}
	write("merged", `[{"merged_at":null,"state":"closed","iid":2,"head":{"sha":"no"}},{"merged_at":"2026","state":"merged","iid":3,"head":{"sha":"abc"}}]`)
	r.job("apply", false) // without the key
	if _, said := r.job("apply", false, "STOKE_PLAN_KEY=another"); !strings.Contains(said, "was sealed with another") {
		r.Errorf("with another key: %s", said)
	}
	if _, said := r.job("apply", true, key, "TF_VAR_token="); !strings.Contains(said, "1 added") {
		r.Errorf("applied: %s", said)
	}
	if _, said := r.job("apply", false, key); !strings.Contains(said, "Saved plan is stale") {
		r.Errorf("applied twice: %s", said)
	}
}

// pipelineFile reads a file of examples/ci, which has to be YAML.
func pipelineFile(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleRoot, "examples/ci", name))
	if err != nil {
		t.Fatal(err)
	}
	ty, err := ctyyaml.ImpliedType(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ctyyaml.Unmarshal(text, ty)
	if err != nil {
		t.Fatal(err)
	}
	js, err := ctyjson.Marshal(v, ty)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(js, into); err != nil {
		t.Fatal(err)
	}
}

// scriptsOf drops the installation, and what is for failures alone.
func scriptsOf(t *testing.T, name string, scripts []string) []string {
	t.Helper()
	kept := slices.DeleteFunc(slices.Clone(scripts), func(s string) bool { return strings.Contains(s, "go install") })
	if len(kept) == len(scripts) || !strings.Contains(strings.Join(scripts, "\n"), "cmd/stoke@${STOKE_VERSION:?") {
		t.Errorf("%s does not install a version that is named", name)
	}
	for _, s := range kept {
		if strings.Contains(s, "${{") {
			t.Errorf("%s puts what may be anybody's text into a script: %s", name, s)
		}
	}
	return kept
}

func githubJobs(t *testing.T) *runner {
	var file struct {
		Jobs map[string]struct {
			Env   map[string]string `json:"env"`
			Steps []struct {
				Uses, Run, If string
				With          map[string]any
			} `json:"steps"`
		} `json:"jobs"`
	}
	pipelineFile(t, "github-actions.yml", &file)
	jobs := map[string][]string{}
	for name, job := range file.Jobs {
		var scripts []string
		uploads := 0
		for _, step := range job.Steps {
			switch {
			case step.Run != "" && step.If != "failure()":
				scripts = append(scripts, step.Run)
			case strings.HasPrefix(step.Uses, "actions/upload-artifact@"):
				uploads++
				if step.With["path"] != "plan.stoke" || step.With["name"] != "stoke-plan" {
					t.Errorf("the artefact is %v", step.With)
				}
			}
		}
		if name == "plan" && uploads != 1 {
			t.Errorf("%d artefacts", uploads)
		}
		if job.Env["STOKE_PLAN_KEY"] != "${{ secrets.STOKE_PLAN_KEY }}" {
			t.Errorf("the job %s has no key", name)
		}
		jobs[name] = scriptsOf(t, name, scripts)
	}
	if names := slices.Sorted(maps.Keys(jobs)); !slices.Equal(names, []string{"apply", "plan"}) {
		t.Fatalf("the jobs are %q", names)
	}
	return newRunner(t, jobs)
}

func gitlabJobs(t *testing.T) *runner {
	type job struct {
		Extends      string   `json:"extends"`
		BeforeScript []string `json:"before_script"`
		Script       []string `json:"script"`
		Artifacts    struct {
			Paths []string `json:"paths"`
		} `json:"artifacts"`
	}
	var file struct {
		Base  job `json:".stoke"`
		Plan  job `json:"plan"`
		Apply job `json:"apply"`
	}
	pipelineFile(t, "gitlab-ci.yml", &file)
	if !slices.Equal(file.Plan.Artifacts.Paths, []string{"plan.stoke"}) || len(file.Apply.Artifacts.Paths) > 0 {
		t.Errorf("the artefacts are %q", file.Plan.Artifacts.Paths)
	}
	jobs := map[string][]string{}
	for name, j := range map[string]job{"plan": file.Plan, "apply": file.Apply} {
		if j.Extends != ".stoke" {
			t.Errorf("the job %s does not extend .stoke", name)
		}
		installs := file.Base.BeforeScript[slices.IndexFunc(file.Base.BeforeScript, func(s string) bool { return strings.Contains(s, "go install") })]
		// GitLab runs all lines in one shell.
		jobs[name] = []string{strings.Join(scriptsOf(t, name, append([]string{installs}, j.Script...)), "\n")}
	}
	return newRunner(t, jobs)
}
