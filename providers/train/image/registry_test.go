package image

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/stokehq/stoke/providers/train/image/imagetest"
)

func parsed(t *testing.T, text string) name.Tag {
	t.Helper()
	tag, err := ParseTag(text)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

func TestPushNeedsCredentialsAndIsIdempotent(t *testing.T) {
	reg := imagetest.New(t)
	reg.Demand("ada", "secret")
	tag := parsed(t, reg.Host+"/team/trainer:1")
	b := build(t, basic(t), nil)
	imagetest.LogIn(t, "elsewhere.example", "ada", "secret")
	if err := (Registry{}).Push(t.Context(), tag, b.Image, nil); !errors.Is(err, ErrDenied) {
		t.Fatalf("pushing as nobody: %v", err)
	}
	imagetest.LogIn(t, reg.Host, "ada", "wrong")
	if _, err := (Registry{}).Digest(t.Context(), tag); !errors.Is(err, ErrDenied) {
		t.Fatalf("asking with a wrong password: %v", err)
	}
	imagetest.LogIn(t, reg.Host, "ada", "secret")
	r := Registry{Version: "test"}
	if _, err := r.Digest(t.Context(), tag); !errors.Is(err, ErrNotFound) {
		t.Fatalf("before the push: %v", err)
	}
	reg.ReadOnly(true)
	if err := r.Push(t.Context(), tag, b.Image, nil); !errors.Is(err, ErrDenied) {
		t.Fatalf("pushing without the right to: %v", err)
	}
	reg.ReadOnly(false)
	var done, total int64
	if err := r.Push(t.Context(), tag, b.Image, func(d, n int64) { done, total = d, n }); err != nil {
		t.Fatal(err)
	}
	if done == 0 || done > total {
		t.Errorf("progress ended at %d of %d", done, total)
	}
	if d, err := r.Digest(t.Context(), tag); err != nil || d != b.Digest {
		t.Errorf("the tag points to %s, %v; want %s", d, err, b.Digest)
	}
	uploads := reg.Count(http.MethodPost, "/blobs/uploads")
	if err := r.Push(t.Context(), tag, b.Image, nil); err != nil {
		t.Fatal(err)
	}
	if n := reg.Count(http.MethodPost, "/blobs/uploads"); n != uploads {
		t.Errorf("a second push uploads %d blobs again", n-uploads)
	}
	pulled, err := remote.Image(tag, r.options(t.Context())...)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(pulled); err != nil {
		t.Error(err)
	}
	of := tag.Context().Digest(b.Digest)
	for range 2 { // the second finds nothing
		if err := r.Delete(t.Context(), of); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Digest(t.Context(), of); !errors.Is(err, ErrNotFound) {
		t.Errorf("after the delete: %v", err)
	}
}

func TestBaseIsFoundByPlatform(t *testing.T) {
	reg := imagetest.New(t)
	r := Registry{}
	tag := parsed(t, reg.Host+"/lib/python:3")
	var index v1.ImageIndex = empty.Index
	one := map[string]v1.Image{}
	for _, arch := range []string{"amd64", "arm64"} {
		config := &v1.ConfigFile{OS: "linux", Architecture: arch, RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{User: arch}}
		img, err := mutate.ConfigFile(empty.Image, config)
		if err != nil {
			t.Fatal(err)
		}
		one[arch] = img
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		img, digest, err := r.Base(t.Context(), tag, v1.Platform{OS: "linux", Architecture: arch})
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil || config.Config.User != arch {
			t.Errorf("for %s there is %+v, %v", arch, config, err)
		}
		if head, err := r.Digest(t.Context(), tag); err != nil || head != digest {
			t.Errorf("digests are %s and %s, %v", head, digest, err)
		}
	}
	_, _, err := r.Base(t.Context(), tag, v1.Platform{OS: "linux", Architecture: "riscv64"})
	if !errors.Is(err, ErrNoPlatform) || !strings.Contains(err.Error(), "linux/amd64, linux/arm64") {
		t.Errorf("a platform that is missing: %v", err)
	}
	single := parsed(t, reg.Host+"/lib/python:amd64")
	if err := remote.Write(single, one["amd64"]); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Base(t.Context(), single, v1.Platform{OS: "linux", Architecture: "arm64"}); !errors.Is(err, ErrNoPlatform) {
		t.Errorf("an image for another platform: %v", err)
	}
	if _, _, err := r.Base(t.Context(), parsed(t, reg.Host+"/lib/none:1"), v1.Platform{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown base: %v", err)
	}
}

func TestRegistryThatIsAway(t *testing.T) {
	reg := imagetest.New(t)
	reg.Break(true)
	tag := parsed(t, reg.Host+"/team/trainer:1")
	if _, err := (Registry{}).Digest(t.Context(), tag); !errors.Is(err, ErrUnreachable) {
		t.Errorf("behind a broken gateway: %v", err)
	}
	if _, err := (Registry{}).Digest(t.Context(), parsed(t, "127.0.0.1:1/a:b")); !errors.Is(err, ErrUnreachable) {
		t.Errorf("where nobody listens: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Registry{}).Digest(ctx, tag); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: %v", err)
	}
}

func TestNamesOfImages(t *testing.T) {
	for _, bad := range []string{"", "trainer", "registry.example.com/trainer", "team/trainer:1", "registry.example.com/Team/x:1", "registry.example.com/x@sha256:" + strings.Repeat("a", 64)} {
		if _, err := ParseTag(bad); err == nil {
			t.Errorf("%q is taken for a tag", bad)
		}
	}
	for _, bad := range []string{"", "UPPER/x", "a b", "x@sha256:1"} {
		if _, err := ParseBase(bad); err == nil {
			t.Errorf("%q is taken for a base", bad)
		}
	}
	for _, good := range []string{"python:3.12-slim", "nvcr.io/nvidia/pytorch:25.01-py3", "x@sha256:" + strings.Repeat("a", 64)} {
		if _, err := ParseBase(good); err != nil {
			t.Error(err)
		}
	}
}
