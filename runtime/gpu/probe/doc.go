// Package probe runs stoke-gpu, the small program that reads GPUs through NVML, as
// a child: once for a check, or as long as a run for its readings.
//
// A run never depends on it. The log has one line about a child that is
// missing, dies, hangs, or prints garbage; no function that a run calls takes longer than
// Limit. The child ends with this process. Measure is for stoke-gpu itself: it runs
// stoke-trainer-gpu on one GPU.
//
// Entry points: Path, Follow, Check, Measure.
package probe
