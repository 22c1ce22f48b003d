package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	at "github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/graph"
	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// The runtime's binaries: the second one has the engine of GPUs, too.
const (
	trainerName    = "stoke-trainer"
	gpuTrainerName = "stoke-trainer-gpu"
	stokeGPUName   = "stoke-gpu"
)

// trainer is the path of a stoke-trainer. Everything that touches data or
// devices is done by running it: this process reads no dataset.
type trainer string

// findTrainer returns the trainer at the given path, or else the one next to this
// binary or in $PATH.
func findTrainer(given string) (trainer, error) { return findProgram(trainerName, given) }

// findProgram returns the program at the given path, or else the one of that name in
// one of the folders, next to this binary or in $PATH.
func findProgram(name, given string, folders ...string) (trainer, error) {
	if given != "" {
		path, err := filepath.Abs(given)
		if err == nil {
			err = executable(path)
		}
		return trainer(path), err
	}
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		folders = append(folders, filepath.Dir(self))
	}
	for _, folder := range folders {
		if path := filepath.Join(folder, name); executable(path) == nil {
			return trainer(path), nil
		}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	return trainer(path), err
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not a program", path)
	}
	return nil
}

// manifest describes a prepared dataset: the part of its manifest.json that we
// use.
type manifest struct {
	Format string `json:"format"`
	Train  split  `json:"train"`
	Test   split  `json:"test"`
	Hash   string `json:"hash"`
}

type split struct {
	Records int64          `json:"records"`
	Type    model.DType    `json:"type"`
	Shape   []int          `json:"shape"`
	Classes int            `json:"classes"`
	Target  model.Features `json:"target"`
}

// check refuses a manifest that no dataset has.
func (m *manifest) check() error {
	switch {
	case hashDigits(m.Hash) == "":
		return fmt.Errorf("manifest has no hash: %.80q", m.Hash)
	case m.Train.Records < 1 || m.Test.Records < 0:
		return fmt.Errorf("manifest counts %d and %d records", m.Train.Records, m.Test.Records)
	case len(m.Train.Shape) > 8:
		return fmt.Errorf("manifest has a shape of %d dimensions", len(m.Train.Shape))
	}
	return nil
}

// hashDigits returns the digits of a hash "sha256:…", or "" if it is none.
func hashDigits(hash string) string {
	digits, ok := strings.CutPrefix(hash, "sha256:")
	if !ok || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "" {
		return ""
	}
	return digits
}

// inspect checks the origin as a preparation would and says what it would give.
func (t trainer) inspect(ctx context.Context, from spec.Origin) (manifest, error) {
	return t.dataset(ctx, nil, "inspect", from)
}

// prepare writes the dataset to a folder.
func (t trainer) prepare(ctx context.Context, from spec.Origin, folder string, progress func(done, total int64)) (manifest, error) {
	return t.dataset(ctx, progress, "prepare", from, "--to", folder)
}

func (t trainer) dataset(ctx context.Context, progress func(done, total int64), verb string, from spec.Origin, args ...string) (manifest, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return manifest{}, fmt.Errorf("%s dataset: %w", verb, err)
	}
	args = append([]string{"dataset", verb, "--origin", string(text)}, args...)
	out, err := t.run(ctx, progress, args...)
	if err != nil {
		return manifest{}, fmt.Errorf("%s dataset: %w", verb, err)
	}
	var m manifest
	if err := json.Unmarshal(out, &m); err != nil {
		return manifest{}, fmt.Errorf("%s dataset: read answer: %w", verb, err)
	}
	if err := m.check(); err != nil {
		return manifest{}, fmt.Errorf("%s dataset: %w", verb, err)
	}
	return m, nil
}

// abilities is what a trainer was built with.
type abilities struct {
	Engines    []string            `json:"engines"`  // that work on this machine
	Problems   map[string]string   `json:"problems"` // of engines that do not work on it
	Devices    map[string][]device `json:"devices"`  // by engine
	Models     []string            `json:"models"`
	Layers     map[string]string   `json:"layers"`     // hashes of the models' layers
	Operations []string            `json:"operations"` // of layers of models as data
}

func (t trainer) abilities(ctx context.Context) (a abilities, err error) {
	out, err := t.run(ctx, nil, "engines", "--json")
	if err != nil {
		return a, fmt.Errorf("ask for engines: %w", err)
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return a, fmt.Errorf("ask for engines: %w", err)
	}
	return a, nil
}

// device is one device of an engine, as a trainer describes it.
type device struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
}

// usesGPUs reports whether a built-in model is trained on GPUs. A program uses GPUs by
// itself.
func usesGPUs(s *spec.Spec) bool { return !s.HasProgram() && s.EngineName() == spec.EngineXLA }

// trainerOf finds the trainer of a run on this machine: with GPUs the trainer that has
// their engine.
func (s *settings) trainerOf(of *spec.Spec) (trainer, diag.Diagnostic) {
	t, missing := s.trainer()
	if missing != nil || !usesGPUs(of) {
		return t, missing
	}
	if with, err := findProgram(gpuTrainerName, s.givenGPU, filepath.Dir(string(t))); err == nil {
		return with, nil
	}
	return t, nil // capable reports the missing engine
}

// trainerFor finds the trainer on this machine of a run anywhere: pods have another one.
func (s *settings) trainerFor(d *draft) (trainer, diag.Diagnostic) {
	if d.inPods {
		return s.trainer()
	}
	return s.trainerOf(&d.spec)
}

// capableOfGPUs reports what keeps a trainer from training on as many GPUs of this
// machine as the run asks for; nothing where the run is in pods or uses no GPU.
func (d *draft) capableOfGPUs(t trainer, can abilities) diag.Diagnostic {
	const remedy = " Set gpus = 0 to train on the CPU."
	wrong := func(summary, format string, args ...any) diag.Diagnostic {
		return diag.NewAttributeErrorDiagnostic(at.Root("worker").AtName("gpus"), summary, fmt.Sprintf(format, args...)+remedy)
	}
	if d.inPods || !usesGPUs(&d.spec) || d.unknown["worker.gpus"] {
		return nil
	}
	problem, known := can.Problems[spec.EngineXLA]
	seen, counted := can.Devices[spec.EngineXLA]
	need := d.spec.Worker.Replicas * d.spec.Worker.GPUs
	switch {
	case known:
		return wrong("GPUs cannot be used on this machine", "%s: %s.", t, printable(strings.TrimRight(problem, ".")))
	case !slices.Contains(can.Engines, spec.EngineXLA):
		return wrong(gpuTrainerName+" was not found", "%s has no engine for GPUs, but %s. "+
			"Build %s with `make trainer-gpu` and put it next to that, or name it with gpu_trainer = \"…\" in the provider block.",
			t, strings.Join(can.Engines, ", "), gpuTrainerName)
	case counted && need > len(seen) && !d.unknown["worker.replicas"]:
		return wrong("This machine has fewer GPUs", "%d workers with %d GPU each need %d, and %s sees %d%s. Set replicas to at most %[5]d.",
			d.spec.Worker.Replicas, d.spec.Worker.GPUs, need, t, len(seen), listNames(seen))
	}
	return nil
}

// listNames lists the names of devices.
func listNames(devices []device) string {
	var names []string
	for _, d := range devices {
		if d.Name != "" {
			names = append(names, printable(d.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// needsGPUs reports whether a change has a run need other GPUs than before.
func needsGPUs(c spec.Change) bool {
	return slices.Contains([]string{"worker.gpus", "worker.replicas", "compute_type"}, c.Field)
}

// noteGPUs notes the engine of a run with GPUs, and the program that has it.
func (p *planning) noteGPUs(ctx context.Context, t trainer) {
	s := &p.draft.spec
	if !usesGPUs(s) || p.draft.unknown["worker.gpus"] {
		return
	}
	by := string(t)
	if p.draft.inPods {
		by = gpuTrainerName + " of the image"
	}
	note(ctx, p.resp, at.Root("worker").AtName("gpus"), providers.NoteFact,
		fmt.Sprintf("%d GPU for each worker: engine %s, %s, by %s", s.Worker.GPUs, s.EngineName(), s.ComputeTypeName(), by))
}

// capable makes sure that there is a trainer, and that it can use what is
// asked for.
func (p *planning) capable(ctx context.Context) {
	if p.checked {
		return
	}
	p.checked = true
	t, missing := p.settings.trainerFor(p.draft)
	if missing != nil {
		p.resp.Diagnostics.Append(missing)
		return
	}
	if p.draft.spec.HasProgram() {
		p.resp.Diagnostics.Append(p.draft.checkCommand()...)
		return
	}
	can, err := t.abilities(ctx)
	if err != nil {
		p.resp.Diagnostics.AddError("The trainer cannot be asked", fmt.Sprintf("%s: %s.", t, err))
		return
	}
	if err := p.checkOperations(can); err != nil {
		p.resp.Diagnostics.AddAttributeError(at.Root(graph.Name), "The trainer is an older one",
			fmt.Sprintf("%s: install the one of this version of stoke.", capital(err)))
	}
	if s := &p.draft.spec; s.Model != "" && !p.draft.unknown["model"] && !slices.Contains(can.Models, s.Model) {
		p.resp.Diagnostics.AddAttributeError(at.Root("model"), "There is no such model",
			fmt.Sprintf("The trainer has %s; model is %q.", strings.Join(can.Models, ", "), s.Model))
	}
	p.draft.spec.Layers = can.Layers[p.draft.spec.Model]
	if problem := p.draft.capableOfGPUs(t, can); problem != nil {
		p.resp.Diagnostics.Append(problem)
		return
	}
	p.noteGPUs(ctx, t)
}

// maxAnswer bounds what a trainer may say: a manifest is a kilobyte.
const maxAnswer = 1 << 20

// run runs the trainer and returns its standard output. Lines {"done", "total"}
// of its standard error go to progress; the last other one, JSON or text, is
// the reason of a failure.
func (t trainer) run(ctx context.Context, progress func(done, total int64), args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, string(t), args...)
	stdout := &limited{left: maxAnswer}
	stderr := &messages{progress: progress}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = attributes()
	// Where a death is passed on, it is the thread's that started the child.
	runtime.LockOSThread()
	err := cmd.Run()
	runtime.UnlockOSThread()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case stdout.left < 0:
		return nil, fmt.Errorf("%s said more than %d bytes", t, maxAnswer)
	case err == nil:
		return stdout.text.Bytes(), nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return nil, err
	}
	var failure api.Failure
	if json.Unmarshal(stderr.last, &failure) == nil && failure.Summary != "" {
		return nil, failure
	}
	if len(stderr.last) > 0 {
		return nil, fmt.Errorf("%w: %s", err, stderr.last)
	}
	return nil, err
}

// limited keeps the first bytes of what is written.
type limited struct {
	text bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	l.left -= len(p)
	if l.left < 0 {
		return 0, io.ErrShortWrite
	}
	return l.text.Write(p)
}

// messages splits a trainer's standard error into lines.
type messages struct {
	progress func(done, total int64)
	part     []byte
	last     []byte
}

func (m *messages) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		m.part = append(m.part, line[:min(len(line), max(0, 64<<10-len(m.part)))]...)
		rest = after
		if whole {
			m.line(bytes.TrimSpace(m.part))
			m.part = m.part[:0]
		}
	}
	return len(p), nil
}

func (m *messages) line(line []byte) {
	var p struct{ Done, Total *int64 }
	switch {
	case len(line) == 0:
	case json.Unmarshal(line, &p) == nil && p.Done != nil && p.Total != nil:
		if m.progress != nil {
			m.progress(*p.Done, *p.Total)
		}
	default:
		m.last = bytes.Clone(line)
	}
}
