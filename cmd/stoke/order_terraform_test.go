//go:build e2e

package main

import (
	"fmt"
	"os/exec"
	"sync/atomic"
	"testing"
)

// TestOrderTerraform takes random graphs through both tools. Terraform keeps
// the rules but for the difference that docs/differences.md names, where it
// finds an order at all; both do the same, and Terraform destroys in that order
// what stoke's state tells of.
func TestOrderTerraform(t *testing.T) {
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	stoke, err := exec.LookPath("stoke") // this binary: see TestMain
	if err != nil {
		t.Fatal(err)
	}
	var skipped atomic.Int32
	t.Cleanup(func() {
		if n := skipped.Load(); n > 25 {
			t.Errorf("%d graphs of 50 were skipped", n)
		}
	})
	terraform := orderTool{path: path, env: []string{reattached(t)}, anyUpdate: true}
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Skipped() {
					skipped.Add(1)
				}
			})
			ours := newOrderWalk(t, seed, 30, orderTool{path: stoke})
			ours.begin()
			ours.end()
			theirs := newOrderWalk(t, seed, 30, terraform)
			theirs.begin()
			theirs.end()
			if d := lineDiff(ours.account(), theirs.account()); d != "" {
				t.Errorf("stoke (-) and terraform (+) did not do the same:\n%s", d)
			}
			both := newOrderWalk(t, seed, 30, orderTool{path: stoke})
			both.begin()
			both.tool = terraform
			both.destroy(seed%2 == 0)
		})
	}
}
