package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/store/storetest"
)

// buckets are the backends with a server of their kind in this process.
func buckets() map[string]bucketKind {
	return map[string]bucketKind{
		"s3": {
			server: &storetest.S3{Bucket: "states", AccessKey: "AK", SecretKey: "SK"},
			block: `backend "s3" {
    bucket         = "states"
    key            = "x.tfstate"
    region         = "eu-central-1"
    access_key     = "AK"
    secret_key     = "SK"
    use_path_style = true
    use_lockfile   = true
    endpoints      = { s3 = %q }

    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
    skip_region_validation      = true
  }`,
			clean: []string{"x.tfstate"},
		},
		"gcs": {
			server: &storetest.GCS{Bucket: "states", Token: "tok"},
			block: `backend "gcs" {
    bucket                  = "states"
    prefix                  = "x"
    access_token            = "tok"
    storage_custom_endpoint = "%s/storage/v1/b"
  }`,
			clean: []string{"x/default.tfstate"},
		},
	}
}

type bucketKind struct {
	server interface {
		http.Handler
		Keys() []string
	}
	block string
	clean []string // the objects after a run that ended well
}

// executioner stands in front of a server and kills a process at one of its
// requests: when that has come in, or when it was carried out and not yet
// answered.
type executioner struct {
	next http.Handler

	mu     sync.Mutex
	left   int // requests to let through; negative when nobody is to be killed
	after  bool
	victim *os.Process
}

// arm has the process that is started by cmd killed at request number n.
func (e *executioner) arm(cmd *exec.Cmd, n int, after bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	e.left, e.after, e.victim = n, after, cmd.Process
	return nil
}

// disarm reports whether somebody was killed.
func (e *executioner) disarm() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	killed := e.victim == nil
	e.left, e.victim = -1, nil
	return killed
}

func (e *executioner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	victim, after := e.victim, e.after
	now := victim != nil && e.left == 0
	e.left--
	if now {
		e.victim = nil
	}
	e.mu.Unlock()
	if !now {
		e.next.ServeHTTP(w, r)
		return
	}
	if after {
		e.next.ServeHTTP(httptest.NewRecorder(), r)
	}
	_ = victim.Kill()
}

// newBucketRun makes a working directory and initialises it.
func newBucketRun(t *testing.T, kind bucketKind, stoke, config string) (*bucketRun, *executioner) {
	t.Helper()
	e := &executioner{next: kind.server, left: -1}
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	c := &bucketRun{t: t, dir: t.TempDir(), stoke: stoke, objects: 2}
	text := "terraform {\n  " + fmt.Sprintf(kind.block, srv.URL) + "\n}\n" + config
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(stoke, "-chdir="+c.dir, "init", "-no-color").CombinedOutput(); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	return c, e
}

// thisStoke is the command that scripts run too: this binary by another name.
func thisStoke(t *testing.T) string {
	t.Helper()
	stoke, err := exec.LookPath("stoke")
	if err != nil {
		t.Fatal(err)
	}
	return stoke
}

// TestKilledAtRequest kills apply and destroy with SIGKILL at requests to the
// bucket (all of them, with the build tag e2e), before or after they were
// carried out. The next run takes the lock over at once, and what there is
// agrees with the state.
func TestKilledAtRequest(t *testing.T) {
	t.Parallel()
	stoke := thisStoke(t)
	for name, kind := range buckets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, e := newBucketRun(t, kind, stoke, bucketConfig)
			c.finish("apply", 0)
			generation, step := 0, crashRequests
			if underRace {
				step *= 4 // each of its runs takes several times as long
			}
			for _, command := range []string{"apply", "destroy"} {
				for n := 0; ; n += step {
					generation++
					if command == "destroy" {
						c.finish("apply", generation)
					}
					cmd := c.command(command, generation)
					if err := e.arm(cmd, n, generation%2 == 0); err != nil {
						t.Fatal(err)
					}
					_ = cmd.Wait()
					killed := e.disarm()
					c.finish(command, generation)
					c.check(command, generation)
					keys := kind.server.Keys()
					if !slices.Equal(keys, kind.clean) {
						t.Errorf("after a run that ended well the bucket holds %q", keys)
					}
					if t.Failed() {
						t.Fatalf("after %s was killed at request %d", command, n)
					}
					if !killed {
						if n < 6 {
							t.Errorf("%s makes only %d requests", command, n)
						}
						break
					}
				}
			}
		})
	}
}

// TestTwoApplies has a second apply begin while the first one works: it is
// refused and told who is at work. When the first one is killed, the next one
// goes on.
func TestTwoApplies(t *testing.T) {
	t.Parallel()
	stoke := thisStoke(t)
	for name, kind := range buckets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := newBucketRun(t, kind, stoke, `
variable "generation" {}
variable "objects" {}
variable "delay" { default = "0s" }
resource "test_file" "a" {
  directory = "${path.root}/out"
  name      = "a"
  delay     = var.delay
}
`)
			c.objects = 1
			first := c.command("apply", 0)
			first.Args = append(first.Args, "-var=delay=1h")
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = first.Process.Kill() }) // whatever happens before it is killed below
			for !slices.ContainsFunc(kind.server.Keys(), func(k string) bool { return strings.Contains(k, ".journal/") && !strings.HasSuffix(k, "/000000") }) {
				if t.Context().Err() != nil {
					t.Fatal("the first run never began")
				}
				time.Sleep(5 * time.Millisecond)
			}
			for _, option := range []string{"-lock-timeout=0s", "-lock-timeout=1s"} {
				second := c.command("apply", 0)
				second.Args = append(second.Args, option)
				out, err := second.CombinedOutput()
				text := unwrap(string(out))
				if err == nil || !strings.Contains(text, "State is locked") || !strings.Contains(text, "is held by "+state.CurrentUser()+", Apply") {
					t.Errorf("the second run: %v\n%s", err, out)
				}
			}
			if out, err := exec.Command(stoke, "-chdir="+c.dir, "plan", "-lock=false", "-no-color", "-var=generation=0", "-var=objects=1").CombinedOutput(); err != nil {
				t.Errorf("a plan without the lock: %v\n%s", err, out)
			}
			if err := first.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = first.Wait()
			c.finish("apply", 0)
			c.check("apply", 0)
			waiting := []*exec.Cmd{c.command("apply", 0), c.command("destroy", 0)}
			outputs := make([]bytes.Buffer, len(waiting))
			for i, cmd := range waiting {
				cmd.Args = append(cmd.Args, "-lock-timeout=10m")
				cmd.Stdout, cmd.Stderr = &outputs[i], &outputs[i]
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
			}
			for i, cmd := range waiting {
				if err := cmd.Wait(); err != nil {
					t.Errorf("%s: %v\n%s", cmd.Args[2], err, outputs[i].String())
				}
			}
			if keys := kind.server.Keys(); !slices.Equal(keys, kind.clean) {
				t.Errorf("at the end the bucket holds %q", keys)
			}
		})
	}
}
