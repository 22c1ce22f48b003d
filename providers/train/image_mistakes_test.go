package train

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/train/image"
)

func TestImageMistakesAreOneErrorEach(t *testing.T) {
	b := newImageBench(t)
	str := cty.StringVal
	files := func(to, from string) cty.Value { return cty.MapVal(values{to: str(from)}) }
	binaryFor := func(machine elf.Machine) string {
		text, err := os.ReadFile(b.trainer)
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint16(text[18:], uint16(machine))
		file := filepath.Join(t.TempDir(), trainerName)
		if err := os.WriteFile(file, text, 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	other := map[string]elf.Machine{"amd64": elf.EM_AARCH64, "arm64": elf.EM_X86_64}[runtime.GOARCH]
	foreign := map[string]string{"amd64": "linux/arm64", "arm64": "linux/amd64"}[runtime.GOARCH]
	nothing := filepath.Join(b.files, "nothing")
	at := cty.GetAttrPath
	tests := []struct {
		name    string
		change  values
		summary string
		at      cty.Path
	}{
		{"nowhere", values{"push": cty.NullVal(cty.String)}, "The image goes nowhere", nil},
		{"no tag", values{"push": str(b.reg.Host + "/x")}, "Name of the image is malformed", at("push")},
		{"base", values{"base": str("A/B")}, "Name of the image is malformed", at("base")},
		{"unknown base", values{"base": str(b.reg.Host + "/lib/none:1")}, "Base image does not exist", at("base")},
		{"platform", values{"platform": str("windows/amd64")}, "Unknown platform", at("platform")},
		{"missing file", values{"files": files("/app", nothing)}, "There is no such file", at("files").IndexString("/app")},
		{"device", values{"files": files("/app", "/dev/null")}, "File cannot be in an image", at("files").IndexString("/app")},
		{"missing wheels", values{"wheels": str(nothing), "python": str("3.12")}, "There is no such file", at("wheels")},
		{"user", values{"user": str("nobody")}, "User is no number", at("user")},
		{"label", values{"labels": cty.MapVal(values{image.LabelVersion: str("9")})}, "Label cannot be used", at("labels").IndexString(image.LabelVersion)},
		{"no folder", values{"tarball": str(filepath.Join(nothing, "x.tar"))}, "There is no such folder", at("tarball")},
		{"foreign file", values{"tarball": str(filepath.Join(b.files, "train.py"))}, "File exists already", at("tarball")},
		{"no trainer", values{"trainer": str(nothing)}, "The trainer cannot be used", at("trainer")},
		{"trainer for another platform", values{"trainer": str(binaryFor(other))}, "The trainer does not fit the image", at("trainer")},
		{"script as trainer", values{"trainer": str(b.script("#!/bin/sh\n"))}, "The trainer does not fit the image", at("trainer")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := b.plan(b.new(imageType), b.config(test.change))
			if d := oneError(t, p.Diagnostics, test.summary); !d.Path.Equals(test.at) {
				t.Errorf("error is at %#v, want %#v", d.Path, test.at)
			}
		})
	}
	noErrors(t, b.plan(b.new(imageType), b.config(values{"platform": str(foreign), "trainer": str(binaryFor(other))})).Diagnostics)

	// A trainer of another version.
	b.version("other")
	p := b.plan(b.new(imageType), b.config(nil))
	if d := oneError(t, p.Diagnostics, "The trainer is of another version"); !contains(d.Detail, `"test"`) || !contains(d.Detail, `"other"`) {
		t.Errorf("it says %q", d.Detail)
	}
}

func (b *imageBench) script(text string) string {
	file := filepath.Join(b.t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		b.t.Fatal(err)
	}
	return file
}

// version makes the provider one of another version of stoke.
func (b *imageBench) version(v string) {
	b.t.Helper()
	p, err := Entry(v).New()
	if err != nil {
		b.t.Fatal(err)
	}
	s, diags := p.Schema(context.Background())
	noErrors(b.t, diags)
	noErrors(b.t, p.Configure(context.Background(), object(b.t, s.Provider.ImpliedType(), nil)))
	b.p = p
}

func TestRegistryThatRefusesIsNamed(t *testing.T) {
	b := newImageBench(t)
	b.reg.Demand("ada", "another password")
	config := b.config(nil)
	th := b.new(imageType)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if !b.saysNote("refuses access") {
		t.Errorf("notes are %+v", b.notes)
	}
	d := oneError(t, b.apply(context.Background(), b.call("op-1"), th, config, p), "Registry refuses the push")
	if !d.Path.Equals(cty.GetAttrPath("push")) || !contains(d.Detail, "docker login "+b.reg.Host) || contains(d.Detail, "secret") {
		t.Errorf("it says %q at %#v", d.Detail, d.Path)
	}
	if !th.state.IsNull() {
		t.Error("a push that was refused left a state")
	}
	p = b.plan(b.new(imageType), b.config(values{"base": cty.StringVal(b.reg.Host + "/lib/python:3")}))
	oneError(t, p.Diagnostics, "Registry refuses access to the base")

	b.reg.Demand("ada", "secret")
	b.reg.ReadOnly(true)
	p = b.plan(th, config)
	oneError(t, b.apply(context.Background(), b.call("op-1"), th, config, p), "Registry refuses the push")
	b.reg.ReadOnly(false)
	noErrors(t, b.apply(context.Background(), b.call("op-1"), th, config, p))
	for _, text := range []string{show(th.state), string(th.private)} {
		if strings.Contains(text, "secret") {
			t.Error("the password is stored")
		}
	}
}

func TestImageOfUnknownInputs(t *testing.T) {
	b := newImageBench(t)
	config := b.config(values{"files": cty.MapVal(values{"/app": cty.UnknownVal(cty.String)})})
	p := b.plan(b.new(imageType), config)
	noErrors(t, p.Diagnostics)
	if p.Planned.GetAttr("digest").IsKnown() || p.Planned.GetAttr("contents").IsKnown() {
		t.Errorf("planned %s", show(p.Planned))
	}
	p = b.plan(b.new(imageType), b.config(values{"push": cty.UnknownVal(cty.String)}))
	noErrors(t, p.Diagnostics)
	if p.Planned.GetAttr("reference").IsKnown() || !p.Planned.GetAttr("digest").IsKnown() {
		t.Errorf("planned %s", show(p.Planned))
	}
}
