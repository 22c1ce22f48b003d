package engine

import (
	"errors"
	"fmt"
	"math"

	"github.com/stokehq/stoke/runtime/optimizer"
)

// maxSlots is how many slots the optimizers have at most: see optimizer.Recipe.
const maxSlots = 2

// CheckSpan reports a span of n elements that a replica's vector of some length does not
// have, or a vector that no replica keeps.
func CheckSpan(vector, offset, n, length int) error {
	switch {
	case vector < 0 || vector > maxSlots:
		return fmt.Errorf("vector %d: the replica keeps 0 (parameters) to %d (the optimizer's slots)", vector, maxSlots)
	case offset < 0 || offset > length || n > length-offset:
		return fmt.Errorf("elements %d to %d of a vector of %d", offset, offset+n, length)
	}
	return nil
}

// CheckUpdate reports arguments of Updater.Update that a replica with a vector of some
// length does not take. Without sums a pass of Steps must be under way.
func CheckUpdate(sums []float32, weight float64, r optimizer.Recipe, length int, stepping bool) error {
	switch {
	case sums == nil && !stepping:
		return errors.New("no pass of Steps is under way, and no sums are given")
	case sums != nil && len(sums) != length:
		return fmt.Errorf("%d sums for a vector of %d elements", len(sums), length)
	case !(weight >= 0) || math.IsInf(weight, 0):
		return fmt.Errorf("weight %v: want a number of records", weight)
	}
	return r.Validate()
}
