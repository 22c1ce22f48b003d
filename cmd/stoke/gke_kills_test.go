package main

import (
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/cloud"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestGoogleKills kills stoke at the first call of each kind, in each stage of a
// configuration's life, one after another: each run that follows a kill comes
// further and is killed by the next kind of call, until one ends. There is a life
// for each moment of a call. `make e2e-gke` kills at every call by itself.
func TestGoogleKills(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("what it looks for is no race within a process")
	}
	moments := googleMoments(t, cloud.GRPC)
	for when, transport := range map[gcptest.When]string{gcptest.Before: cloud.GRPC, gcptest.After: cloud.REST, gcptest.Polling: cloud.GRPC} {
		t.Run(whenNames[when], func(t *testing.T) {
			t.Parallel()
			l := newGoogleLab(t, transport)
			for _, stage := range googleStages {
				l.declare(stage)
				l.google.Forget()
				var killed []string
				for l.kill(stage, func(e gcptest.Event) bool {
					call := e.Call
					if e.When == gcptest.Polling {
						call = e.Started
					}
					if e.When != when || slices.Contains(killed, call.Method) {
						return false
					}
					killed = append(killed, call.Method)
					return true
				}, "-parallelism=1") { // nothing else gets done in passing
				}
				slices.Sort(killed)
				if want := googleMethods(moments[stage]); !slices.Equal(killed, want) {
					l.Errorf("%s: killed at %v, the calls are %v", stage, killed, want)
				}
				l.settled(stage)
			}
		})
	}
}

// TestGoogleStrangers kills stoke when a create was accepted. What it has made then
// loses its mark, or has the mark of somebody else: no later apply takes it over,
// changes it or destroys it, and each says what to do.
func TestGoogleStrangers(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"", "somebody-elses"} {
		for _, target := range []string{"clusters/lab", "nodePools/gpu", "disks/data", "disks/scratch", "firewalls/ssh"} {
			name := target + " without a mark"
			if mark != "" {
				name = target + " with another mark"
				if strings.HasPrefix(target, "disks/") {
					continue // their marks are labels, as those of clusters are
				}
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := newGoogleLab(t, cloud.GRPC)
				if !l.kill(made, func(e gcptest.Event) bool {
					return e.When == gcptest.After && makes(e.Call) && strings.HasSuffix(e.Call.Target, target)
				}) {
					l.Fatal("the create never came")
				}
				path := l.killed[0].Target
				l.google.Settle()
				l.remark(path, mark)
				l.google.Forget()
				out := l.stoke(1, "apply", "-auto-approve")
				if !strings.Contains(strings.ToLower(out), "already exists") || !strings.Contains(out, "Import it") {
					l.Errorf("stoke says:\n%s", out)
				}
				if _, ok := l.state()[path]; ok {
					l.Errorf("%s was taken over", path)
				}
				l.stoke(0, "destroy", "-auto-approve")
				for _, c := range l.google.Calls() {
					if c.Mutating && c.Target == path && !makes(c) {
						l.Errorf("%s was touched by %s", path, c.Method)
					}
				}
				left := slices.DeleteFunc(l.google.Paths(), func(p string) bool {
					return strings.Contains(p, "/snapshots/") || strings.Contains(p, "nodePools/stoke-bootstrap")
				})
				if !slices.Equal(left, []string{path}) && !strings.Contains(path, "/nodePools/") {
					l.Errorf("in the end there is %v", left)
				}
			})
		}
	}
}

// remark gives an object another mark; "" is none.
func (l *googleLab) remark(path, mark string) {
	l.Helper()
	labels := func(all map[string]string) {
		delete(all, cloud.Mark)
		if mark != "" {
			all[cloud.Mark] = mark
		}
	}
	for _, o := range l.google.Inventory() {
		if o.Path != path {
			continue
		}
		var err error
		switch v := o.Value.(type) {
		case *containerpb.Cluster:
			err = l.google.Change(path, func(k *containerpb.Cluster) { labels(k.GetResourceLabels()) })
		case *containerpb.NodePool:
			err = l.google.ChangePool(path, func(p *containerpb.NodePool) { labels(p.GetConfig().GetResourceLabels()) })
		case *compute.Disk:
			v.Labels = o.Labels
			labels(v.Labels)
			l.google.Put(path, v)
		case *compute.Firewall:
			text, _ := cloud.Description(v.Description)
			v.Description = cloud.Describe(text, mark)
			l.google.Put(path, v)
		}
		if err != nil {
			l.Fatal(err)
		}
		return
	}
	l.Fatalf("%s is not there", path)
}
