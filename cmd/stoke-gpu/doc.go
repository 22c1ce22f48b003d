// Command stoke-gpu shows the NVIDIA GPUs of this machine: which there are, what
// they do, and whether they are fit. It reads them through NVIDIA's library NVML,
// which needs cgo; stoke and stoke-trainer have none, and run it as a child.
package main
