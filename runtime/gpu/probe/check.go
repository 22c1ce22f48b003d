package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
)

// Limit is how long stoke-gpu may be silent.
const Limit = 10 * time.Second

// Name is the name of the program.
const Name = "stoke-gpu"

// Path returns the path of stoke-gpu: next to this program, else in $PATH; "" where
// there is none.
func Path() string {
	if path := besideThis(Name); path != "" {
		return path
	}
	path, err := exec.LookPath(Name)
	if err != nil {
		return ""
	}
	return path
}

// besideThis returns the path of a program next to this program; "": there is none.
func besideThis(name string) string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return ""
	}
	return path
}

// Report is what `stoke-gpu check --json` prints.
type Report struct {
	gpu.Health
	Snapshot gpu.Snapshot `json:"readings"`
}

// Check has the GPUs of this machine judged by the driver's counters. It returns an
// error where stoke-gpu does not give a verdict within Limit.
func Check(ctx context.Context, path string, e gpu.Expectation) (Report, error) {
	return checkWithin(ctx, Limit, path, e)
}

func checkWithin(ctx context.Context, limit time.Duration, path string, e gpu.Expectation) (Report, error) {
	if path == "" {
		return Report{}, fmt.Errorf("%s is neither next to this program nor in $PATH: %w", Name, fs.ErrNotExist)
	}
	args := []string{"check", "--json", "--count", strconv.Itoa(e.Count)}
	if e.Driver != "" {
		args = append(args, "--driver", e.Driver)
	}
	if e.Idle {
		args = append(args, "--idle")
	}
	if e.GPUs != nil {
		args = append(args, "--gpus", strings.Join(e.GPUs, ","))
	}
	text, err := output(ctx, limit, path, args)
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) { // 1: unfit, as the answer says
		return Report{}, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, fmt.Errorf("%s check: it did not print a verdict: %w", Name, err)
	}
	if err := r.Snapshot.Validate(); err != nil || !r.Verdict.IsKnown() {
		return Report{}, fmt.Errorf("%s check: it did not print a verdict", Name)
	}
	return r, nil
}

// maxOutput is how many bytes the answer of a check may have.
const maxOutput = 1 << 20

// bounded keeps the beginning of an output.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// output runs the program until its end, or until the limit: a process in a call of the
// driver that hangs does not even end when it is killed.
func output(ctx context.Context, limit time.Duration, path string, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type result struct {
		text []byte
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		var out bounded
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stdout, cmd.WaitDelay = &out, time.Second
		err := cmd.Run()
		ended <- result{out.Bytes(), err}
	}()
	select {
	case r := <-ended:
		switch {
		case ctx.Err() != nil:
			return nil, silenceOf(ctx, limit, path)
		case r.err != nil:
			return r.text, fmt.Errorf("%s %s: %w", filepath.Base(path), args[0], r.err)
		}
		return r.text, nil
	case <-ctx.Done():
		return nil, silenceOf(ctx, limit, path)
	}
}

// silenceOf returns the error of a program that did not end in time.
func silenceOf(ctx context.Context, limit time.Duration, path string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s does not answer within %v", filepath.Base(path), limit)
	}
	return ctx.Err()
}
