package launch

import (
	"math"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

// The usage of a role that runs is found by its name, here and in a cluster.
func TestUsageOfARole(t *testing.T) {
	s := State{Status: spec.Status{Usage: map[string]spec.Usage{"coordinator": {CPU: 1}, "worker-0": {CPU: 2}, "worker-10": {CPU: 3}}}}
	for _, tt := range []struct {
		role Role
		want float64 // 0: none
	}{
		{Role{Name: "coordinator", Phase: Running}, 1},
		{Role{Name: "coordinator-0", Phase: Running}, 1},
		{Role{Name: "worker-0", Phase: Running}, 2},
		{Role{Name: "worker-10", Phase: Running}, 3},
		{Role{Name: "worker-1", Phase: Running}, 0},
		{Role{Name: "worker-0", Phase: Waiting}, 0},
	} {
		got := 0.0
		if u := s.UsageOf(tt.role); u != nil {
			got = u.CPU
		}
		if got != tt.want {
			t.Errorf("%+v: %g, want %g", tt.role, got, tt.want)
		}
	}
}

// A status with a usage that no process has is refused.
func TestUsageOfAStatusIsChecked(t *testing.T) {
	with := func(name string, u spec.Usage) error {
		return Check(spec.Status{Run: "a", Phase: spec.Running, Usage: map[string]spec.Usage{name: u}}, "a")
	}
	if err := with("worker-0", spec.Usage{CPU: 1.5}); err != nil {
		t.Error(err)
	}
	for name, u := range map[string]spec.Usage{
		"worker-0": {CPU: math.NaN()}, "worker-1": {Memory: -1}, strings.Repeat("x", 300): {},
	} {
		if with(name, u) == nil {
			t.Errorf("%s: %+v is accepted", name, u)
		}
	}
}
