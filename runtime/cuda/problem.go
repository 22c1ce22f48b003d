package cuda

import (
	"fmt"
	"strconv"
	"strings"
)

// Problem returns nil where XLA can be started on a GPU, or a Fault with the
// first thing that is missing. It reads files and loads nothing.
func Problem(c Config) error { return c.check(thisMachine()) }

func (c Config) check(m machine) error {
	if err := m.checkGPUs(); err != nil {
		return err
	}
	plugin, missing := c.findPlugin(m)
	version := 0
	if missing == nil {
		version = cudaVersion(plugin)
	}
	if err := m.checkDriver(version); err != nil {
		return err
	}
	_, err := c.find(m)
	return err
}

// checkGPUs reports a machine without a GPU that this process may use.
func (m machine) checkGPUs() error {
	gpus, err := m.listGPUs()
	if err != nil {
		return &Fault{Kind: NoGPU, Summary: "The GPUs of this machine cannot be listed",
			Advice: "The driver's files are in /proc/driver/nvidia.", Cause: err}
	}
	if len(gpus) > 0 {
		return nil
	}
	if all, err := m.allGPUs(); err == nil && len(all) > 0 {
		return &Fault{Kind: NoGPU, Summary: "All GPUs of this machine are hidden",
			Advice: fmt.Sprintf("CUDA_VISIBLE_DEVICES is %q, and the machine has %d. Remove the variable, or list indices or UUIDs.",
				m.getenv("CUDA_VISIBLE_DEVICES"), len(all))}
	}
	if m.driverVersion() != "" {
		return &Fault{Kind: NoGPU, Summary: "The NVIDIA driver shows no GPU",
			Advice: "No GPU in /proc/driver/nvidia/gpus has a file in /dev. " +
				"In a container, ask for a GPU: nvidia.com/gpu in Kubernetes, --gpus in Docker."}
	}
	if m.hasNVIDIA() {
		return &Fault{Kind: NoDriver, Summary: "The NVIDIA driver is not loaded",
			Advice: "The machine has an NVIDIA GPU, and /proc/driver/nvidia/version does not exist. " +
				"Install the driver, for example by metal_gpu_driver, or load the kernel module nvidia."}
	}
	return &Fault{Kind: NoGPU, Summary: "This machine has no NVIDIA GPU",
		Advice: "No GPU is on the PCI bus, and /proc/driver/nvidia does not exist. Train on the CPU, or on a machine with a GPU."}
}

// checkDriver reports a driver that is missing or too old for a version of CUDA,
// 0 if that is unknown.
func (m machine) checkDriver(cuda int) error {
	version := m.driverVersion()
	if version == "" {
		return &Fault{Kind: NoDriver, Summary: "The NVIDIA driver is not loaded",
			Advice: "No version was found in /proc/driver/nvidia/version. Load the kernel module nvidia."}
	}
	if m.findDriver() == "" {
		return &Fault{Kind: NoDriver, Summary: "The driver's library libcuda.so.1 is missing",
			Advice: fmt.Sprintf("It was looked for in %s. Install the libraries of driver %s; "+
				"in a container, NVIDIA's container toolkit brings them.", inWords(m.driverFolders()), version)}
	}
	// From NVIDIA's table of CUDA's releases: 13 needs branch 580, and 12 runs
	// from branch 525 on.
	least := 525
	if cuda >= 13 {
		least = 580
	}
	branch, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(branch); err == nil && n < least {
		advice := fmt.Sprintf("It has version %s, and CUDA %d needs %d or newer. Install a newer driver", version, max(cuda, 12), least)
		if cuda >= 13 && n >= 525 {
			advice += ", or XLA's plugin for CUDA 12, jax-cuda12-pjrt"
		}
		return &Fault{Kind: OldDriver, Summary: "The NVIDIA driver is too old", Advice: advice + "."}
	}
	return nil
}
