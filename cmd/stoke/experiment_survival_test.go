//go:build e2e && linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/podtest"
)

// podLab is a configuration with one experiment, in a namespace of its own.
type podLab struct {
	*podtest.Cluster
	t                *testing.T
	trainer, dir, ns string
	wait, storage    string // lines of the experiment
	strategy         string // likewise; "": one parameter server
	epochs, workers  int
	cpu, priority    string // of each worker; "": 100m, normal
	home             string // of whoever runs stoke
}

// newPodLab is a lab without a configuration yet.
func newPodLab(t *testing.T, c *podtest.Cluster, trainer, ns string) *podLab {
	return &podLab{Cluster: c, t: t, trainer: trainer, dir: t.TempDir(), home: t.TempDir(), ns: ns, wait: "wait = false", epochs: forever, workers: 2}
}

// command is stoke on the configuration.
func (l *podLab) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(l.t.Context(), "stoke", append([]string{"-chdir=" + l.dir}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+l.home)
	return cmd
}

// run runs stoke to its end; want is the exit code.
func (l *podLab) run(want int, args ...string) string {
	l.t.Helper()
	cmd := l.command(args...)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != want {
		l.t.Fatalf("stoke %v ended with %d, want %d:\n%s", args, got, want, out)
	}
	return string(out)
}

// forever is more epochs than any test waits for.
const forever = 1000000

func (l *podLab) write() {
	l.t.Helper()
	l.declare("restricted", strings.NewReplacer("WAIT", l.wait, "STORAGE", l.storage,
		"STRATEGY", cmp.Or(l.strategy, "parameter_server {\n    replicas = 1\n    memory   = \"128Mi\"\n  }"),
		"EPOCHS", strconv.Itoa(l.epochs), "WORKERS", strconv.Itoa(l.workers), "CORES", cmp.Or(l.cpu, "100m"), "PRIORITY", cmp.Or(l.priority, "normal")).Replace(experimentOnPods))
}

// declare writes a configuration of the lab's namespace, which allows a level of the Pod
// Security Standards, and of more resources.
func (l *podLab) declare(level, more string) {
	l.t.Helper()
	write(l.t, filepath.Join(l.dir, "main.tf"), []byte(l.Configuration(l.trainer, l.ns, level)+more))
}

func (l *podLab) apply() {
	l.t.Helper()
	l.write()
	l.run(0, "apply", "-auto-approve")
}

func (l *podLab) status() (is providers.RunStatus) {
	l.t.Helper()
	if err := json.Unmarshal([]byte(l.run(0, "status", "-json", "train_experiment.digits")), &is); err != nil {
		l.t.Fatal(err)
	}
	return is
}

// until waits until the run's status is as wanted.
func (l *podLab) until(what string, wanted func(providers.RunStatus) bool) (is providers.RunStatus) {
	l.t.Helper()
	l.Wait(l.t, what, func(context.Context) (bool, error) {
		is = l.status()
		return wanted(is), fmt.Errorf("it is %s: %s, %d of %d workers, step %d, %+v", is.Phase, is.Message, is.Workers, is.Wanted, is.Step, is.Roles)
	})
	return is
}

// goesOn waits until the run has so many workers and trains beyond a step.
func (l *podLab) goesOn(workers int, step int64) providers.RunStatus {
	l.t.Helper()
	return l.until(fmt.Sprintf("%d workers train beyond step %d", workers, step), func(is providers.RunStatus) bool {
		return is.Phase == "running" && is.Workers == workers && is.Step > step
	})
}

// kill kills the trainer's process that has all these words in its command line
// or its environment, as a crash would end it.
func (l *podLab) kill(command string, words ...string) {
	l.t.Helper()
	l.signal(syscall.SIGKILL, command, words...)
}

// signal sends a signal to the process that kill would kill.
func (l *podLab) signal(s syscall.Signal, command string, words ...string) {
	l.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		l.t.Fatal(err)
	}
	killed := 0
	for _, file := range all {
		args, _ := os.ReadFile(file)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if all := strings.Split(string(args), "\x00"); len(all) < 3 || all[1] != command {
			continue
		}
		if of := "\x00" + string(args) + string(env); slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(of, "\x00"+word+"\x00") }) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if err := syscall.Kill(pid, s); err != nil {
			l.t.Fatal(err)
		}
		killed++
	}
	if killed != 1 {
		l.t.Fatalf("%d processes of %s %v got %v", killed, command, words, s)
	}
}

// restarts is how many containers of a role have ended, in pods that are there and
// in those that were.
func (l *podLab) restarts(role string) (n int) {
	l.t.Helper()
	selector := "stoke.dev/role=" + role
	pods := l.Kubectl(l.t, "", "-n", l.ns, "get", "pods", "-l", selector, "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	jobs := l.Kubectl(l.t, "", "-n", l.ns, "get", "jobs", "-l", selector, "-o", "jsonpath={.items[*].status.failed}")
	for _, field := range strings.Fields(pods + " " + jobs) {
		count, err := strconv.Atoi(field)
		if err != nil {
			l.t.Fatal(err)
		}
		n += count
	}
	return n
}

// id is the run's.
func (l *podLab) id() string {
	l.t.Helper()
	all := strings.Fields(l.Kubectl(l.t, "", "-n", l.ns, "get", "configmaps", "-l", "stoke.dev/run", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(all) != 1 {
		l.t.Fatalf("there is not one run: %v", all)
	}
	return all[0]
}

// destroyed destroys the experiment, and finds nothing that it left.
func (l *podLab) destroyed() {
	l.t.Helper()
	l.run(0, "destroy", "-auto-approve", "-target=train_experiment.digits")
	l.Wait(l.t, "nothing of the run is left", func(context.Context) (bool, error) {
		left := strings.TrimSpace(l.Kubectl(l.t, "", "-n", l.ns, "get", "configmaps,jobs,pods,services,secrets,networkpolicies,persistentvolumeclaims", "-l", "stoke.dev/run", "-o", "name"))
		return left == "", errors.New(left)
	})
	l.run(0, "destroy", "-auto-approve")
}

// TestExperimentRealPodsSurvive takes away what a run is made of, and changes it
// while it runs.
func TestExperimentRealPodsSurvive(t *testing.T) {
	c := podtest.Start(t, podtest.Options{Nodes: 2})
	trainer := trainerImage(t, c)
	lab := func(t *testing.T, ns string) *podLab {
		t.Parallel()
		return newPodLab(t, c, trainer, ns)
	}
	t.Run("losses", func(t *testing.T) { losses(t, lab(t, "losses"), true) })
	t.Run("claim", func(t *testing.T) {
		l := lab(t, "claim")
		l.storage = `storage = "1Gi"`
		l.localVolume()
		losses(t, l, false)
	})
	t.Run("killed stoke", func(t *testing.T) { killedStoke(t, lab(t, "killed")) })
	t.Run("usage", func(t *testing.T) { measuredPods(t, lab(t, "usage")) })
	t.Run("collected later", func(t *testing.T) { collectedLater(t, lab(t, "later")) })
}

// losses takes a run's roles away one after the other.
func losses(t *testing.T, l *podLab, rescaled bool) {
	l.apply()
	is := l.goesOn(2, 0)
	id := l.id()

	l.Kubectl(t, "", "-n", l.ns, "delete", "pod", "-l", "stoke.dev/role=worker,batch.kubernetes.io/job-completion-index=0", "--wait=true")
	is = l.goesOn(2, is.Step)

	if rescaled {
		for _, l.workers = range []int{4, 1, 2} {
			l.apply()
			is = l.goesOn(l.workers, is.Step)
			if again := l.id(); again != id {
				t.Fatalf("rescaling made another run: %s, %s", id, again)
			}
		}
	}
	is = l.until("there is a checkpoint", func(is providers.RunStatus) bool { return is.Checkpoint > 0 })

	l.kill("coordinator", "--run="+id)
	is = l.goesOn(2, is.Step)

	// Processes that hang fail their probe, and are killed and started again.
	for _, words := range [][]string{{"coordinator", "--run=" + id}, {"ps", "HOSTNAME=" + id + "-ps-0"}} {
		restarts := l.restarts(words[0])
		l.signal(syscall.SIGSTOP, words[0], words[1:]...)
		began := time.Now()
		l.Wait(l.t, "the kubelet starts a hung "+words[0]+" again", func(context.Context) (bool, error) {
			now := l.restarts(words[0])
			return now > restarts, fmt.Errorf("%d restarts", now)
		})
		l.t.Logf("a hung %s was replaced after %v", words[0], time.Since(began).Round(time.Second))
		is = l.goesOn(2, is.Step)
	}

	if !rescaled {
		// The claim outlives the pod, not only its container.
		l.Kubectl(t, "", "-n", l.ns, "delete", "pod", "-l", "stoke.dev/role=coordinator", "--wait=true")
		is = l.goesOn(2, is.Step)
	}
	l.kill("ps", "HOSTNAME="+id+"-ps-0")
	is = l.goesOn(2, is.Step)
	if again := l.id(); again != id {
		t.Errorf("it is another run by now: %s, %s", id, again)
	}
	l.destroyed()
}

// measuredPods checks the usage of a run's pods with their network and, where control
// groups are of version 2, with their limits.
func measuredPods(t *testing.T, l *podLab) {
	l.apply()
	var is providers.RunStatus
	l.Wait(t, "all roles report their usage", func(context.Context) (bool, error) {
		is = l.status()
		lacks := slices.ContainsFunc(is.Roles, func(r providers.RunRole) bool {
			return r.Usage == nil || r.Usage.CPU == 0 || r.Usage.Received == 0 || r.Usage.Sent == 0
		})
		text, err := json.Marshal(is.Roles)
		return is.Workers == 2 && len(is.Roles) == 4 && !lacks, errors.Join(err, errors.New(string(text)))
	})
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	for i, limit := range []int64{128 << 20, 128 << 20, 256 << 20, 256 << 20} {
		u := is.Roles[i].Usage
		if u.Memory < 1<<20 || u.Memory > limit || u.Processes != 1 || (err == nil) != (u.Limit == limit) {
			t.Errorf("%s: %+v", is.Roles[i].Name, u)
		}
	}
	t.Log(l.run(0, "status", "train_experiment.digits"))
	l.destroyed()
}

// localVolume makes a volume for the next claim: a folder of the first node.
func (l *podLab) localVolume() {
	l.t.Helper()
	node := l.Nodes[0]
	folder := filepath.Join("/var/lib", "volume-"+l.ns)
	node.Exec(l.t, "mkdir", "-p", folder)
	l.Kubectl(l.t, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  local: {path: %s}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]
`, l.ns, folder, node.Name), "create", "-f", "-")
}

// killedStoke kills stoke while it waits for a run: the next apply waits for the
// same one.
func killedStoke(t *testing.T, l *podLab) {
	l.wait, l.epochs = "", 60
	l.write()
	victim := l.command("apply", "-auto-approve")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	l.Wait(t, "the coordinator's Job is there", func(ctx context.Context) (bool, error) {
		found, err := l.Client.BatchV1().Jobs(l.ns).List(ctx, metav1.ListOptions{LabelSelector: "stoke.dev/role=coordinator"})
		return err == nil && len(found.Items) == 1, err
	})
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	id := l.id()
	l.run(0, "apply", "-auto-approve")
	if again := l.id(); again != id {
		t.Errorf("the next apply made another run: %s, %s", id, again)
	}
	if is := l.status(); is.Phase != "succeeded" || is.Run != id && !strings.HasSuffix(is.Run, id) {
		t.Errorf("the run is %s, %s", is.Run, is.Phase)
	}
	l.run(0, "plan", "-detailed-exitcode")
	l.destroyed()
}

// collectedLater starts a run and leaves; a later plan and apply find how it
// ended.
func collectedLater(t *testing.T, l *podLab) {
	l.epochs = 3
	began := time.Now()
	l.apply()
	l.until("it has ended", func(is providers.RunStatus) bool { return is.Phase == "succeeded" })
	t.Logf("ended after %v", time.Since(began).Round(time.Second))
	l.run(0, "apply", "-auto-approve")
	accuracy, err := strconv.ParseFloat(strings.TrimSpace(l.run(0, "output", "-raw", "accuracy")), 64)
	if err != nil || accuracy < 0.5 || accuracy > 1 {
		t.Errorf("accuracy %v, %v", accuracy, err)
	}
	l.run(0, "plan", "-detailed-exitcode")
	l.destroyed()
}
