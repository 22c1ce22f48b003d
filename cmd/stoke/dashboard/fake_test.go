package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stokehq/stoke/providers"
)

// fakeSource has runs in memory.
type fakeSource struct {
	mu       sync.Mutex
	runs     []*fakeRun
	mayWrite bool
	saved    map[string]string
	problems []string

	planned   int   // lines before the last one of a plan
	unplanned error // of a plan
	drift     Drift
	undrifted error
	apply     func(ctx context.Context, file string, stop <-chan struct{}, line func(string)) error // nil: nothing may be applied
}

func (f *fakeSource) Runs(context.Context) ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Entry, 0, len(f.runs))
	for _, r := range f.runs {
		all = append(all, Entry{Address: r.address, ID: r.status.Run, Configuration: r.configuration, Run: func(context.Context) (providers.Run, error) {
			return r, r.gone
		}})
	}
	return all, nil
}

func (f *fakeSource) Validate(context.Context, string, string) ([]string, error) {
	return f.problems, nil
}
func (f *fakeSource) Plan(_ context.Context, _, hcl string) (Plan, error) {
	text := strings.Repeat("+ one line\n", f.planned) + "Plan: 1 to add of " + hcl + "\x1b[31m<script>"
	return Plan{Text: text, Add: 1, Change: 2, Destroy: 3, Left: 4, Apply: f.apply}, f.unplanned
}
func (f *fakeSource) Drift(_ context.Context, address string) (Drift, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drift, f.undrifted
}
func (f *fakeSource) MayApply() bool { return f.apply != nil }
func (f *fakeSource) MayWrite() bool { return f.mayWrite }

func (f *fakeSource) Save(_ context.Context, name, hcl string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved[name] = hcl
	return name, nil
}

// fakeRun is a run whose status, events and lines a test sets.
type fakeRun struct {
	address       string
	configuration map[string]string
	gone          error

	mu      sync.Mutex
	status  providers.RunStatus
	events  []providers.RunEvent
	lines   []providers.RunLine
	asked   []providers.RunMetrics
	ledger  *providers.RunLedger
	survey  func() providers.RunSurvey // nil: there is none
	changed chan struct{}
}

func (r *fakeRun) Status(context.Context) (providers.RunStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.Roles = slices.Clone(s.Roles)
	return s, nil
}

// Survey implements providers.RunSurveyor.
func (r *fakeRun) Survey(context.Context) (providers.RunSurvey, error) {
	if r.survey == nil {
		return providers.RunSurvey{}, providers.ErrNoSurvey
	}
	return r.survey(), nil
}

// clusterOf returns a survey of five nodes with the live runs, pods of others, and pods
// that wait.
func clusterOf(runs []*fakeRun) providers.RunSurvey {
	is := providers.RunSurvey{Place: "training", ID: "uid-1"}
	for i := range 5 {
		is.Nodes = append(is.Nodes, providers.RunNode{Name: fmt.Sprintf("node-%d", i), Phase: "ready", CPU: 64, Memory: 512 << 30, GPUs: 8, GPUModel: "NVIDIA-H100-80GB-HBM3"})
	}
	is.Nodes[4].Phase = "cordoned"
	is.Nodes[1].Tenants = append(is.Nodes[1].Tenants, providers.RunTenant{Name: "other/notebook", CPU: 4, Memory: 16 << 30, GPUs: 1})
	for _, r := range runs {
		r.mu.Lock()
		for i, role := range r.status.Roles {
			t := providers.RunTenant{Name: "default/" + r.status.Run + "-" + role.Name, Run: r.status.Run, CPU: 2, Memory: 4 << 30}
			if strings.HasPrefix(role.Name, "worker") {
				t.GPUs = 1
			}
			switch {
			case !r.status.Ended.IsZero():
			case r.status.Phase == "pending":
				t.Reason, t.Since = "0/5 nodes are available: 1 node(s) were unschedulable, 4 Insufficient nvidia.com/gpu.", began
				is.Pending = append(is.Pending, t)
			default:
				is.Nodes[i%4].Tenants = append(is.Nodes[i%4].Tenants, t)
			}
		}
		r.mu.Unlock()
	}
	return is
}

// wake lets followers read on. Called with mu held.
func (r *fakeRun) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// each calls do for all elements, and with follow for those that are added.
func each[T any](ctx context.Context, r *fakeRun, follow bool, all func() []T, do func(T) error) error {
	for n := 0; ; {
		r.mu.Lock()
		fresh, changed, ended := slices.Clone(all()[n:]), r.changed, !r.status.Ended.IsZero()
		r.mu.Unlock()
		n += len(fresh)
		for _, one := range fresh {
			if err := do(one); err != nil {
				return err
			}
		}
		if !follow || ended {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *fakeRun) Logs(ctx context.Context, o providers.RunLogs, line func(providers.RunLine) error) error {
	return each(ctx, r, o.Follow, func() []providers.RunLine { return r.lines }, func(l providers.RunLine) error {
		if o.Role != "" && l.Role != o.Role || o.Stream != "" && l.Stream != o.Stream {
			return nil
		}
		return line(l)
	})
}

func (r *fakeRun) Metrics(ctx context.Context, o providers.RunMetrics, event func(providers.RunEvent) error) error {
	r.mu.Lock()
	r.asked = append(r.asked, o)
	r.mu.Unlock()
	return each(ctx, r, o.Follow, func() []providers.RunEvent { return r.events }, func(e providers.RunEvent) error {
		isUsage := e.Type == "usage"
		if e.Number <= o.After || e.Time.Before(o.Since) || isUsage && (o.Usage == providers.WithoutUsage || o.Role != "" && o.Role != e.Role) ||
			!isUsage && o.Usage == providers.OnlyUsage {
			return nil
		}
		if o.Brief {
			e.JSON = nil
		}
		return event(e)
	})
}

// add adds an event with its number.
func (r *fakeRun) add(e providers.RunEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Number = int64(len(r.events) + 1)
	if e.JSON == nil {
		e.JSON, _ = json.Marshal(map[string]any{"n": e.Number, "type": e.Type, "step": e.Step, "values": e.Values, "message": e.Message})
	}
	r.events = append(r.events, e)
	r.wake()
}

// say adds a line to the log.
func (r *fakeRun) say(role, stream, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, providers.RunLine{Role: role, Stream: stream, Text: text})
	r.wake()
}

// end ends the run.
func (r *fakeRun) end(phase string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Phase, r.status.Ended = phase, r.status.Started.Add(30*time.Minute)
	for i := range r.status.Roles {
		r.status.Roles[i].Phase, r.status.Roles[i].Usage = "ended", nil
	}
	r.wake()
}

// began is when the runs of tests began.
var began = time.Now().Add(-31 * time.Minute).Truncate(time.Second)

// newRun returns a live run with so many workers, which has not measured anything.
func newRun(name string, workers int, rate float64) *fakeRun {
	r := &fakeRun{
		address: "train_experiment." + name, changed: make(chan struct{}),
		configuration: map[string]string{
			"model": "resnet20", "strategy": "parameter_server", "dataset": "file:///data/cifar10",
			"hyperparameters.learning_rate": strconv.FormatFloat(rate, 'g', -1, 64), "hyperparameters.batch_size": "128",
			"hyperparameters.epochs": "164", "hyperparameters.momentum": "0.9",
			"worker.replicas": strconv.Itoa(workers), "worker.min_replicas": "1", "evaluation.every_steps": "50",
		},
	}
	r.status = providers.RunStatus{
		Trains: true, Run: "run-" + name, Phase: "running", Progress: "epoch 1/164", Percent: 0, Steps: 2000, Epochs: 164, Workers: workers, Wanted: workers,
		Checkpoint: -1, Started: began, Metrics: map[string]float64{},
	}
	for i, role := range append([]string{"coordinator", "ps-0"}, roleNames(workers)...) {
		r.status.Roles = append(r.status.Roles, providers.RunRole{Name: role, Phase: "running", Since: began, Node: fmt.Sprintf("node-%d", i%4)})
	}
	return r
}

func roleNames(workers int) (names []string) {
	for i := range workers {
		names = append(names, fmt.Sprintf("worker-%d", i))
	}
	return names
}

// train adds the events of the steps from one to another: updates, evaluations,
// checkpoints, and a sample of each role every 20 steps.
func (r *fakeRun) train(from, to int) {
	rate, _ := strconv.ParseFloat(r.configuration["hyperparameters.learning_rate"], 64)
	for step := from; step < to; step++ {
		at := began.Add(time.Duration(step) * 900 * time.Millisecond)
		x := float64(step)
		wave := math.Sin(x*12.9898) * 0.5 // looks like noise, and is the same in every run
		loss := 2.3*math.Exp(-x*rate/60) + 0.12 + 0.22*wave*math.Exp(-x/900)
		r.add(providers.RunEvent{Time: at, Type: "update", Step: int64(step + 1), Values: map[string]float64{"loss": loss, "norm": 1 + wave*wave + 2*math.Exp(-x/200), "records": 128}})
		if step%50 == 49 {
			accuracy := 0.93 - 0.83*math.Exp(-x*rate/80) + 0.02*wave
			r.add(providers.RunEvent{Time: at, Type: "evaluation", Step: int64(step + 1), Values: map[string]float64{"accuracy": accuracy, "loss": loss * 1.15}})
			r.mu.Lock()
			r.status.Metrics["accuracy"], r.status.Metrics["loss"], r.status.Metrics["samples_per_second"] = accuracy, loss, 4812.4+100*wave
			r.mu.Unlock()
		}
		if step%500 == 499 {
			r.add(providers.RunEvent{Time: at, Type: "checkpoint", Step: int64(step + 1), Message: fmt.Sprintf("step %d", step+1)})
		}
		if step%20 == 19 {
			r.sample(at, x)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Step, r.status.Percent, r.status.Epoch = int64(to), float64(to)*100/2000, to/12
	r.status.Checkpoint = int64(to / 500 * 500)
}

// sample adds the usage of each role.
func (r *fakeRun) sample(at time.Time, x float64) {
	for i := range r.status.Roles {
		r.mu.Lock()
		role := &r.status.Roles[i]
		k := float64(i + 1)
		u := &providers.RunUsage{
			At: at, CPU: 1.6 + 0.3*math.Sin(x/37*k), Memory: int64(410e6 + 30e6*math.Sin(x/90+k)), Processes: 1,
			Received: 3.2e6 + 1e6*math.Sin(x/23+k), Sent: 2.9e6 + 0.8e6*math.Cos(x/29+k), Written: 2000 * k, Network: true,
		}
		if strings.HasPrefix(role.Name, "coord") {
			u.CPU /= 8
		}
		role.Usage = u
		name := role.Name
		r.mu.Unlock()
		r.add(providers.RunEvent{Time: at, Type: "usage", Step: int64(x), Role: name, Values: map[string]float64{
			name + ".cpu": u.CPU, name + ".memory_bytes": float64(u.Memory), name + ".received_per_second": u.Received,
			name + ".sent_per_second": u.Sent, name + ".read_per_second": 0, name + ".written_per_second": u.Written, name + ".processes": 1,
		}})
	}
}

// someRuns returns a source with runs in several phases, for screens.
func someRuns() *fakeSource {
	f := &fakeSource{saved: make(map[string]string)}
	for i, name := range []string{`resnet20["w1"]`, `resnet20["w2"]`, `resnet20["w4"]`, `resnet20["w8"]`, "baseline", "large_batch"} {
		r := newRun(name, []int{1, 2, 4, 8, 2, 4}[i], []float64{0.4, 0.8, 1.2, 2.4, 0.3, 0.2}[i])
		for w := range r.status.Workers {
			index := w
			r.add(providers.RunEvent{Time: began, Type: "worker", Message: "joined", Worker: &index})
		}
		r.train(0, []int{2000, 2000, 1240, 700, 900, 400}[i])
		for n := range 40 {
			r.say("coordinator", "stderr", fmt.Sprintf(`time=2026-03-04T09:30:%02d.120Z level=INFO msg="checkpoint saved" step=%d`, n, n*50))
			r.say(fmt.Sprintf("worker-%d", n%r.status.Workers), "stdout", fmt.Sprintf("Loss = %.4f, steps = %d", 2.3/float64(n+1), n*50))
		}
		f.runs = append(f.runs, r)
	}
	f.runs[0].end("succeeded")
	f.runs[1].end("succeeded")
	f.runs[4].end("failed")
	f.runs[4].status.Message = "worker 1 ran out of memory: allocation of 9.4 GB failed"
	waiting := newRun("transformer", 4, 0.1)
	waiting.status.Phase, waiting.status.Started, waiting.status.Workers = "pending", time.Time{}, 0
	waiting.status.Message = "waits for 4 × 1 GPU: 2 are free"
	for i := range waiting.status.Roles {
		waiting.status.Roles[i].Phase, waiting.status.Roles[i].Node = "pending", ""
	}
	f.runs = append(f.runs, waiting)
	for _, r := range f.runs {
		r.status.Where, r.survey = "training/default", func() providers.RunSurvey { return clusterOf(f.runs) }
	}
	return f
}
