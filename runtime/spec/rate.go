package spec

import (
	"math"
	"math/bits"
)

// Rate is the learning rate of an update computed for so many workers. It
// differs from learning_rate only where the global batch grows with them.
func (s *Spec) Rate(workers int) float64 {
	if s.BatchPer != BatchPerWorker || s.Asynchronous {
		return s.LearningRate
	}
	n := float64(max(1, workers))
	switch s.LearningRateScaling {
	case ScalingLinear:
		return s.LearningRate * n
	case ScalingSqrt:
		return s.LearningRate * math.Sqrt(n)
	}
	return s.LearningRate
}

// Updates is how many updates the run has, as far as can be said beforehand,
// where an epoch has so many records.
func (s *Spec) Updates(records int64) int64 {
	batch := int64(max(1, s.GlobalBatch(s.Worker.Replicas)))
	n := Product(int64(s.Epochs), (records+batch-1)/batch)
	if s.MaxSteps > 0 {
		n = min(n, int64(s.MaxSteps))
	}
	return n
}

// Product is a × b, neither negative, or the most that is told apart from
// without end: 2⁶².
func Product(a, b int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > most {
		return most
	}
	return int64(low)
}

const most = 1 << 62

// An update is cut into at most so many leases, so that workers of different
// speed can share it and a lost one costs little; where the batch grows with
// the workers, each one's part is.
const (
	leasesPerUpdate = 64
	leasesPerPart   = 8
)

// LeaseRecords is how many records are in one lease of a run over a training set
// of so many records: a whole number of micro-batches, which one worker adds up
// and pushes once. It follows only from the training set and from fields whose
// change is a new run, so that sums are made in the same order whichever workers
// compute them. A batch above the training set is cut as if it were as large.
// Asynchronously a lease is a whole update.
func (s *Spec) LeaseRecords(records int64) int {
	if s.Asynchronous {
		return s.BatchSize
	}
	micro, most := s.MicroBatchSize(), leasesPerUpdate
	if s.BatchPer == BatchPerWorker {
		most = leasesPerPart
	}
	batch := int(min(int64(s.BatchSize), max(1, records)))
	batches := (batch + micro - 1) / micro
	return micro * ((batches + most - 1) / most)
}
