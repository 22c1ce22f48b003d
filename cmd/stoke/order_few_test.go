//go:build !e2e

package main

import "testing"

// orderSize and orderGraphs are how large the random graphs of TestOrder are
// and how many it takes; `make e2e` takes larger ones, `make e2e-order` more.
const orderSize = 60

func orderGraphs(testing.TB) int { return 16 }
