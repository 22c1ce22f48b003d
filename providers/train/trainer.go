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
	"strings"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// trainerName is the runtime's binary.
const trainerName = "stoke-trainer"

// trainer is the path of a stoke-trainer. Everything that touches data or
// devices is done by running it: this process reads no dataset.
type trainer string

// findTrainer looks where the user said, next to this binary and in $PATH.
func findTrainer(given string) (trainer, error) {
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
		path := filepath.Join(filepath.Dir(self), trainerName)
		if executable(path) == nil {
			return trainer(path), nil
		}
	}
	path, err := exec.LookPath(trainerName)
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
	Engines    []string          `json:"engines"`
	Models     []string          `json:"models"`
	Layers     map[string]string `json:"layers"`     // hashes of the models' layers
	Operations []string          `json:"operations"` // of layers of models as data
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
