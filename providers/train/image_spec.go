package train

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/train/image"
	"github.com/stokehq/stoke/runtime/pattern"
)

// mistaken is what people read about an error of an image: at the argument that
// it is about, where it is about one.
func mistaken(at path.Path, summary string, err error) diag.Diagnostic {
	var m *image.Mistake
	if !errors.As(err, &m) {
		return diag.NewAttributeErrorDiagnostic(at, summary, strings.TrimRight(err.Error(), ".")+".")
	}
	at = path.Root(m.Argument)
	if m.Key != "" && slices.Contains([]string{"files", "environment", "labels"}, m.Argument) {
		at = at.AtMapKey(m.Key)
	}
	return diag.NewAttributeErrorDiagnostic(at, m.Summary, m.Detail)
}

// inputs are the arguments that the image depends on.
func (m *imageModel) inputs() []attr.Value {
	return []attr.Value{m.Base, m.Platform, m.Trainer, m.GPU, m.GPUTrainer, m.GPUFiles, m.StokeGPU, m.Files, m.Wheels,
		m.Python, m.SitePackages, m.Environment, m.WorkingDir, m.Entrypoint, m.Command, m.User, m.Labels}
}

// isKnown tells whether all inputs are, down to the elements of maps and lists.
func (m *imageModel) isKnown() bool {
	for _, v := range m.inputs() {
		if v.IsUnknown() {
			return false
		}
		var elements []attr.Value
		switch v := v.(type) {
		case types.List:
			elements = v.Elements()
		case types.Map:
			for _, e := range v.Elements() {
				elements = append(elements, e)
			}
		}
		for _, e := range elements {
			if e.IsUnknown() {
				return false
			}
		}
	}
	return true
}

// spec turns the arguments, all known, into what the image consists of, but for
// the trainer where none is named.
func (m *imageModel) spec() (s image.Spec, err error) {
	platform := m.Platform.ValueString()
	if m.Platform.IsNull() {
		platform = image.DefaultPlatform
	}
	if s.Platform, err = image.ParsePlatform(platform); err != nil {
		return s, err
	}
	s.Python, s.SitePackages = m.Python.ValueString(), m.SitePackages.ValueString()
	s.WorkingDir, s.User = m.WorkingDir.ValueString(), m.User.ValueString()
	s.Files, s.Environment, s.Labels = textsOf(m.Files), textsOf(m.Environment), textsOf(m.Labels)
	s.Entrypoint, s.Command = wordsOf(m.Entrypoint), wordsOf(m.Command)
	if s.Wheels, err = localPath(m.Wheels.ValueString()); err != nil {
		return s, &image.Mistake{Argument: "wheels", Summary: "Path cannot be resolved", Detail: err.Error() + "."}
	}
	if s.Trainer, err = localPath(m.Trainer.ValueString()); err != nil {
		return s, &image.Mistake{Argument: "trainer", Summary: "Path cannot be resolved", Detail: err.Error() + "."}
	}
	if s.GPUFiles, err = localPath(m.GPUFiles.ValueString()); err != nil {
		return s, &image.Mistake{Argument: "gpu_files", Summary: "Path cannot be resolved", Detail: err.Error() + "."}
	}
	if s.GPUTrainer, err = localPath(m.GPUTrainer.ValueString()); err != nil {
		return s, &image.Mistake{Argument: "gpu_trainer", Summary: "Path cannot be resolved", Detail: err.Error() + "."}
	}
	if s.StokeGPU, err = localPath(m.StokeGPU.ValueString()); err != nil {
		return s, &image.Mistake{Argument: "stoke_gpu", Summary: "Path cannot be resolved", Detail: err.Error() + "."}
	}
	if err := m.checkGPU(); err != nil {
		return s, err
	}
	for to, from := range s.Files {
		if s.Files[to], err = localPath(from); err != nil {
			return s, &image.Mistake{Argument: "files", Key: to, Summary: "Path cannot be resolved", Detail: err.Error() + "."}
		}
	}
	return s, s.Check()
}

// checkGPU reports arguments of GPUs in an image without GPUs, and a GPU image without
// a base.
func (m *imageModel) checkGPU() error {
	for name, given := range map[string]types.String{"gpu_trainer": m.GPUTrainer, "gpu_files": m.GPUFiles} {
		if !m.GPU.ValueBool() && !given.IsNull() {
			return &image.Mistake{Argument: name, Summary: "Argument " + name + " has no use",
				Detail: "It is for workers with GPUs. Remove it, or set gpu = true."}
		}
	}
	if m.GPU.ValueBool() && m.Base.IsNull() {
		return image.NoBase()
	}
	return nil
}

// localPath makes a path absolute; "" stays.
func localPath(given string) (string, error) {
	if given == "" {
		return "", nil
	}
	full, err := expandHome(given)
	if err != nil {
		return "", err
	}
	return filepath.Abs(full)
}

func textsOf(m types.Map) map[string]string {
	if m.IsNull() {
		return nil
	}
	all := make(map[string]string, len(m.Elements()))
	for name, v := range m.Elements() {
		s, _ := v.(types.String)
		all[name] = s.ValueString()
	}
	return all
}

func wordsOf(l types.List) []string {
	if l.IsNull() {
		return nil
	}
	all := make([]string, 0, len(l.Elements()))
	for _, v := range l.Elements() {
		s, _ := v.(types.String)
		all = append(all, s.ValueString())
	}
	return all
}

// equip finds the trainers that become part of the image, and their version.
func (s *settings) equip(ctx context.Context, m *imageModel, spec *image.Spec) diag.Diagnostic {
	if spec.Trainer == "" {
		t, missing := s.trainer()
		if missing != nil {
			return missing
		}
		spec.Trainer = string(t)
	}
	if _, err := findTrainer(spec.Trainer); err != nil {
		return diag.NewAttributeErrorDiagnostic(path.Root("trainer"), "The trainer cannot be used", fmt.Sprintf("Give the path of stoke-trainer: %s.", err))
	}
	if err := image.CheckTrainer(spec.Trainer, spec.Platform); err != nil {
		return mistaken(path.Root("trainer"), "The trainer cannot be used", err)
	}
	version, err := s.trainerVersion(ctx, trainer(spec.Trainer), spec.Platform.OS, spec.Platform.Architecture)
	if err != nil {
		return otherVersion("trainer", spec.Trainer, err)
	}
	spec.TrainerVersion = version
	if spec.StokeGPU != "" {
		if err := image.CheckStokeGPU(spec.StokeGPU, spec.Platform); err != nil {
			return mistaken(path.Root("stoke_gpu"), "stoke-gpu cannot be used", err)
		}
	}
	if m.GPU.ValueBool() {
		return s.equipGPU(ctx, spec)
	}
	return nil
}

// equipGPU finds the trainer with the engine of GPUs that becomes part of the image.
func (s *settings) equipGPU(ctx context.Context, spec *image.Spec) diag.Diagnostic {
	t, err := findProgram(gpuTrainerName, cmp.Or(spec.GPUTrainer, s.givenGPU), filepath.Dir(spec.Trainer))
	if err != nil {
		return diag.NewAttributeErrorDiagnostic(path.Root("gpu_trainer"), gpuTrainerName+" was not found",
			fmt.Sprintf("Build it with `make trainer-gpu` next to %s, or name it with gpu_trainer = \"…\": %s.", spec.Trainer, err))
	}
	spec.GPUTrainer = string(t)
	if err := image.CheckGPUTrainer(spec.GPUTrainer, spec.Platform); err != nil {
		return mistaken(path.Root("gpu_trainer"), "The trainer cannot be used", err)
	}
	if _, err := s.trainerVersion(ctx, t, spec.Platform.OS, spec.Platform.Architecture); err != nil {
		return otherVersion("gpu_trainer", spec.GPUTrainer, err)
	}
	beside := filepath.Join(filepath.Dir(spec.GPUTrainer), stokeGPUName)
	if spec.StokeGPU == "" && image.CheckStokeGPU(beside, spec.Platform) == nil {
		spec.StokeGPU = beside
	}
	return nil
}

func otherVersion(argument, name string, err error) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root(argument), "The trainer is of another version",
		fmt.Sprintf("%s: %s. Build both from the same sources.", name, err))
}

// undated is the version of a trainer that was built without one.
const undated = "dev"

// trainerVersion asks the binary, or, where it is for another machine, compares
// what it was built from with what we were.
func (s *settings) trainerVersion(ctx context.Context, t trainer, system, processor string) (string, error) {
	if system == runtime.GOOS && processor == runtime.GOARCH {
		out, err := t.run(ctx, nil, "version")
		if err != nil {
			return "", fmt.Errorf("it does not say its version: %w", err)
		}
		version := printable(string(out))
		if version != s.version && version != undated {
			return "", fmt.Errorf("it is of version %.60q, and stoke of %q", version, s.version)
		}
		return version, nil
	}
	theirs, err := buildinfo.ReadFile(string(t))
	if err != nil {
		return "", fmt.Errorf("it does not say what it was built from: %w", err)
	}
	if !strings.HasSuffix(theirs.Path, "/cmd/"+trainerName) {
		return "", fmt.Errorf("it is %s", theirs.Path)
	}
	if ours, ok := debug.ReadBuildInfo(); ok {
		a, b := revision(ours), revision(theirs)
		if a != "" && b != "" && a != b {
			return "", fmt.Errorf("it was built from revision %.12s, and stoke from %.12s", b, a)
		}
	}
	return s.version, nil
}

func revision(b *debug.BuildInfo) string {
	for _, setting := range b.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}

var unnamed = pattern.New(`[^a-z0-9]+`)

// reference is how pods name the image of a digest.
func (m *imageModel) reference(digest string) (types.String, error) {
	if m.Push.IsUnknown() || m.Tarball.IsUnknown() {
		return types.StringUnknown(), nil
	}
	if m.Push.IsNull() {
		return types.StringValue(m.loadedAs(digest)), nil
	}
	tag, err := image.ParseTag(m.Push.ValueString())
	if err != nil {
		return types.StringNull(), err
	}
	return types.StringValue(tag.Context().Digest(digest).String()), nil
}

// loadedAs is the name that a tarball gives the image.
func (m *imageModel) loadedAs(digest string) string {
	if !m.Push.IsNull() {
		if tag, err := image.ParseTag(m.Push.ValueString()); err == nil {
			return tag.String()
		}
	}
	file := strings.ToLower(filepath.Base(m.Tarball.ValueString()))
	stem := strings.Trim(unnamed.ReplaceAllString(strings.TrimSuffix(file, filepath.Ext(file)), "-"), "-")
	if stem == "" {
		stem = "image"
	}
	// By the digest: a node that has the image of before does not take it for this one.
	return "localhost/" + stem + ":" + strings.TrimPrefix(digest, "sha256:")[:12]
}

// digestRef names the pushed image by its digest.
func (m *imageModel) digestRef() (name.Digest, name.Tag, error) {
	tag, err := image.ParseTag(m.Push.ValueString())
	if err != nil {
		return name.Digest{}, name.Tag{}, err
	}
	return tag.Context().Digest(m.Digest.ValueString()), tag, nil
}
