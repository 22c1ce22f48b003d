//go:build e2e

package main

import (
	"testing"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// TestGoogleKillsEverywhere kills stoke before the commit, after it and while it
// polls, at every call that changes something: each life is killed once in each of
// its stages, and the very next run of each stage ends what that one began.
func TestGoogleKillsEverywhere(t *testing.T) {
	for _, transport := range []string{cloud.GRPC, cloud.REST} {
		moments := googleMoments(t, transport)
		lives, kills := 0, 0
		for _, stage := range googleStages {
			lives = max(lives, len(moments[stage]))
			kills += len(moments[stage])
		}
		t.Logf("%s: %d moments to kill at, in %d lives", transport, kills, lives)
		for i := range lives {
			name := transport
			for _, stage := range googleStages {
				name += ", " + moments[stage][i%len(moments[stage])].String()
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := newGoogleLab(t, transport)
				for _, stage := range googleStages {
					m := moments[stage][i%len(moments[stage])]
					l.declare(stage)
					l.google.Forget()
					if !l.kill(stage, m.at()) {
						l.Errorf("%s: never came to %s", stage, m)
					}
					l.settled(stage)
				}
			})
		}
	}
}
