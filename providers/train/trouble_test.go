package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestTroubles words what a run on a cluster lacks, in one warning each.
func TestTroubles(t *testing.T) {
	waiting := func(n int, reason string) (all []launch.Role) {
		all = append(all, launch.Role{Name: "ps-0", Phase: "running", Reason: "is asked to leave"}, launch.Role{Name: "worker-99", Phase: launch.Waiting})
		for i := range n {
			all = append(all, launch.Role{Name: fmt.Sprintf("worker-%d", i), Phase: launch.Waiting, Reason: reason})
		}
		return all
	}
	running, over := spec.Status{Phase: spec.Running}, spec.Status{Phase: spec.Succeeded}
	for _, tt := range []struct {
		name string
		is   launch.State
		want []string
	}{
		{"whole", launch.State{Status: running, Roles: waiting(0, "")}, nil},
		{"no image", launch.State{Status: running, Roles: waiting(2, "ImagePullBackOff: no such image")}, []string{"worker-0: ImagePullBackOff: no such image\nworker-1: ImagePullBackOff"}},
		{"no room for many", launch.State{Status: running, Roles: waiting(50, "exceeded quota")}, []string{"worker-7: exceeded quota\nand 42 more"}},
		{"over", launch.State{Status: over, Roles: waiting(2, "no room")}, nil},
		{"broken", launch.State{Status: spec.Status{Phase: spec.Lost}, CannotContinue: "the Job x failed"}, []string{"run-1: the Job x failed."}},
		{"broken and waiting", launch.State{Status: spec.Status{Phase: spec.Lost}, CannotContinue: "the Job x failed", Roles: waiting(1, "no room")}, []string{"the Job x failed.", "worker-0: no room"}},
		{"at risk", launch.State{Status: running, Warnings: []string{"the claim x is gone"}}, []string{"run-1: the claim x is gone."}},
		{"unprintable", launch.State{Status: running, Roles: waiting(1, "no\x1b[31m room")}, []string{"no[31m room"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := troubles("run-1", tt.is)
			if len(got) != len(tt.want) || got.HasError() {
				t.Fatalf("%d warnings, want %d: %v", len(got), len(tt.want), got)
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i].Detail(), want) {
					t.Errorf("it says %q, want %q", got[i].Detail(), want)
				}
			}
		})
	}
}

// TestIdleness says why a run is resumed, and verdict what is done about it.
func TestIdleness(t *testing.T) {
	if why := idleness(remains{launch.State{CannotContinue: "the Job x failed"}}); why != "the Job x failed" {
		t.Error(why)
	}
	if why := idleness(remains{}); why != "no process runs it" {
		t.Error(why)
	}
	for _, tt := range []struct {
		is   spec.Status
		want string
	}{
		{spec.Status{Phase: spec.Lost, Message: "the Job x failed"}, "the Job x failed. It is at step 0."},
		{spec.Status{Phase: spec.Lost}, "Its supervisor is gone without a result. It is at step 0."},
		{spec.Status{Phase: spec.Stopped, Cause: spec.CauseTrainer, Message: "open dataset: nowhere"}, "image and dataset_path. The next apply resumes it"},
	} {
		if got := verdict(new(providers.Call), launch.State{Status: tt.is}, ""); len(got) != 1 || !got.HasError() || !strings.Contains(got[0].Detail(), tt.want) {
			t.Errorf("%+v: %v", tt.is, got)
		}
	}
}

// held is a run whose place a lost node holds.
type held struct {
	launch.Launcher
	released int
	err      error
}

func (h *held) Status(context.Context, string) (launch.State, error) {
	return launch.State{Status: spec.Status{Phase: spec.Succeeded}}, nil
}

func (h *held) Release(context.Context, string) error {
	h.released++
	return h.err
}

// TestHeldPlaceIsLetGo: a run that nobody waits for has nothing to plan, unless a
// lost node holds a place of it; an apply lets go of that, or says who can.
func TestHeldPlaceIsLetGo(t *testing.T) {
	for _, state := range []launch.State{{}, {HeldRoles: []string{"worker-1"}}} {
		plan := &experimentModel{Status: types.StringValue("running")}
		plan.Wait = types.BoolValue(false)
		p := &planning{settings: new(settings), plan: plan, draft: &draft{spec: spec.Default()}, resp: new(resource.ModifyPlanResponse)}
		p.unfinished(t.Context(), nil, false, remains{state})
		if plan.Status.IsUnknown() != (len(state.HeldRoles) > 0) {
			t.Errorf("held: %q, planned: %v", state.HeldRoles, plan.Status)
		}
	}
	for _, err := range []error{nil, errors.New("pod x of the node y: forbidden")} {
		l := &held{err: err}
		diags := new(experimentResource).adjust(t.Context(), trainingRun{l, "run-1"}, nil, nil, nil, false)
		if l.released != 1 || diags.HasError() || (len(diags) == 1) != (err != nil) {
			t.Errorf("released %d times, %v", l.released, diags)
		}
	}
}

// renewed is a run that is to be made anew at a checkpoint.
type renewed struct {
	launch.Launcher
	done []string
}

func (r *renewed) Status(context.Context, string) (launch.State, error) {
	s := launch.State{Status: spec.Status{Phase: spec.Running, Step: 5, Message: "training"}, Saved: 5, RestartReason: "the claim x is gone"}
	if len(r.done) > 0 {
		s.Phase, s.RestartReason = spec.Stopped, ""
	}
	return s, nil
}

func (r *renewed) Stop(context.Context, string, time.Duration) error {
	r.done = append(r.done, "stop")
	return nil
}

func (r *renewed) Resume(context.Context, string, spec.Spec, launch.Code) error {
	r.done = append(r.done, "resume")
	return nil
}

// TestRunAtRiskIsRenewed: a run that has lost what it can go on without is
// stopped at a checkpoint and goes on, as the plan says, also where nobody waits
// for its end; and its status says why.
func TestRunAtRiskIsRenewed(t *testing.T) {
	l := new(renewed)
	is, err := l.Status(t.Context(), "run-1")
	if err != nil {
		t.Fatal(err)
	}
	if text := messageOf(is); text != "training; the claim x is gone" {
		t.Errorf("its status says %q", text)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	given := filepath.Join(t.TempDir(), trainerName)
	if err := os.Symlink(self, given); err != nil {
		t.Fatal(err)
	}
	plan := &experimentModel{Status: types.StringValue("running")}
	plan.Wait, plan.Cluster = types.BoolValue(false), types.ObjectValueMust(map[string]attr.Type{}, nil)
	p := &planning{settings: &settings{given: given}, plan: plan, draft: &draft{spec: spec.Default()}, resp: new(resource.ModifyPlanResponse), call: new(providers.Call)}
	p.unfinished(t.Context(), nil, false, remains{is})
	if !plan.Status.IsUnknown() {
		t.Errorf("the plan leaves it at %v", plan.Status)
	}
	if !p.renews {
		t.Error("the plan does not say so to the apply")
	}
	plan.Dataset = types.StringValue("file:///nowhere")
	same, diags := plan.draft()
	if diags.HasError() {
		t.Fatal(diags)
	}
	diags = (&experimentResource{settings: p.settings}).adjust(t.Context(), trainingRun{l, "run-1"}, same, plan, plan, false)
	if len(l.done) > 0 || len(diags) == 0 || diags.HasError() {
		t.Errorf("an apply of a plan that did not know: %q, %v", l.done, diags)
	}
	diags = (&experimentResource{settings: p.settings}).adjust(t.Context(), trainingRun{l, "run-1"}, same, plan, plan, true)
	if strings.Join(l.done, " ") != "stop resume" || diags.HasError() {
		t.Errorf("it was done %q, %v", l.done, diags)
	}
}

// spent is a run that nobody runs and that has nothing to go on from.
type spent struct{ launch.Launcher }

func (spent) Status(context.Context, string) (launch.State, error) {
	return launch.State{Status: spec.Status{Phase: spec.Lost, Step: 5}, Saved: -1, CheckpointsLost: true, CannotContinue: "the claim x is gone"}, nil
}

// TestSpentRunIsNotResumed: an apply whose plan has a run go on does not start it
// over where what it had saved has gone since.
func TestSpentRunIsNotResumed(t *testing.T) {
	diags := new(experimentResource).adjust(t.Context(), trainingRun{spent{}, "run-1"}, nil, nil, nil, false)
	if len(diags) != 1 || !diags.HasError() || !strings.Contains(diags[0].Detail(), "the claim x is gone. Its checkpoints were lost after the plan was made.") {
		t.Error(diags)
	}
}

// fleeting is a run whose checkpoints are there for as long as its coordinator is.
type fleeting struct{ launch.Launcher }

func (fleeting) Status(context.Context, string) (launch.State, error) {
	return launch.State{Status: spec.Status{Phase: spec.Running, Step: 5}, Saved: 5, DiesWithCoordinator: true, Warnings: []string{"the claim x is being deleted"}}, nil
}

// TestFleetingRunIsNotStopped: a change that stops a run is a new run where what
// the old one has saved goes with it, and nothing that an apply does on its own,
// should it find that the plan did not know.
func TestFleetingRunIsNotStopped(t *testing.T) {
	is, err := fleeting{}.Status(t.Context(), "run-1")
	if err != nil {
		t.Fatal(err)
	}
	prior := &experimentModel{Cluster: types.ObjectValueMust(map[string]attr.Type{}, nil)}
	prior.Dataset = types.StringValue("file:///nowhere")
	prior.Coordinator = types.ObjectValueMust(map[string]attr.Type{"storage": types.StringType}, map[string]attr.Value{"storage": types.StringValue("1Gi")})
	changes := []spec.Change{{Field: "parameter_server.replicas", Cost: spec.Resume}}
	for _, lost := range []bool{false, true} {
		is.DiesWithCoordinator = lost
		if got := (&planning{settings: new(settings)}).perishes(prior, changes, remains{is}); got != lost {
			t.Errorf("claim lost: %t, planned as a new run: %t", lost, got)
		}
	}
	before, diags := prior.draft()
	if diags.HasError() {
		t.Fatal(diags)
	}
	before.spec.ParameterServer.Replicas++
	diags = new(experimentResource).adjust(t.Context(), trainingRun{fleeting{}, "run-1"}, before, prior, prior, false)
	if len(diags) != 1 || !strings.Contains(diags[0].Detail(), "the claim x is being deleted. It continues unchanged.") {
		t.Error(diags)
	}
}

// TestOtherTrainerIsNamed: an image whose trainer is of another version is named;
// one that says nothing of it, or a run of this machine, is not.
func TestOtherTrainerIsNamed(t *testing.T) {
	s := &settings{version: "1.2.0"}
	on := types.ObjectValueMust(map[string]attr.Type{}, nil)
	for _, test := range []struct {
		cluster types.Object
		version string
		named   bool
	}{
		{on, "1.1.0", true}, {on, "1.2.0", false}, {on, "", false}, {on, undated, false}, {types.ObjectNull(map[string]attr.Type{}), "1.1.0", false},
	} {
		said := s.otherTrainer(&experimentModel{Cluster: test.cluster}, launch.State{Version: test.version})
		if named := len(said) == 1 && strings.Contains(said[0].Detail(), "stoke-trainer 1.1.0, and this is stoke 1.2.0"); named != test.named || len(said) > 1 {
			t.Errorf("version %q, cluster %v: %v", test.version, !test.cluster.IsNull(), said)
		}
	}
}
