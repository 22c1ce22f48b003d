package spec

import "math"

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
