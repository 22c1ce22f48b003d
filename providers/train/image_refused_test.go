package train

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/train/image"
)

// TestPlanAfterARefusedImageApply: the registry refuses each request of a create
// and of a move to other destinations once. The next apply brings the image where
// it is declared, and leaves nothing where it was.
func TestPlanAfterARefusedImageApply(t *testing.T) {
	b := newImageBench(t)
	for n, met := 0, true; met && !t.Failed(); n++ {
		met = b.refusedAt(n)
	}
}

// refusedAt is one life in which the registry refuses the request n of each
// apply. It reports whether one was refused.
func (b *imageBench) refusedAt(n int) (met bool) {
	b.t.Helper()
	dir := b.t.TempDir()
	at := func(tag, file string) (string, string) { return b.reg.Host + "/team/" + tag, filepath.Join(dir, file) }
	oldTag, oldFile := at("old:1", "old.tar")
	newTag, newFile := at("new:1", "new.tar")
	apply := func(th *thing, tag, file string) {
		config := b.config(values{"delete_on_destroy": cty.True, "push": cty.StringVal(tag), "tarball": cty.StringVal(file)})
		created := th.state.IsNull()
		p := b.plan(th, config)
		noErrors(b.t, p.Diagnostics)
		b.reg.RefuseAfter(n)
		failed := b.apply(context.Background(), b.call("op"), th, config, p).HasErrors()
		met = b.reg.RefuseAfter(-1) || met
		if failed && created && !th.state.IsNull() && !b.kept {
			b.t.Errorf("request %d: what was made is to be made anew", n)
		}
		b.restart()
		if !th.state.IsNull() {
			noErrors(b.t, b.read(th))
		}
		p = b.plan(th, config)
		noErrors(b.t, p.Diagnostics)
		if failed && p.Planned.RawEquals(th.state) {
			b.t.Errorf("request %d: after a failed apply a plan has nothing to do", n)
		}
		noErrors(b.t, b.apply(context.Background(), b.call("op"), th, config, p))
		b.pulled(tag)
		if err := image.Archive(file).Verify(b.t.Context()); err != nil {
			b.t.Errorf("request %d: %v", n, err)
		}
		b.unchanged(th, config)
	}
	th := b.new(imageType)
	apply(th, oldTag, oldFile)
	old := th.state.GetAttr("reference").AsString()
	apply(th, newTag, newFile)
	if _, err := os.Stat(oldFile); err == nil {
		b.t.Errorf("request %d: the old tarball is still there", n)
	}
	if ref, err := name.ParseReference(old); err != nil {
		b.t.Error(err)
	} else if _, err := remote.Head(ref); err == nil {
		b.t.Errorf("request %d: the old image is still in the registry", n)
	}
	b.destroy(th)
	return met
}

// TestPlanAfterATarballThatFailed: a move of both destinations whose tarball
// cannot be written leaves neither of the old ones behind once it succeeds.
func TestPlanAfterATarballThatFailed(t *testing.T) {
	b := newImageBench(t)
	dir := t.TempDir()
	oldFile, newFile := filepath.Join(dir, "old.tar"), filepath.Join(dir, "new.tar")
	config := func(tag, file string) cty.Value {
		return b.config(values{"delete_on_destroy": cty.True, "push": cty.StringVal(b.reg.Host + "/team/" + tag), "tarball": cty.StringVal(file)})
	}
	th := b.make(imageType, "op", config("old:1", oldFile))
	old := th.state.GetAttr("reference").AsString()
	p := b.plan(th, config("new:1", newFile))
	noErrors(t, p.Diagnostics)
	if err := os.WriteFile(newFile, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	oneError(t, b.apply(context.Background(), b.call(""), th, config("new:1", newFile), p), "File exists already")
	if err := os.Remove(newFile); err != nil {
		t.Fatal(err)
	}
	b.restart()
	noErrors(t, b.read(th))
	p = b.plan(th, config("new:1", newFile))
	noErrors(t, p.Diagnostics)
	noErrors(t, b.apply(context.Background(), b.call(""), th, config("new:1", newFile), p))
	b.pulled(b.reg.Host + "/team/new:1")
	if _, err := os.Stat(oldFile); err == nil {
		t.Error("the old tarball is still there")
	}
	if ref, err := name.ParseReference(old); err != nil {
		t.Error(err)
	} else if _, err := remote.Head(ref); err == nil {
		t.Error("the old image is still in the registry")
	}
	b.unchanged(th, config("new:1", newFile))
}
