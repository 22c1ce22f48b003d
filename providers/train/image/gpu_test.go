package image

import (
	"debug/elf"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	glibcFile    = "/usr/lib64/ld-linux-x86-64.so.2"
	standardFile = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
)

// baseWith is a base that has some files.
func baseWith(t *testing.T, paths ...string) v1.Image {
	t.Helper()
	spec := basic(t)
	spec.Files = map[string]string{}
	file := filepath.Join(put(t, t.TempDir(), map[string]string{"file": "x"}), "file")
	for _, to := range paths {
		spec.Files[to] = file
	}
	return build(t, spec, nil).Image
}

// withGPUs is a specification of an image with GPUs, and all files that they need.
func withGPUs(t *testing.T) Spec {
	t.Helper()
	spec := basic(t)
	spec.GPUTrainer = program(t, elf.EM_X86_64, "trainer with GPUs")
	spec.GPUFiles = put(t, t.TempDir(), map[string]string{
		"xla_cuda_plugin.so": "plugin", "lib/libcudart.so.13": "cudart", "lib/libcublas.so.13": "cublas", "lib/libcublasLt.so.13": "cublasLt",
		"lib/libcudnn.so.9": "cudnn", "bin/ptxas!": "ptxas", "nvvm/libdevice/libdevice.10.bc": "libdevice",
	})
	return spec
}

func TestImageWithGPUs(t *testing.T) {
	spec := withGPUs(t)
	b := build(t, spec, baseWith(t, glibcFile, standardFile))
	got := unpack(t, b.Image)
	for name, mode := range map[string]int64{
		"usr/local/bin/stoke-trainer": 0o755, "usr/local/bin/stoke-trainer-gpu": 0o755, "opt/stoke/gpu/bin/ptxas": 0o755,
		"opt/stoke/gpu/xla_cuda_plugin.so": 0o644, "opt/stoke/gpu/nvvm/libdevice/libdevice.10.bc": 0o644,
	} {
		if got[name].mode != mode {
			t.Errorf("%s: mode %o, want %o", name, got[name].mode, mode)
		}
	}
	if !strings.HasSuffix(got["usr/local/bin/stoke-trainer-gpu"].content, "trainer with GPUs") {
		t.Error("the trainer with GPUs is another program")
	}
	if !strings.HasPrefix(b.Contents["/opt/stoke/gpu/bin/ptxas"], "sha256:") {
		t.Errorf("contents %v", b.Contents)
	}
	config, err := b.Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(config.Config.Env, "LD_LIBRARY_PATH=/usr/local/nvidia/lib64") {
		t.Errorf("environment %v", config.Config.Env)
	}
	if !slices.Equal(config.Config.Entrypoint, []string{TrainerPath}) { // of coordinators and servers
		t.Errorf("entry point %v", config.Config.Entrypoint)
	}
	spec.Environment = map[string]string{"LD_LIBRARY_PATH": "/mine"}
	if config, err = build(t, spec, baseWith(t, glibcFile, standardFile)).Image.ConfigFile(); err != nil ||
		!slices.Contains(config.Config.Env, "LD_LIBRARY_PATH=/mine") || slices.Contains(config.Config.Env, "LD_LIBRARY_PATH=/usr/local/nvidia/lib64") {
		t.Errorf("environment %v, %v", config.Config.Env, err)
	}
	plain := build(t, basic(t), nil)
	if config, err = plain.Image.ConfigFile(); err != nil || slices.ContainsFunc(config.Config.Env, func(v string) bool { return strings.HasPrefix(v, "LD_") }) {
		t.Errorf("an image without GPUs has the environment %v, %v", config.Config.Env, err)
	}
}

// stoke-gpu is in the folder of the trainers, also in an image whose trainer has no engine
// of GPUs: pods of programs get it from there.
func TestImageWithStokeGPU(t *testing.T) {
	spec := withGPUs(t)
	spec.StokeGPU = program(t, elf.EM_X86_64, "stoke-gpu")
	alone := basic(t)
	alone.StokeGPU = spec.StokeGPU
	for name, b := range map[string]*Image{"with both trainers": build(t, spec, baseWith(t, glibcFile, standardFile)), "with the trainer": build(t, alone, nil)} {
		if got := unpack(t, b.Image)["usr/local/bin/stoke-gpu"]; got.mode != 0o755 || !strings.HasSuffix(got.content, "stoke-gpu") {
			t.Errorf("%s: mode %o, content %.20q", name, got.mode, got.content)
		}
		if !strings.HasPrefix(b.Contents[StokeGPUPath], "sha256:") || path.Dir(StokeGPUPath) != path.Dir(TrainerPath) || path.Dir(StokeGPUPath) != path.Dir(GPUTrainerPath) {
			t.Errorf("%s: contents %v", name, b.Contents)
		}
	}
	alone.StokeGPU = program(t, elf.EM_AARCH64, "")
	refused(t, alone, "stoke_gpu", "stoke-gpu does not fit the image", "make gpu")
	alone.StokeGPU = put(t, t.TempDir(), map[string]string{"file": "x"})
	refused(t, alone, "stoke_gpu", "The program cannot be read", "is a directory")
}

func TestMissingGPUFiles(t *testing.T) {
	spec := withGPUs(t)
	missing := func() []string {
		t.Helper()
		c, err := Collect(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.MissingGPUFiles()
	}
	if got := missing(); len(got) > 0 {
		t.Errorf("missing %v", got)
	}
	spec.GPUFiles = put(t, t.TempDir(), map[string]string{"xla_cuda_plugin.so": "plugin", "libcublas.so.13": "cublas"})
	if diff := cmp.Diff([]string{"libcudart.so", "libcublasLt.so", "libcudnn.so", "ptxas", "libdevice.10.bc"}, missing()); diff != "" {
		t.Error(diff)
	}
	spec.GPUFiles, spec.GPUTrainer = "", ""
	if got := missing(); len(got) > 0 {
		t.Errorf("an image without GPUs misses %v", got)
	}
}

func TestGPUImageThatCannotRun(t *testing.T) {
	spec := withGPUs(t)
	refused(t, spec, "base", "A GPU image needs a base", "glibc")
	for name, test := range map[string]struct {
		base    v1.Image
		summary string
	}{
		"Alpine":     {baseWith(t, "/lib/ld-musl-x86_64.so.1", standardFile), "The base has no glibc"},
		"distroless": {baseWith(t, glibcFile), "The base has no libstdc++"},
	} {
		c, err := Collect(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Build(t.Context(), test.base)
		if m := new(Mistake); !errors.As(err, &m) || m.Argument != "base" || m.Summary != test.summary || !strings.Contains(m.Detail, "debian") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What the base lacks may be a file of the image.
	spec.Files = map[string]string{standardFile: filepath.Join(spec.GPUFiles, "xla_cuda_plugin.so")}
	build(t, spec, baseWith(t, glibcFile))

	for name, change := range map[string]func(*Spec){
		"another processor": func(s *Spec) { s.GPUTrainer = program(t, elf.EM_AARCH64, "") },
		"a script": func(s *Spec) {
			s.GPUTrainer = filepath.Join(put(t, t.TempDir(), map[string]string{"run!": "#!/bin/sh"}), "run")
		},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := withGPUs(t)
			change(&wrong)
			refused(t, wrong, "gpu_trainer", "The trainer does not fit the image", "-tags gpu ./cmd/stoke-trainer")
		})
	}
	file := withGPUs(t)
	file.GPUFiles = filepath.Join(file.GPUFiles, "xla_cuda_plugin.so")
	refused(t, file, "gpu_files", "Files for GPUs are not a folder", "xla_cuda_plugin.so")
}
