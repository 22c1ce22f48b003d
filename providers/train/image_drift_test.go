package train

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/train/image"
)

func TestRegistryDrift(t *testing.T) {
	b := newImageBench(t)
	config := b.config(nil)
	th := b.make(imageType, "op-1", config)
	tag, err := name.NewTag(b.tag())
	if err != nil {
		t.Fatal(err)
	}
	again := func(what string) {
		t.Helper()
		b.restart()
		noErrors(t, b.read(th))
		p := b.plan(th, config)
		noErrors(t, p.Diagnostics)
		if p.Planned.RawEquals(th.state) {
			t.Fatalf("%s: nothing is planned", what)
		}
		noErrors(t, b.apply(context.Background(), b.call("op-"+what), th, config, p))
		b.pulled(b.tag())
		b.pulled(th.state.GetAttr("reference").AsString())
		b.unchanged(th, config)
	}
	// Somebody else takes the tag.
	if err := remote.Write(tag, empty.Image); err != nil {
		t.Fatal(err)
	}
	noErrors(t, b.read(th))
	if !th.state.GetAttr("reference").IsNull() {
		t.Error("a tag that was taken is no drift")
	}
	b.plan(th, config)
	if !b.saysNote("takes the tag " + b.tag() + " back from sha256:") {
		t.Errorf("notes are %+v", b.notes)
	}
	again("taken")

	// Somebody deletes it.
	digest, err := name.NewDigest(th.state.GetAttr("reference").AsString())
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Delete(digest); err != nil {
		t.Fatal(err)
	}
	if err := remote.Delete(tag); err != nil {
		t.Fatal(err)
	}
	again("deleted")

	// A registry that is away, or refuses, is no drift.
	state := th.state
	for name, change := range map[string]func(on bool){
		"away": b.reg.Break,
		"refuses": func(on bool) {
			b.reg.Demand(map[bool]string{true: "eve"}[on], "x")
		},
	} {
		change(true)
		b.restart()
		diags := b.read(th)
		noErrors(t, diags)
		if len(diags) != 1 || diags[0].Summary != "Pushed image cannot be read" || !th.state.RawEquals(state) {
			t.Errorf("%s: says %+v, state %s", name, diags, show(th.state))
		}
		if p := b.plan(th, config); !p.Planned.RawEquals(state) {
			t.Errorf("%s: planned %s", name, show(p.Planned))
		}
		change(false)
	}
}

func TestBaseThatMovesIsAPlannedChange(t *testing.T) {
	b := newImageBench(t)
	tag, err := name.NewTag(b.reg.Host + "/lib/python:3")
	if err != nil {
		t.Fatal(err)
	}
	push := func(user string) {
		t.Helper()
		img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{Env: []string{"OF=" + user}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(tag, img); err != nil {
			t.Fatal(err)
		}
	}
	push("one")
	config := b.config(values{"base": cty.StringVal(tag.String())})
	th := b.make(imageType, "op-1", config)
	b.unchanged(th, config)
	push("two")
	b.restart()
	noErrors(t, b.read(th))
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if p.Planned.GetAttr("digest").RawEquals(th.state.GetAttr("digest")) || !b.saysNote("has moved from sha256:") {
		t.Errorf("planned %s, notes %+v", show(p.Planned), b.notes)
	}
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	b.unchanged(th, config)

	// Away: what exists stays, what is new has a digest after apply.
	b.reg.Break(true)
	b.restart()
	if p := b.plan(th, config); !p.Planned.RawEquals(th.state) {
		t.Errorf("planned %s", show(p.Planned))
	}
	fresh := b.new(imageType)
	p = b.plan(fresh, config)
	noErrors(t, p.Diagnostics)
	if p.Planned.GetAttr("digest").IsKnown() || !p.Planned.GetAttr("contents").IsWhollyKnown() || !b.saysNote("known after apply") {
		t.Errorf("planned %s, notes %+v", show(p.Planned), b.notes)
	}
	oneError(t, b.apply(context.Background(), b.call("op-2"), fresh, config, p), "Registry of the base cannot be reached")
	b.reg.Break(false)
	noErrors(t, b.apply(context.Background(), b.call("op-2"), fresh, config, p))
	if !fresh.state.GetAttr("digest").RawEquals(th.state.GetAttr("digest")) {
		t.Error("the same inputs have another digest")
	}
}

func TestTarballIsOursOrLeftAlone(t *testing.T) {
	b := newImageBench(t)
	file, change := b.tarballs()
	config := b.config(change)
	th := b.make(imageType, "op-1", config)
	ref, digest := th.state.GetAttr("reference").AsString(), th.state.GetAttr("digest").AsString()
	if ref != "localhost/trainer-1:"+digest[7:19] {
		t.Errorf("the reference is %s", ref)
	}
	if label, err := image.Archive(file).Label(); err != nil || label.Digest != digest || label.Tag != ref || label.Owner != th.state.GetAttr("id").AsString() {
		t.Errorf("the tarball says %+v, %v", label, err)
	}
	b.unchanged(th, config)
	damage := func(of func(whole []byte) []byte) func() error {
		return func() error {
			whole, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return os.WriteFile(file, of(whole), 0o600)
		}
	}
	for what, harm := range map[string]func() error{
		"gone":    func() error { return os.Remove(file) },
		"damaged": damage(func(whole []byte) []byte { whole[len(whole)/2] ^= 1; return whole }),
		"cut":     damage(func(whole []byte) []byte { return whole[:len(whole)/2] }),
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		b.restart()
		noErrors(t, b.read(th))
		p := b.plan(th, config)
		noErrors(t, p.Diagnostics)
		if what != "gone" && !b.saysNote("is damaged") {
			t.Errorf("%s: notes are %+v", what, b.notes)
		}
		noErrors(t, b.apply(context.Background(), b.call("op-"+what), th, config, p))
		if err := image.Archive(file).Verify(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		b.unchanged(th, config)
	}

	// Somebody else's file is never written over, nor removed.
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	state := th.state
	noErrors(t, b.read(th))
	oneError(t, b.plan(th, config).Diagnostics, "File exists already")
	th.state = state
	b.destroy(th)
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	th = b.make(imageType, "op-3", config)
	b.destroy(th)
	if _, err := os.Stat(file); err == nil {
		t.Error("the tarball is still there")
	}
}

func TestInterruptedImageIsSettled(t *testing.T) {
	b := newImageBench(t)
	file, change := b.tarballs()
	change["push"] = cty.StringVal(b.tag())
	config := b.config(change)
	th := b.new(imageType)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if got := b.settle(imageType, "op-1", p.Planned); !got.state.IsNull() {
		t.Error("an image that was never made was found")
	}
	// Killed in the middle of writing, after the push.
	noErrors(t, b.apply(context.Background(), b.call("op-1"), th, config, p))
	raw := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+"."+th.state.GetAttr("id").AsString()+".new")
	if err := os.Rename(file, raw); err != nil {
		t.Fatal(err)
	}
	got := b.settle(imageType, "op-1", p.Planned)
	if got.state.IsNull() || !got.state.GetAttr("reference").IsNull() {
		t.Fatalf("settled as %s", show(got.state))
	}
	if _, err := os.Stat(raw); err == nil {
		t.Error("what was half written is still there")
	}
	next := b.plan(got, config)
	noErrors(t, next.Diagnostics)
	noErrors(t, b.apply(context.Background(), b.call(""), got, config, next))
	if !got.state.RawEquals(th.state) {
		t.Errorf("finished as\n%s\nwant\n%s", show(got.state), show(th.state))
	}
	b.unchanged(got, config)
	// Killed after everything.
	if got = b.settle(imageType, "op-1", p.Planned); !got.state.RawEquals(th.state) {
		t.Errorf("settled as\n%s\nwant\n%s", show(got.state), show(th.state))
	}
	// Another operation's tarball is not taken over.
	config = b.config(values{"push": cty.NullVal(cty.String), "tarball": cty.StringVal(file)})
	p = b.plan(b.new(imageType), config)
	if other := b.settle(imageType, "op-2", p.Planned); !other.state.IsNull() {
		t.Error("somebody else's tarball was taken over")
	}
	oneError(t, b.apply(context.Background(), b.call("op-2"), b.new(imageType), config, p), "File exists already")
}

func TestHalfPublishedImageGoesOn(t *testing.T) {
	b := newImageBench(t)
	file, change := b.tarballs()
	change["push"] = cty.StringVal(b.tag())
	config := b.config(change)
	th := b.new(imageType)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	oneError(t, b.apply(context.Background(), b.call("op-1"), th, config, p), "File exists already")
	if th.state.IsNull() || !b.kept {
		t.Fatal("what was pushed is forgotten")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	b.unchanged(th, config)
}

// TestFailedImageUpdateIsPlannedAgain: what a plan noted about the files is not taken
// for what the registry has.
func TestFailedImageUpdateIsPlannedAgain(t *testing.T) {
	b := newImageBench(t)
	config := b.config(nil)
	th := b.make(imageType, "op-1", config)
	before := th.state
	b.write("train.py", "print(2)")
	b.reg.ReadOnly(true)
	for range 2 {
		b.restart()
		noErrors(t, b.read(th))
		p := b.plan(th, config)
		noErrors(t, p.Diagnostics)
		if p.Planned.GetAttr("digest").RawEquals(before.GetAttr("digest")) {
			t.Fatal("the change is forgotten")
		}
		oneError(t, b.apply(context.Background(), b.call(""), th, config, p), "Registry refuses the push")
		if !th.state.RawEquals(before) {
			t.Errorf("a push that was refused changed the state to %s", show(th.state))
		}
	}
	b.reg.ReadOnly(false)
	p := b.plan(th, config)
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	b.unchanged(th, config)
}
