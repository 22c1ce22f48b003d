// Package cuda starts XLA on one NVIDIA GPU of this machine: which GPUs there
// are, where the files are that XLA needs, what is missing, and a client that
// keeps compiled programs between processes.
//
// # Files
//
// XLA needs its CUDA plugin, libraries of CUDA, ptxas and libdevice.10.bc. The
// driver's libcuda.so.1 is part of the machine. A file that the configuration
// names must exist; others are looked for in this order: an activated Python
// environment, the environments whose python3 is in PATH, packages of Python in the
// usual folders, /opt/stoke/gpu, the
// folder of the running program, /usr/local/cuda, /opt/cuda, and the folders of
// the system. Libraries are loaded by their absolute paths, so that neither
// LD_LIBRARY_PATH nor the search path of the plugin matters.
//
// # Numbers of GPUs
//
// A GPU's index is its number on the machine in the order of bus addresses,
// whatever CUDA_VISIBLE_DEVICES hides. Two processes that see the same devices
// give them the same numbers.
//
// A process starts XLA once, on one GPU: XLA and the driver read the environment
// variables that Open sets only at their start.
//
// Models, runs and plans are not its subject. Entry points: FromEnvironment,
// Problem, Open.
package cuda
