// Package probe runs stoke-gpu, the small program that reads GPUs through NVML, as
// a child: once for a check, or as long as a run for its readings.
//
// A run never depends on it. The log has one line about a child that is
// missing, dies, hangs, or prints garbage; nothing here takes longer than Limit. The child
// ends with this process.
//
// Entry points: Path, Follow, Check.
package probe
