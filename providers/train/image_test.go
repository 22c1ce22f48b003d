package train

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/image"
)

func TestImageIsKnownWhilePlanningAndPushedOnce(t *testing.T) {
	b := newImageBench(t)
	config := b.config(nil)
	th := b.new(imageType)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	for _, name := range []string{"digest", "reference", "size", "contents", "base_digest"} {
		if !p.Planned.GetAttr(name).IsWhollyKnown() {
			t.Errorf("%s is not known while planning", name)
		}
	}
	if b.reg.Count(http.MethodPost, "") > 0 {
		t.Error("planning uploads")
	}
	noErrors(t, b.apply(context.Background(), b.call("op-1"), th, config, p))
	img := b.pulled(th.state.GetAttr("reference").AsString())
	if d, err := img.Digest(); err != nil || d.String() != th.state.GetAttr("digest").AsString() {
		t.Errorf("the digest is %s, %v", d, err)
	}
	if file, err := img.ConfigFile(); err != nil || file.Config.Labels[image.LabelVersion] != "test" {
		t.Errorf("the configuration is %+v, %v", file, err)
	}
	if len(th.state.GetAttr("contents").AsValueMap()) != 3 {
		t.Errorf("contents are %s", show(th.state))
	}
	b.unchanged(th, config)

	// Touched files are no change, and are read once.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(b.files, "train.py"), later, later); err != nil {
		t.Fatal(err)
	}
	b.unchanged(th, config)

	// The plan names the file that has changed, and what uses the image is exact.
	b.write("lib/a.py", "changed")
	b.restart()
	noErrors(t, b.read(th))
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	before, after := th.state.GetAttr("contents").AsValueMap(), p.Planned.GetAttr("contents").AsValueMap()
	for name := range after {
		if changed := !after[name].RawEquals(before[name]); changed != (name == "/app/lib/a.py") {
			t.Errorf("%s: changed is %v", name, changed)
		}
	}
	if len(p.Replace) > 0 || !p.Planned.GetAttr("reference").IsKnown() || p.Planned.GetAttr("reference").RawEquals(th.state.GetAttr("reference")) {
		t.Errorf("planned %s, replaces by %v", show(p.Planned), p.Replace)
	}
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	b.pulled(b.tag())
	b.unchanged(th, config)

	// A file that changes between plan and apply is not pushed unseen.
	b.write("lib/a.py", "planned")
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	b.write("lib/a.py", "slipped in")
	d := oneError(t, b.apply(context.Background(), b.call(""), th, config, p), "Files changed since the plan")
	if !contains(d.Detail, "/app/lib/a.py") {
		t.Errorf("it says %q", d.Detail)
	}
}

func TestPushedImageStaysUnlessItIsToGo(t *testing.T) {
	b := newImageBench(t)
	th := b.make(imageType, "op-1", b.config(nil))
	ref := th.state.GetAttr("reference").AsString()
	b.plan(th, cty.NullVal(th.state.Type()))
	if !b.saysNote("stays in the registry") {
		t.Errorf("notes are %+v", b.notes)
	}
	b.destroy(th)
	b.pulled(ref)

	config := b.config(values{"delete_on_destroy": cty.True})
	th = b.make(imageType, "op-2", config)
	b.plan(th, cty.NullVal(th.state.Type()))
	if !b.saysNote("deletes " + b.tag()) {
		t.Errorf("notes are %+v", b.notes)
	}
	state := th.state
	b.reg.ReadOnly(true)
	null := cty.NullVal(th.state.Type())
	oneError(t, b.apply(context.Background(), b.call(""), th, null, providers.PlanResponse{Planned: null, Private: th.private}), "Registry refuses to delete the image")
	b.reg.ReadOnly(false)
	th.state = state
	b.destroy(th)
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Head(parsed); err == nil {
		t.Error("the image is still there")
	}
}

func TestImageMovesToAnotherTag(t *testing.T) {
	b := newImageBench(t)
	th := b.make(imageType, "op-1", b.config(values{"delete_on_destroy": cty.True}))
	old := th.state.GetAttr("reference").AsString()
	config := b.config(values{"delete_on_destroy": cty.True, "push": cty.StringVal(b.reg.Host + "/team/other:2")})
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if len(p.Replace) > 0 || !b.saysNote("deletes "+b.tag()) {
		t.Errorf("replaces by %v, notes %+v", p.Replace, b.notes)
	}
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	b.pulled(th.state.GetAttr("reference").AsString())
	ref, _ := name.ParseReference(old)
	if _, err := remote.Head(ref); err == nil {
		t.Error("the image of before is still there")
	}
	b.unchanged(th, config)
}
