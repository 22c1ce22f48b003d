package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/cmd/programtest"
)

// TestRunIsLookedAtDuringApply looks at an experiment that the apply which
// holds the state's lock is training: it is in the journal alone.
func TestRunIsLookedAtDuringApply(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("the program that it runs is built without the race detector")
	}
	c := &training{t: t, dir: t.TempDir(), stoke: programtest.Path(t, "stoke")}
	endless := strings.Replace(crashTraining, "epochs = 4", "epochs = 100000", 1)
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(endless), 0o644); err != nil {
		t.Fatal(err)
	}
	look := func(args ...string) ([]byte, error) {
		cmd := exec.Command(c.stoke, append([]string{"-chdir=" + c.dir}, append(args, "-no-color", "train_experiment.digits")...)...)
		return cmd.Output()
	}
	apply := c.command("apply", "-auto-approve")
	apply.Env = append(apply.Env, "STOKE_USAGE_INTERVAL=50ms")
	if err := apply.Start(); err != nil {
		t.Fatal(err)
	}
	applied := make(chan error, 1)
	go func() { applied <- apply.Wait() }()
	defer apply.Process.Kill()
	var is struct {
		Phase string
		Step  int64
		Roles []struct {
			Name, Phase string
			Usage       struct {
				CPU    float64
				Memory int64 `json:"memory_bytes"`
			}
		}
	}
	await(t, "the run trains, and reports its usage", func() bool {
		out, err := look("status", "-json")
		return err == nil && json.Unmarshal(out, &is) == nil && is.Phase == "running" && is.Step > 0 && len(is.Roles) == 4 &&
			is.Roles[0].Usage.Memory > 0 && is.Roles[1].Usage.Memory > 0 && is.Roles[2].Usage.CPU > 0 && is.Roles[3].Usage.CPU > 0
	})
	if out, err := look("status"); err != nil || !bytes.Contains(out, []byte("CPU")) || !bytes.Contains(out, []byte(" MiB ")) {
		t.Errorf("status: %v\n%s", err, out)
	}
	if out, err := look("metrics", "-json"); err != nil || !bytes.Contains(out, []byte(`"type":"usage"`)) {
		t.Errorf("metrics: %v, %.300s", err, out)
	}
	if out, err := look("metrics"); err != nil || bytes.Contains(out, []byte("\nusage ")) || !bytes.Contains(out, []byte("\nupdate ")) {
		t.Errorf("metrics: %v, %.300s", err, out)
	}
	if len(is.Roles) != 4 || is.Roles[3].Name != "worker-1" || is.Roles[3].Phase != "running" {
		t.Errorf("roles are %+v", is.Roles)
	}
	if out, err := look("metrics", "-csv"); err != nil || !bytes.Contains(out, []byte(",update,0,1,loss,")) {
		t.Errorf("metrics: %v, %.300s", err, out)
	}

	// One follows until it is interrupted, the other until the run ends.
	var said bytes.Buffer
	leaving := exec.Command(c.stoke, "-chdir="+c.dir, "logs", "-f", "train_experiment.digits")
	pipe, err := leaving.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	leaving.Stderr = &said
	if err := leaving.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := pipe.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := leaving.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := bytes.NewBuffer(nil).ReadFrom(pipe); err != nil {
		t.Error(err)
	}
	if err := leaving.Wait(); err != nil || said.Len() > 0 {
		t.Errorf("an interrupted look ends with %v and says %s", err, said.String())
	}
	staying := exec.Command(c.stoke, "-chdir="+c.dir, "metrics", "-f", "-json", "train_experiment.digits")
	seen := new(told)
	staying.Stdout = seen
	if err := staying.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "it follows", func() bool { return strings.Contains(seen.String(), `"type":"update"`) })
	if err := apply.Process.Signal(os.Interrupt); err != nil { // leaves the run going
		t.Fatal(err)
	}
	if err := <-applied; err != nil {
		t.Logf("the apply was left with %v", err)
	}
	if out, err := look("status"); err != nil || !bytes.Contains(out, []byte("digits: running")) {
		t.Errorf("after the apply: %v\n%s", err, out)
	}
	c.run("destroy", "-auto-approve")
	if err := staying.Wait(); err != nil {
		t.Errorf("following ends with %v after %.2000s", err, seen)
	}
	c.empty()
}

// told is what a process writes, to be looked at while it runs.
type told struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *told) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *told) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func await(t *testing.T, what string, true func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !true(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}
