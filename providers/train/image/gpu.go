package image

import (
	"archive/tar"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// GPUTrainerPath is the path of the trainer with the engine of GPUs in images.
	GPUTrainerPath = "/usr/local/bin/stoke-trainer-gpu"
	// StokeGPUPath is the path of stoke-gpu in images: next to the trainers, which run it
	// and copy it to pods of other images.
	StokeGPUPath = "/usr/local/bin/stoke-gpu"
	// GPUFolder is the folder in images where that trainer looks for XLA's plugin,
	// libraries of CUDA, ptxas and libdevice.
	GPUFolder = "/opt/stoke/gpu"

	// driverFolder has the driver's libraries in pods of Google's nodes.
	driverFolder = "/usr/local/nvidia/lib64"
	libraryPath  = "LD_LIBRARY_PATH"
)

// standardLibrary is needed by XLA's plugin.
const standardLibrary = "libstdc++.so.6"

// loaderOf returns the name of glibc's dynamic linker for a processor, by Go's name.
func loaderOf(processor string) string {
	if processor == "arm64" {
		return "ld-linux-aarch64.so.1"
	}
	return "ld-linux-x86-64.so.2"
}

// gpuFiles are the beginnings of the names of files that training on GPUs needs.
func gpuFiles() []string {
	return []string{"xla_cuda_plugin.so", "libcudart.so.", "libcublas.so.", "libcublasLt.so.", "libcudnn.so.", "ptxas", "libdevice.10.bc"}
}

const bases = "Choose a base such as debian:13-slim, ubuntu:24.04 or python:3.12-slim."

// NoBase returns the mistake of an image with GPUs that has no base.
func NoBase() *Mistake {
	return &Mistake{Argument: "base", Summary: "A GPU image needs a base",
		Detail: "stoke-trainer-gpu needs glibc, and XLA's plugin " + standardLibrary + ". " + bases}
}

// CheckGPUTrainer refuses, as *Mistake, a trainer that is not a program for the platform.
func CheckGPUTrainer(name string, platform v1.Platform) error {
	_, err := checkProgram("gpu_trainer", name, platform)
	return err
}

// CheckStokeGPU refuses, as *Mistake, a stoke-gpu that is not a program for the platform.
func CheckStokeGPU(name string, platform v1.Platform) error {
	_, err := checkProgram("stoke_gpu", name, platform)
	return err
}

// collectGPU lists the programs for GPUs, and the files of CUDA.
func (c *Contents) collectGPU() error {
	for _, p := range []struct {
		argument, to, from string
		check              func(name string, platform v1.Platform) error
	}{{"gpu_trainer", GPUTrainerPath, c.spec.GPUTrainer, CheckGPUTrainer}, {"stoke_gpu", StokeGPUPath, c.spec.StokeGPU, CheckStokeGPU}} {
		if p.from == "" {
			continue
		}
		found, err := tree(p.argument, p.to, p.from)
		if err != nil {
			return err
		}
		if len(found) != 1 || found[0].kind != tar.TypeReg {
			return mistake(p.argument, "", p.argument+" is no program", "%s is a folder.", p.from)
		}
		found[0].mode = 0o755
		if err := p.check(p.from, c.spec.Platform); err != nil {
			return err
		}
		c.trainer = append(c.trainer, found...)
	}
	return c.collectFilesOfGPUs()
}

func (c *Contents) collectFilesOfGPUs() (err error) {
	if c.spec.GPUTrainer == "" || c.spec.GPUFiles == "" {
		return nil
	}
	if c.gpu, err = tree("gpu_files", GPUFolder, c.spec.GPUFiles); err != nil {
		return err
	}
	if len(c.gpu) == 1 && c.gpu[0].name == strings.TrimPrefix(GPUFolder, "/") {
		return mistake("gpu_files", "", "Files for GPUs are not a folder", "%s is a file, or an empty folder.", c.spec.GPUFiles)
	}
	return nil
}

// MissingGPUFiles returns the files for GPUs that the base must have: the image's own
// files do not have them. It is empty for an image without GPUs.
func (c *Contents) MissingGPUFiles() (missing []string) {
	if c.spec.GPUTrainer == "" {
		return nil
	}
	all := c.all()
	for _, name := range gpuFiles() {
		if !slices.ContainsFunc(all, func(e entry) bool { return strings.HasPrefix(path.Base(e.name), name) }) {
			missing = append(missing, strings.TrimSuffix(name, "."))
		}
	}
	return missing
}

// checkBase reports a base that a trainer with the engine of GPUs cannot run on: it
// needs glibc, and XLA's plugin libstdc++. It reads the base's layers, the first one
// first, until it has found both.
func (c *Contents) checkBase(ctx context.Context, base v1.Image) error {
	if c.spec.GPUTrainer == "" {
		return nil
	}
	if base == nil {
		return NoBase()
	}
	loader := loaderOf(c.spec.Platform.Architecture)
	missing := map[string]string{loader: "glibc", standardLibrary: "libstdc++"}
	for _, e := range c.all() {
		delete(missing, path.Base(e.name))
	}
	layers, err := base.Layers()
	if err != nil {
		return fmt.Errorf("read the base: %w", err)
	}
	for _, l := range layers {
		if len(missing) == 0 {
			return nil
		}
		if err := findIn(ctx, l, missing); err != nil {
			return fmt.Errorf("read the base: %w", err)
		}
	}
	for _, name := range []string{loader, standardLibrary} {
		if of, absent := missing[name]; absent {
			return mistake("base", "", "The base has no "+of,
				"stoke-trainer-gpu and XLA's plugin need %s: the base has no file %s. %s", of, name, bases)
		}
	}
	return nil
}

// findIn removes the names of a layer's files from missing. It stops reading when none
// is left.
func findIn(ctx context.Context, l v1.Layer, missing map[string]string) error {
	from, err := l.Uncompressed()
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // it is only read
	r := tar.NewReader(interruptible{ctx, from})
	for len(missing) > 0 {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink {
			delete(missing, path.Base(h.Name))
		}
	}
	return nil
}

// gpuEnvironment has images with GPUs find the driver's libraries on Google's nodes,
// where neither the base nor the user sets the search path.
func (s *Spec) gpuEnvironment(base []string) []string {
	set := slices.ContainsFunc(base, func(v string) bool { return strings.HasPrefix(v, libraryPath+"=") })
	if _, ours := s.Environment[libraryPath]; s.GPUTrainer == "" || set || ours {
		return base
	}
	return append(slices.Clone(base), libraryPath+"="+driverFolder)
}

// isDynamic reports whether a program needs libraries.
func isDynamic(f *elf.File) bool {
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}
