package image

import (
	"archive/tar"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is an image with its description for the plan and the state.
type Image struct {
	Image    v1.Image
	Digest   string            // of the manifest: sha256:…
	Size     int64             // bytes of the manifest, the configuration and all layers
	Contents map[string]string // see Contents.Sums
}

// Build puts the image together on a base, which is nil for none. All files are
// read, and none is kept: layers are written anew whenever they are read.
func (c *Contents) Build(ctx context.Context, base v1.Image) (*Image, error) {
	if err := c.checkBase(ctx, base); err != nil {
		return nil, err
	}
	sums, err := c.Sums(ctx)
	if err != nil {
		return nil, err
	}
	img, kind, err := foundation(base)
	if err != nil {
		return nil, err
	}
	img, err = c.layers(ctx, img, kind, base == nil)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the base's configuration: %w", err)
	}
	config = config.DeepCopy()
	c.spec.configure(config)
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, fmt.Errorf("configure image: %w", err)
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, fmt.Errorf("digest of the image: %w", err)
	}
	size, err := weight(img)
	if err != nil {
		return nil, err
	}
	return &Image{Image: img, Digest: digest.String(), Size: size, Contents: sums}, nil
}

// foundation is what layers are added to, and the type that they have there.
func foundation(base v1.Image) (v1.Image, types.MediaType, error) {
	if base == nil {
		img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
		return mutate.ConfigMediaType(img, types.OCIConfigJSON), types.OCILayer, nil
	}
	kind, err := base.MediaType()
	if err != nil {
		return nil, "", fmt.Errorf("read the base: %w", err)
	}
	if kind == types.DockerManifestSchema2 {
		return base, types.DockerLayer, nil
	}
	return base, types.OCILayer, nil
}

// layers adds what changes least first, so that a change of the user's program
// leaves the others as they are in every cache.
func (c *Contents) layers(ctx context.Context, img v1.Image, kind types.MediaType, bare bool) (v1.Image, error) {
	var wheels []entry
	for _, w := range c.wheels {
		wheels = append(wheels, w.entries...)
	}
	trainer := c.trainer
	if bare { // programs expect a place for temporary files
		trainer = append(slices.Clone(trainer), entry{name: "tmp", kind: tar.TypeDir, mode: 0o1777})
	}
	for _, add := range []struct {
		what    string
		entries []entry
	}{{"python wheels", wheels}, {"files for GPUs", c.gpu}, {"stoke-trainer", trainer}, {"files", c.files}} {
		if len(add.entries) == 0 {
			continue
		}
		l, err := newLayer(ctx, add.entries, kind)
		if err != nil {
			return nil, err
		}
		img, err = mutate.Append(img, mutate.Addendum{Layer: l, MediaType: kind,
			History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "stoke: " + add.what}})
		if err != nil {
			return nil, fmt.Errorf("add layer of %s: %w", add.what, err)
		}
	}
	return img, nil
}

// configure says how the image is run.
func (s *Spec) configure(to *v1.ConfigFile) {
	to.Created = v1.Time{Time: epoch}
	to.OS, to.Architecture = s.Platform.OS, s.Platform.Architecture // a base's variant stays
	c := &to.Config
	c.ExposedPorts = nil // of the base's program, which is not started
	c.Env = s.environment(s.gpuEnvironment(c.Env))
	c.Entrypoint, c.Cmd = s.Entrypoint, s.Command
	if s.Entrypoint == nil {
		c.Entrypoint = []string{TrainerPath}
	}
	if s.WorkingDir != "" {
		c.WorkingDir = s.WorkingDir
	}
	if c.User = s.User; c.User == "" {
		c.User = DefaultUser
	}
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = make(map[string]string)
	}
	maps.Copy(labels, s.Labels)
	labels[LabelVersion] = s.TrainerVersion
	c.Labels = labels
}

// environment is the base's, in its order, with ours.
func (s *Spec) environment(base []string) []string {
	var all []string
	path := false
	for _, v := range base {
		name, _, _ := strings.Cut(v, "=")
		if _, ours := s.Environment[name]; !ours {
			all = append(all, v)
			path = path || name == "PATH"
		}
	}
	if _, ours := s.Environment["PATH"]; !ours && !path {
		all = append(all, "PATH="+searchPath)
	}
	for _, name := range sortedKeys(s.Environment) {
		all = append(all, name+"="+s.Environment[name])
	}
	return all
}

// weight is what a registry stores of the image.
func weight(img v1.Image) (int64, error) {
	m, err := img.Manifest()
	if err != nil {
		return 0, fmt.Errorf("read manifest: %w", err)
	}
	own, err := img.Size()
	if err != nil {
		return 0, fmt.Errorf("read manifest: %w", err)
	}
	total := own + m.Config.Size
	for _, l := range m.Layers {
		total += l.Size
	}
	return total, nil
}
