package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/plan/state/store/storetest"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// commandTime is how long a command line may take before it is taken for one
// that hangs.
const commandTime = 10 * time.Minute

// moduleRoot is where pages are, from this package's folder.
const moduleRoot = "../../"

// onClusters is why a command line is left to TestKubernetesExamples.
const onClusters = "needs a cluster; TestKubernetesExamples runs it on one"

// elsewhere lists the command lines that are not run as they stand, and why.
var elsewhere = []struct{ page, line, instead, why string }{
	{"README.md", "make quickstart", "", "builds; what it runs then is run below, as recorded"},
	{"README.md", "make test", "", "is what runs this test"},
	{"README.md", "./bin/stoke -chdir=examples/mnist apply -auto-approve -var data_dir=/path/to/mnist", "", "needs the MNIST files and minutes"},
	{"README.md", "kill -9 $(pgrep -x stoke)", "", "ends processes of others on the same machine"},
	{"docs/getting-started.md", "git clone https://github.com/stokehq/stoke", "", "needs the network"},
	{"docs/getting-started.md", "make -C stoke build", "", "has been done"},
	{"examples/cifar10/README.md", "./bin/stoke -chdir=examples/cifar10 apply -var pictures=/path/to/cifar10", "", "needs CIFAR-10; TestResNet runs it"},
	{"examples/elasticdl-cluster/README.md", "./bin/stoke -chdir=examples/elasticdl-cluster plan -var push=registry.example.com/lab/trainer:1", "", onClusters},
	{"examples/elasticdl-cluster/README.md", "./bin/stoke -chdir=examples/elasticdl-cluster apply -var push=registry.example.com/lab/trainer:1", "", "needs nodes that run pods, and a registry"},
	{"examples/elasticdl-cluster/README.md", "./bin/stoke -chdir=examples/elasticdl-cluster status module.mnist.train_experiment.this", "", "follows from the one before"},
	{"examples/elasticdl-cluster/README.md", "./bin/stoke -chdir=examples/elasticdl-cluster logs -f module.mnist.train_experiment.this", "", "follows from the one before"},
	{"examples/elasticdl-cluster/README.md", "./bin/stoke -chdir=examples/elasticdl-cluster destroy -var push=registry.example.com/lab/trainer:1", "", "follows from the one before"},
	{"examples/elasticdl-local/README.md", "./bin/stoke -chdir=examples/elasticdl-local apply -auto-approve", "./bin/stoke -chdir=examples/elasticdl-local apply -auto-approve -var records=640", "trains for a minute"},
	{"examples/elasticdl-local/README.md", "./bin/stoke -chdir=examples/elasticdl-local plan -var strategy=parameter_server", "./bin/stoke -chdir=examples/elasticdl-local plan -var strategy=parameter_server -var records=640", "follows from the one before"},
	{"examples/metal-gpu-cluster/README.md", "./bin/stoke -chdir=examples/metal-gpu-cluster plan", "", "needs machines; TestClusterExample of providers/metal runs it on some"},
	{"examples/metal-gpu-cluster/README.md", "./bin/stoke -chdir=examples/metal-gpu-cluster apply", "", "needs machines; TestClusterRealKubeadm of providers/metal makes such a cluster"},
	{"examples/metal-hosts/README.md", "./bin/stoke -chdir=examples/metal-hosts plan", "", "needs machines; the suite of providers/metal runs it on some"},
	{"examples/metal-hosts/README.md", "./bin/stoke -chdir=examples/metal-hosts apply", "", "needs machines; the suite of providers/metal runs it on some"},
	{"examples/mlbench/README.md", "./bin/stoke -chdir=examples/mlbench plan", "", onClusters},
	{"examples/mlbench/README.md", "./bin/stoke -chdir=examples/mlbench apply -var push=registry.example.com/lab/mlbench:1", "", "needs nodes that run pods, and a registry"},
	{"examples/mlbench/README.md", "./bin/stoke -chdir=examples/mlbench apply -target=module.benchmark.train_image.this", "", "TestExampleRealPods runs it and what follows"},
	{"examples/mlbench/README.md", "kind load image-archive examples/mlbench/mlbench.tar", "", "needs kind"},
	{"examples/mlbench/README.md", "./bin/stoke -chdir=examples/mlbench apply", "", "needs nodes that run pods"},
	{"examples/mlbench/README.md", "./bin/stoke -chdir=examples/mlbench apply -var workers=4", "", "needs nodes that run pods"},
	{"examples/mlbench/README.md", "./bin/stoke -chdir=examples/mlbench metrics -csv module.benchmark.train_experiment.this", "", "needs nodes that run pods"},
	{"examples/mlbench/README.md", "./bin/stoke -chdir=examples/mlbench destroy", "", "needs nodes that run pods"},
	{"examples/mnist/README.md", "./bin/stoke -chdir=examples/mnist apply -var data_dir=/path/to/mnist", "", "needs the MNIST files and minutes"},
	{"examples/pytorch/README.md", "./bin/stoke -chdir=examples/pytorch apply -auto-approve", "", "needs PyTorch; TestPyTorch runs it where that is installed"},
	{"examples/quickstart/README.md", "make quickstart", "./bin/stoke -chdir=examples/quickstart apply -auto-approve", "builds, then runs this"},
}

// TestDocs runs every command line of the documentation, each page from its
// top to its bottom in a folder of its own, and compares what it prints with
// what the page says. With -update it writes into the pages what was printed.
func TestDocs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell to run the commands of the documentation")
	}
	used := make([]atomic.Bool, len(elsewhere))
	trainer := releasedTrainer(t)
	var pages sync.Map // those that were run
	t.Run("pages", func(t *testing.T) {
		for i, name := range documentation(t) {
			if underRace && i%4 != 0 {
				continue // what is printed is the same; some are enough to look for races
			}
			p, err := readPage(moduleRoot, name)
			if err != nil {
				t.Error(err)
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				pages.Store(name, true)
				(&reading{T: t, page: p, used: used, trainer: trainer, root: moduleRoot}).run()
			})
		}
	})
	for i, e := range elsewhere {
		if _, read := pages.Load(e.page); read && !used[i].Load() && !t.Failed() {
			t.Errorf("%s has no command line %q any more: take it off the list", e.page, e.line)
		}
	}
}

// releasedTrainer returns a folder with only the released stoke-trainer in it.
func releasedTrainer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := programtest.Copy("stoke-trainer", filepath.Join(dir, "stoke-trainer")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func documentation(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "examples/*/README.md"} {
		found, err := filepath.Glob(moduleRoot + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			names = append(names, strings.TrimPrefix(filepath.ToSlash(name), moduleRoot))
		}
	}
	return names
}

// inPython are the pages whose programs are in Python.
var inPython = []string{"docs/programs.md", "examples/distributed-tensorflow/README.md"}

// reading runs one page.
type reading struct {
	*testing.T
	*page
	used    []atomic.Bool // of elsewhere
	trainer string        // the folder of the program that trains
	root    string        // where the examples are
	dir     string
	cluster string            // kubeconfig of one, if there is one
	control string            // where the shell's folder and variables are kept between commands
	real    *strings.Replacer // of the addresses that a page may use
	shown   *strings.Replacer // back
	clouds  []string          // variables that lead to servers instead of the real ones
	written map[int][]string  // what is to stand in place of the output of the command in a line
}

func (r *reading) run() {
	if _, err := exec.LookPath("git"); err != nil && slices.Contains(r.lines, "git init -q") {
		r.Skip("git is not installed")
	}
	if python := "python3"; slices.Contains(inPython, r.name) {
		if _, err := exec.LookPath(python); err != nil {
			r.Skip(python + " is not installed")
		}
	}
	r.prepare()
	r.written = make(map[int][]string)
	for _, b := range r.blocks {
		r.block(b)
		if r.Failed() && !*rewrite {
			return // what follows rests on it
		}
	}
	if len(r.written) > 0 {
		r.rewrite()
	}
}

func (r *reading) prepare() {
	r.dir, r.control = r.TempDir(), r.TempDir()
	if r.cluster != "" {
		config, err := os.ReadFile(r.cluster)
		if err != nil {
			r.Fatal(err)
		}
		write(r.T, filepath.Join(r.control, ".kube", "config"), config)
	}
	if !strings.HasPrefix(r.name, "docs/") {
		r.repository()
	}
	web := r.serve(&storetest.Web{ETags: true})
	r.real = strings.NewReplacer("https://state.example.com", web, "/home/ada/lab", r.dir)
	r.shown = strings.NewReplacer(web, "https://state.example.com", r.dir, "/home/ada/lab", r.control, "/home/ada")
	r.clouds = []string{
		"AWS_ENDPOINT_URL_S3=" + r.serve(&storetest.S3{Bucket: "training-state", AccessKey: "AK"}),
		"AWS_ACCESS_KEY_ID=AK", "AWS_SECRET_ACCESS_KEY=secret", "AWS_EC2_METADATA_DISABLED=true",
		"GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT=" + r.serve(&storetest.GCS{Bucket: "training-state", Token: "token"}) + "/storage/v1/",
		"GOOGLE_OAUTH_ACCESS_TOKEN=token",
	}
}

// serve starts a server that ends with the page, and returns its address.
func (r *reading) serve(h http.Handler) string {
	srv := httptest.NewServer(h)
	r.Cleanup(srv.Close)
	return srv.URL
}

// copied are the examples that pages call.
var copied = []string{"distributed-tensorflow", "elasticdl-cluster", "elasticdl-local", "gke-elastic", "gke-mlbench", "metal-gpu-cluster", "mlbench", "mnist", "quickstart"}

// repository lays out what those pages speak of that are read in a checkout:
// the programs and the examples. The quickstart trains for a moment only.
func (r *reading) repository() {
	bin := filepath.Join(r.dir, "bin")
	for _, name := range copied {
		if err := copyConfiguration(filepath.Join(r.dir, "examples", name), filepath.Join(r.root, "examples", name)); err != nil {
			r.Fatal(err)
		}
	}
	if example, ok := strings.CutSuffix(strings.TrimPrefix(r.name, "examples/"), "/README.md"); ok && slices.Contains(onGoogle, example) {
		write(r.T, filepath.Join(r.dir, "examples", example, "double_override.tf"), []byte(doubleOf(gcptest.New(r.T, gcptest.Options{Project: "my-project"}))))
	}
	stoke, err := exec.LookPath("stoke")
	if err != nil {
		r.Fatal(err)
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.Symlink(stoke, filepath.Join(bin, "stoke")); err != nil {
		r.Fatal(err)
	}
	main := filepath.Join(r.dir, "examples/quickstart/main.tf")
	text, err := os.ReadFile(main)
	if err != nil {
		r.Fatal(err)
	}
	short := regexp.MustCompile(`(train|test|epochs)( +)= \d+`).ReplaceAllStringFunc(string(text), func(line string) string {
		return regexp.MustCompile(`\d+`).ReplaceAllString(line, map[byte]string{'t': "640", 'e': "1"}[line[0]])
	})
	if err := os.WriteFile(main, []byte(short), 0o644); err != nil {
		r.Fatal(err)
	}
}

// doubleOf leads the provider gke to the double of Google Cloud. It is an override
// file, so that the example is what people read.
func doubleOf(google *gcptest.Cloud) string {
	return fmt.Sprintf(`provider "gke" {
  container_endpoint     = "http://%s"
  compute_endpoint       = "%[2]s/compute/v1/"
  file_endpoint          = "%[2]s/file/"
  service_usage_endpoint = "%[2]s/serviceusage/"
}
`, google.Container(), google.REST())
}

func (r *reading) block(b *block) {
	switch text := r.text(b); {
	case b.lang == "hcl" && b.words["fragment"]:
		if _, diags := hclsyntax.ParseConfig([]byte(text), r.name, hcl.Pos{Line: b.from + 1, Column: 1}); diags.HasErrors() {
			r.Error(diags)
		}
	case fileLine.MatchString(r.lines[b.from]):
		r.file(fileLine.FindStringSubmatch(r.lines[b.from])[1], text)
	case b.lang == "hcl":
		r.Errorf("%s: the first line says no file name, such as # main.tf", r.place(b.from))
	case b.lang == "text" || b.lang == "json" || b.lang == "yaml":
		if strings.HasPrefix(text, "$ ") || strings.HasPrefix(text, "stoke ") {
			r.Errorf("%s: commands belong into a block of the language console or sh", r.place(b.from))
		}
	}
	for _, c := range b.commands {
		r.command(b, c)
	}
}

func (r *reading) file(name, text string) {
	to := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(r.real.Replace(text)), 0o644); err != nil {
		r.Fatal(err)
	}
}

func (r *reading) command(b *block, c *command) {
	text := c.text
	if i := r.exception(text); i >= 0 {
		r.used[i].Store(true)
		if text = elsewhere[i].instead; text == "" {
			return
		}
	}
	printed, code := r.shell(text)
	if code != c.exit {
		r.Errorf("%s: %s\nended with %d, not %d:\n%s", r.place(c.line), text, code, c.exit, strings.Join(printed, "\n"))
		return
	}
	expected := r.lines[c.from:c.end]
	if len(expected) == 0 {
		return
	}
	want, got := trimmed(expected), trimmed(printed)
	if b.words["recording"] {
		want, got = recorded(want), recorded(got)
	}
	if same(want, got) {
		return
	}
	if *rewrite {
		r.written[c.line] = stable(trimmed(printed))
		return
	}
	r.Errorf("%s: %s\nprints something else; not found is:\n%s\nin what was printed:\n%s", r.place(c.line), text, missing(want, got), strings.Join(got, "\n"))
}

func (r *reading) exception(text string) int {
	for i, e := range elsewhere {
		if e.page == r.name && (e.why != onClusters || r.cluster == "") && e.line == strings.TrimSpace(strings.SplitN(text, " #", 2)[0]) {
			return i
		}
	}
	return -1
}

// shell runs a command line. Its folder and its variables are those that the
// one before has left.
func (r *reading) shell(text string) (lines []string, code int) {
	const script = `
if [ -f "$PAGE_CONTROL/env" ]; then . "$PAGE_CONTROL/env"; cd "$(cat "$PAGE_CONTROL/pwd")" || exit 125; fi
. "$PAGE_CONTROL/line"
code=$?
export -p > "$PAGE_CONTROL/env"
pwd > "$PAGE_CONTROL/pwd"
exit $code`
	if err := os.WriteFile(filepath.Join(r.control, "line"), []byte(r.real.Replace(text)+"\n"), 0o600); err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.dir, r.environment(), time.Second
	// What a line starts in the background is ended with the page, or with the
	// line where that does not end by itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	r.Cleanup(func() {
		if r.Failed() && cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil {
		r.Fatalf("%s\ndoes not end; so far:\n%s", text, &out)
	}
	if err != nil && !errors.As(err, &exit) {
		r.Fatalf("%s: %v", text, err)
	}
	return strings.Split(r.shown.Replace(out.String()), "\n"), cmd.ProcessState.ExitCode()
}

// environment is that of a user who has set nothing for stoke.
func (r *reading) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TF_") || strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "GOOGLE_") || strings.HasPrefix(v, "STOKE_") || strings.HasPrefix(v, "XDG_")
	})
	return append(append(env, r.clouds...), "PATH="+r.trainer+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+r.control, "PAGE_CONTROL="+r.control)
}

// rewrite puts what was printed into the page.
func (r *reading) rewrite() {
	var all []string
	at := 0
	for _, b := range r.blocks {
		for _, c := range b.commands {
			if lines, ok := r.written[c.line]; ok {
				all = append(append(all, r.lines[at:c.from]...), lines...)
				if at = c.end; at < b.end {
					all = append(all, "")
				}
			}
		}
	}
	all = append(all, r.lines[at:]...)
	if err := os.WriteFile(moduleRoot+r.name, []byte(strings.Join(all, "\n")+"\n"), 0o644); err != nil {
		r.Fatal(err)
	}
}
