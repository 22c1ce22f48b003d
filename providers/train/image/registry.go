package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/google"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Errors that a registry's answer means, for errors.Is.
var (
	ErrDenied      = errors.New("the registry refuses access")
	ErrNotFound    = errors.New("the registry has no such image")
	ErrUnreachable = errors.New("the registry cannot be reached")
	ErrNoPlatform  = errors.New("not for this platform")
)

// Registry speaks to registries of images, with the credentials of whoever runs
// it: Docker's configuration and its helpers, or Google's. They are asked for
// when they are needed and kept nowhere.
type Registry struct {
	Version string // of stoke, for the registry's logs
}

func (r Registry) options(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.NewMultiKeychain(authn.DefaultKeychain, google.Keychain)),
		remote.WithUserAgent("stoke/" + r.Version),
		remote.WithRetryBackoff(remote.Backoff{Duration: 300 * time.Millisecond, Factor: 3, Jitter: 0.1, Steps: 3}),
	}
}

// ParseBase reads a reference of a base image by tag or by digest.
func ParseBase(text string) (name.Reference, error) {
	ref, err := name.ParseReference(text)
	if err != nil {
		return nil, mistake("base", "", "Name of the image is malformed", "Write it as REGISTRY/REPOSITORY:TAG or …@sha256:…: %s.", err)
	}
	return ref, nil
}

// ParseTag reads where an image is pushed to. All of it is written out: what is
// left out would mean Docker Hub and the tag latest.
func ParseTag(text string) (name.Tag, error) {
	tag, err := name.NewTag(text, name.StrictValidation)
	if err != nil {
		return name.Tag{}, mistake("push", "", "Name of the image is malformed", "Write it as REGISTRY/REPOSITORY:TAG, such as registry.example.com/team/trainer:1: %s.", err)
	}
	return tag, nil
}

// Digest asks what a tag points to, without fetching it.
func (r Registry) Digest(ctx context.Context, ref name.Reference) (string, error) {
	d, err := remote.Head(ref, r.options(ctx)...)
	if err != nil {
		return "", explain(ctx, ref, err)
	}
	return d.Digest.String(), nil
}

// Base fetches the manifest and the configuration of an image for a platform;
// layers are fetched when they are read. The digest is that of what ref points
// to, which may be an index of several platforms.
func (r Registry) Base(ctx context.Context, ref name.Reference, platform v1.Platform) (img v1.Image, digest string, err error) {
	d, err := remote.Get(ref, r.options(ctx)...)
	if err != nil {
		return nil, "", explain(ctx, ref, err)
	}
	if d.MediaType.IsIndex() {
		img, err = child(d, ref, platform)
	} else {
		img, err = d.Image()
	}
	if err != nil {
		return nil, "", explain(ctx, ref, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, "", explain(ctx, ref, err)
	}
	if config.OS != platform.OS || config.Architecture != platform.Architecture {
		return nil, "", fmt.Errorf("%w: %s is for %s/%s", ErrNoPlatform, ref, config.OS, config.Architecture)
	}
	return img, d.Digest.String(), nil
}

// child finds the image for a platform in an index.
func child(d *remote.Descriptor, ref name.Reference, platform v1.Platform) (v1.Image, error) {
	index, err := d.ImageIndex()
	if err != nil {
		return nil, err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var there []string
	for _, one := range m.Manifests {
		if one.Platform == nil || one.Platform.OS == "unknown" { // attestations
			continue
		}
		if one.Platform.OS == platform.OS && one.Platform.Architecture == platform.Architecture {
			return index.Image(one.Digest)
		}
		there = append(there, one.Platform.String())
	}
	return nil, fmt.Errorf("%w: %s is for %s", ErrNoPlatform, ref, strings.Join(there, ", "))
}

// Push makes tag point to the image, uploading what the registry does not have.
// progress, which may be nil, hears of bytes done and to do.
func (r Registry) Push(ctx context.Context, tag name.Tag, img v1.Image, progress func(done, total int64)) error {
	updates := make(chan v1.Update, 16)
	done, heard := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(heard)
		for {
			select {
			case u, open := <-updates:
				if !open {
					return
				}
				if progress != nil && u.Error == nil {
					progress(u.Complete, u.Total)
				}
			case <-done:
				return
			}
		}
	}()
	err := remote.Write(tag, img, append(r.options(ctx), remote.WithProgress(updates))...)
	close(done) // updates are closed too, but not after every error
	<-heard
	if err != nil {
		return explain(ctx, tag, err)
	}
	return nil
}

// Delete removes the manifest of a digest, and with it all tags of it. A
// missing manifest is not an error.
func (r Registry) Delete(ctx context.Context, ref name.Digest) error {
	err := remote.Delete(ref, r.options(ctx)...)
	if err = explain(ctx, ref, err); errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// explain says what kind of an error it is.
func explain(ctx context.Context, ref name.Reference, err error) error {
	var answer *transport.Error
	var wrong *Mistake
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err()
	case errors.Is(err, ErrNoPlatform), errors.As(err, &wrong):
		return err
	case !errors.As(err, &answer):
		var network *url.Error
		if errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%w: %s: %w", ErrUnreachable, ref.Context().RegistryStr(), err)
		}
		return fmt.Errorf("%s: %w", ref, err)
	}
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("%w: %s: %w", ErrDenied, ref, answer)
	case code == http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrNotFound, ref)
	case code >= http.StatusInternalServerError || code == http.StatusTooManyRequests:
		return fmt.Errorf("%w: %w", ErrUnreachable, answer)
	}
	return fmt.Errorf("registry: %w", answer)
}
