package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/stokehq/stoke/providers/train/image"
)

// outcome is what a build gave, without the image.
type outcome struct {
	digest   string
	size     int64
	contents map[string]string
}

func (s *settings) registry() image.Registry { return image.Registry{Version: s.version} }

// outcome says what the contents give on the base whose digest the model has.
// They are read once per phase.
func (s *settings) outcome(ctx context.Context, c *image.Contents, m *imageModel, print string) (outcome, error) {
	s.mu.Lock()
	is, ok := s.built[print]
	s.mu.Unlock()
	if ok {
		return is, nil
	}
	b, err := s.build(ctx, c, m)
	if err != nil {
		return outcome{}, err
	}
	is = outcome{b.Digest, b.Size, b.Contents}
	s.mu.Lock()
	s.built[print] = is
	s.mu.Unlock()
	return is, nil
}

// build builds the image on the base whose digest the model has.
func (s *settings) build(ctx context.Context, c *image.Contents, m *imageModel) (*image.Image, error) {
	var base v1.Image
	if !m.Base.IsNull() {
		ref, err := image.ParseBase(m.Base.ValueString())
		if err != nil {
			return nil, err
		}
		platform, err := image.ParsePlatform(m.Platform.ValueString())
		if err != nil {
			return nil, err
		}
		at := ref.Context().Digest(m.BaseDigest.ValueString())
		if base, _, err = s.registry().Base(ctx, at, platform); err != nil {
			return nil, baseError{err}
		}
	}
	return c.Build(ctx, base)
}

// baseError is one of fetching the base.
type baseError struct{ error }

func (e baseError) Unwrap() error { return e.error }

// buildFailure is what people read about an image that cannot be built.
func buildFailure(m *imageModel, err error) diag.Diagnostic {
	var of baseError
	if errors.As(err, &of) {
		ref, parseErr := image.ParseBase(m.Base.ValueString())
		if parseErr == nil {
			return baseFailure(ref, err)
		}
	}
	return mistaken(path.Root("files"), "Image cannot be built", err)
}

// baseFailure is what people read about a base that cannot be used.
func baseFailure(ref name.Reference, err error) diag.Diagnostic {
	at := path.Root("base")
	switch {
	case errors.Is(err, image.ErrDenied):
		return diag.NewAttributeErrorDiagnostic(at, "Registry refuses access to the base", fmt.Sprintf(
			"%s. Some registries say so of an image that does not exist, too: check the name. If it is right, log in with `docker login %s`, or for Google's registries with `gcloud auth application-default login`.",
			capital(err), ref.Context().RegistryStr()))
	case errors.Is(err, image.ErrNotFound):
		return diag.NewAttributeErrorDiagnostic(at, "Base image does not exist", fmt.Sprintf("%s. Check the repository and the tag.", capital(err)))
	case errors.Is(err, image.ErrNoPlatform):
		return diag.NewAttributeErrorDiagnostic(at, "Base image has no such platform", fmt.Sprintf("%s. Choose another base, or set platform to the base's platform.", capital(err)))
	case errors.Is(err, image.ErrUnreachable):
		return diag.NewAttributeErrorDiagnostic(at, "Registry of the base cannot be reached", capital(err)+". Apply again when it can.")
	}
	return diag.NewAttributeErrorDiagnostic(at, "Base image cannot be used", capital(err)+".")
}

// pushFailure is what people read about an image that a registry does not take.
func pushFailure(m *imageModel, err error) diag.Diagnostic {
	at := path.Root("push")
	registry := m.Push.ValueString()
	if tag, parseErr := image.ParseTag(registry); parseErr == nil {
		registry = tag.RegistryStr()
	}
	var wrong *image.Mistake
	switch {
	case errors.As(err, &wrong): // a file that changed meanwhile
		return mistaken(at, "Image cannot be built", err)
	case errors.Is(err, image.ErrDenied):
		return diag.NewAttributeErrorDiagnostic(at, "Registry refuses the push", fmt.Sprintf(
			"%s. Log in with `docker login %s`, or for Google's registries with `gcloud auth application-default login`, as a user with the right to write there.", capital(err), registry))
	case errors.Is(err, image.ErrNotFound):
		return diag.NewAttributeErrorDiagnostic(at, "Registry has no such repository", fmt.Sprintf("%s. Make it first, or check the name.", capital(err)))
	case errors.Is(err, image.ErrUnreachable):
		return diag.NewAttributeErrorDiagnostic(at, "Registry cannot be reached", capital(err)+". Apply again when it can: what has been uploaded is not uploaded again.")
	}
	return diag.NewAttributeErrorDiagnostic(at, "Image cannot be pushed", capital(err)+".")
}

// archiveOf is the model's tarball.
func archiveOf(m *imageModel) (image.Archive, error) {
	full, err := localPath(m.Tarball.ValueString())
	return image.Archive(full), err
}

// stamp changes when a tarball does, as far as file systems tell.
func stamp(a image.Archive) string {
	info, err := os.Stat(string(a))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

func noFolder(a image.Archive) diag.Diagnostics {
	dir := filepath.Dir(string(a))
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root("tarball"), "There is no such folder", fmt.Sprintf("The tarball is written to %s, which is not there. Make the folder first.", dir))}
	}
	return nil
}

func inTheWay(a image.Archive) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("tarball"), "File exists already",
		fmt.Sprintf("%s was not written by this resource. Move it away, or choose another name.", a))
}
