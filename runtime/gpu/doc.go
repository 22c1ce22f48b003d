// Package gpu has what stoke knows of NVIDIA GPUs, as data: the inventory of a
// machine, readings with their units, and the rules of health: a GPU is fit for work,
// fit with a warning, or unfit.
//
// Readings come from stoke-gpu (NVML) or from nvidia-smi, whose XML this package
// parses. It starts no process and links no library: package runtime/gpu/probe
// runs stoke-gpu.
//
// Entry points: Table, Rules, Judge, ParseSMI.
package gpu
