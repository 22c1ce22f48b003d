package train

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/zclconf/go-cty/cty"
)

// pushBase makes an image with some files a base, and returns its name.
func (b *imageBench) pushBase(repository string, paths ...string) string {
	b.t.Helper()
	files := values{}
	for _, to := range paths {
		files[to] = cty.StringVal(filepath.Join(b.files, "train.py"))
	}
	to := b.reg.Host + "/lib/" + repository
	b.make(imageType, "op-"+repository, b.config(values{"files": cty.MapVal(files), "push": cty.StringVal(to)}))
	return to
}

// An image with GPUs has both trainers, on a base with glibc; the plan notes the files
// that only the base can have.
func TestImageWithGPUs(t *testing.T) {
	b := newImageBench(t)
	str, at := cty.StringVal, cty.GetAttrPath
	debian := b.pushBase("debian:13", "/usr/lib64/ld-linux-x86-64.so.2", "/usr/lib/ld-linux-aarch64.so.1", "/usr/lib/libstdc++.so.6")
	alpine := b.pushBase("alpine:3", "/lib/ld-musl.so.1", "/usr/lib/libstdc++.so.6")
	gpus := func(change values) cty.Value {
		all := values{"gpu": cty.True, "base": str(debian)}
		for k, v := range change {
			all[k] = v
		}
		return b.config(all)
	}
	d := oneError(t, b.plan(b.new(imageType), gpus(nil)).Diagnostics, "stoke-trainer-gpu was not found")
	if !d.Path.Equals(at("gpu_trainer")) {
		t.Errorf("error is at %#v", d.Path)
	}
	text, err := os.ReadFile(b.trainer)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(b.trainer), gpuTrainerName), text, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		config  cty.Value
		summary string
		at      cty.Path
	}{
		{"no base", gpus(values{"base": cty.NullVal(cty.String)}), "A GPU image needs a base", at("base")},
		{"musl", gpus(values{"base": str(alpine)}), "The base has no glibc", at("base")},
		{"files without gpu", b.config(values{"gpu_files": str(b.files)}), "Argument gpu_files has no use", at("gpu_files")},
		{"trainer without gpu", b.config(values{"gpu_trainer": str(b.trainer)}), "Argument gpu_trainer has no use", at("gpu_trainer")},
		{"missing files", gpus(values{"gpu_files": str(filepath.Join(b.files, "none"))}), "There is no such file", at("gpu_files")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if d := oneError(t, b.plan(b.new(imageType), test.config).Diagnostics, test.summary); !d.Path.Equals(test.at) {
				t.Errorf("error is at %#v, want %#v", d.Path, test.at)
			}
		})
	}
	beside := filepath.Join(filepath.Dir(b.trainer), stokeGPUName)
	if err := os.WriteFile(beside, []byte("#!/bin/sh"), 0o700); err != nil { // for no platform of images: it is left out
		t.Fatal(err)
	}
	if d := oneError(t, b.plan(b.new(imageType), b.config(values{"stoke_gpu": str(beside)})).Diagnostics, "stoke-gpu does not fit the image"); !d.Path.Equals(at("stoke_gpu")) {
		t.Errorf("error is at %#v", d.Path)
	}
	cuda := t.TempDir()
	for _, name := range []string{"xla_cuda_plugin.so", "libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9"} {
		if err := os.WriteFile(filepath.Join(cuda, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := gpus(values{"gpu_files": str(cuda)})
	th := b.make(imageType, "op-gpu", config)
	if !b.saysNote("GPUs also need ptxas, libdevice.10.bc") {
		t.Errorf("notes are %+v", b.notes)
	}
	b.unchanged(th, config)
	contents := th.state.GetAttr("contents").AsValueMap()
	for _, name := range []string{"/usr/local/bin/stoke-trainer", "/usr/local/bin/stoke-trainer-gpu", "/opt/stoke/gpu/libcudnn.so.9"} {
		if _, has := contents[name]; !has {
			t.Errorf("contents have no %s", name)
		}
	}
	if _, has := contents["/usr/local/bin/stoke-gpu"]; has {
		t.Error("a stoke-gpu that does not fit is in the image")
	}
	if err := os.WriteFile(beside, text, 0o700); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]cty.Value{"next to the trainer": config, "named": b.config(values{"stoke_gpu": str(beside)})} {
		contents := b.make(imageType, "op-"+what, c).state.GetAttr("contents").AsValueMap()
		if _, has := contents["/usr/local/bin/stoke-gpu"]; !has {
			t.Errorf("%s: contents have no stoke-gpu", what)
		}
	}
	ref, err := name.ParseReference(th.state.GetAttr("reference").AsString())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Head(ref); err != nil {
		t.Error(err)
	}
}
