package drain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/host"
)

// TestEscalate: work that began as harmless and needs a reboot after all drains
// then, or is refused then; and pods come back once all of it is done.
func TestEscalate(t *testing.T) {
	none, reloading := change(host.None), change(host.ReloadsSystemd)
	for name, test := range map[string]struct {
		began  []host.Change
		policy Policy
		pod    []func(*core.Pod)
		want   string
	}{
		"from nothing":                   {none, draining, nil, ""},
		"refused":                        {none, Policy{Limits: quick}, nil, "reboots the machine (fact); node gpu-1 runs 1 pod of others (ml/web)"},
		"from what hurts nobody":         {reloading, draining, nil, ""},
		"from what hurts nobody refused": {reloading, Policy{Limits: quick}, nil, "node gpu-1 runs 1 pod of others (ml/web)"},
		"from a stopped API":             {change(host.StopsAPI), draining, nil, ""},
		"drained already":                {change(host.Drains), draining, nil, ""},
		"files": {none, draining, []func(*core.Pod){func(p *core.Pod) {
			p.Spec.Volumes = []core.Volume{{VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}}}
		}}, "would delete files"},
	} {
		t.Run(name, func(t *testing.T) {
			c := draintest.New(t, nil)
			c.AddNode("gpu-1", func(n *core.Node) { n.Status.NodeInfo.BootID = bootA })
			c.AddPod("gpu-1", "ml/web", test.pod...)
			m := newMachine(c.Files("gpu-1"))
			worked := false
			err := new(Roll).Do(t.Context(), m, look(t, m), test.began, test.policy, func(ctx context.Context) error {
				if before := IsDrained(ctx); before != (host.Greatest(test.began) >= host.Drains) || before == slices.Contains(c.Pods("gpu-1"), "ml/web") {
					t.Errorf("away %v, pods %q", before, c.Pods("gpu-1"))
				}
				if err := Escalate(ctx, change(host.Reboots)); err != nil {
					return err
				}
				worked = true
				if n := c.Node("gpu-1"); !IsDrained(ctx) || !n.Spec.Unschedulable || len(c.Pods("gpu-1")) > 0 {
					t.Errorf("after escalating: away %v, %+v, %q", IsDrained(ctx), n.Spec, c.Pods("gpu-1"))
				}
				return Escalate(ctx, change(host.Reboots))
			})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || worked != (test.want == "") {
				t.Errorf("got %v, want %q; worked %v", err, test.want, worked)
			}
			if n := c.Node("gpu-1"); n.Spec.Unschedulable || len(n.Annotations) > 0 {
				t.Errorf("afterwards: %+v", n)
			}
		})
	}
	if err := Escalate(t.Context(), change(host.Reboots)); err != nil {
		t.Errorf("no node: %v", err)
	}
	if err := Escalate(Unknown(t.Context(), errors.New("no route to host")), change(host.Reboots)); err == nil || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("unknown: %v", err)
	}
}

// TestOutage: an API server that is away for a moment in the middle of a drain
// is waited for; one that stays away leaves a mark, which the next run undoes.
func TestOutage(t *testing.T) {
	for name, comesBack := range map[string]bool{"a moment": true, "for good": false} {
		t.Run(name, func(t *testing.T) {
			c, m, node := one(t)
			c.Linger = 2
			c.OnEvict = func(string) { m.refuse(errors.New("connection refused")); node.api.forget() }
			policy := draining
			policy.Limits.Outage = time.Hour
			if !comesBack {
				policy.Limits.Outage = time.Nanosecond
			}
			ctx := providers.WithCall(t.Context(), &providers.Call{Progress: func(p providers.Progress) {
				if comesBack && strings.Contains(p.Step, "does not answer") {
					m.refuse(nil)
				}
			}})
			err := new(Roll).Do(ctx, m, node, change(host.Reboots), policy, nothing)
			if comesBack && (err != nil || c.Node("gpu-1").Spec.Unschedulable || len(c.Pods("gpu-1")) > 0) {
				t.Errorf("%v, pods %q", err, c.Pods("gpu-1"))
			}
			if comesBack {
				return
			}
			if err == nil || !strings.Contains(err.Error(), "connection refused") || !c.Node("gpu-1").Spec.Unschedulable {
				t.Fatalf("%v", err)
			}
			m.refuse(nil)
			node = look(t, m)
			if node.Mark == nil {
				t.Fatal("no mark is left")
			}
			if err := new(Roll).Do(t.Context(), m, node, node.Leftover(), Policy{Limits: quick}, nothing); err != nil || c.Node("gpu-1").Spec.Unschedulable {
				t.Errorf("the next run: %v", err)
			}
		})
	}
}

// TestStuck: a pod that was asked to end and does not keeps the machine as it is.
func TestStuck(t *testing.T) {
	c, m, node := one(t)
	c.ChangePod("ml/bert", func(p *core.Pod) {
		p.Spec.TerminationGracePeriodSeconds, p.DeletionTimestamp = new(int64(-120)), new(metav1.Now())
	})
	c.Linger = 1 << 30
	policy := draining
	policy.Limits.Drain = time.Millisecond
	err := new(Roll).Do(t.Context(), m, node, change(host.Reboots), policy, func(context.Context) error { t.Error("it works all the same"); return nil })
	if err == nil || !strings.Contains(err.Error(), "ml/bert asked to end and did not") {
		t.Errorf("%v", err)
	}
	if n := c.Node("gpu-1"); n.Spec.Unschedulable || len(n.Annotations) > 0 {
		t.Errorf("%+v", n)
	}
}

// TestAppears: a pod that comes while others leave, bound just before the cordon,
// leaves as well.
func TestAppears(t *testing.T) {
	c, m, node := one(t)
	c.Linger = 1
	late := false
	c.OnEvict = func(pod string) {
		if !late {
			late = true
			c.AddPod("gpu-1", "ml/late", draintest.GPUs(1))
		}
	}
	err := new(Roll).Do(t.Context(), m, node, change(host.Reboots), draining, func(context.Context) error {
		if pods := c.Pods("gpu-1"); len(pods) > 0 {
			t.Errorf("while working: %q", pods)
		}
		return nil
	})
	if err != nil || !late {
		t.Errorf("%v, late %v", err, late)
	}
}
