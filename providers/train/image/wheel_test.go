package image

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeWheel writes a wheel of the name, with a module of the distribution's
// name and more: name → content. nil content takes a default file out; RECORD is
// made unless it is given.
func writeWheel(t *testing.T, dir, name string, more map[string]*string) {
	t.Helper()
	parts := strings.SplitN(name, "-", 3)
	stem := parts[0] + "-" + parts[1]
	files := map[string]string{
		parts[0] + "/__init__.py":    "name = '" + parts[0] + "'\n",
		stem + ".dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n",
		stem + ".dist-info/METADATA": "Metadata-Version: 2.1\nName: " + parts[0] + "\nVersion: " + parts[1] + "\n",
	}
	for n, content := range more {
		if delete(files, n); content != nil {
			files[n] = *content
		}
	}
	record := stem + ".dist-info/RECORD"
	names := make([]string, 0, len(files))
	for n := range files {
		names = append(names, n)
	}
	slices.Sort(names)
	if _, given := files[record]; !given {
		var lines strings.Builder
		for _, n := range names {
			sum := sha256.Sum256([]byte(files[n]))
			lines.WriteString(n + ",sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]) + ",\n")
		}
		lines.WriteString(record + ",,\n")
		files[record] = lines.String()
		names = append(names, record)
	}
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for _, n := range names {
		w, err := z.Create(n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[n])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func of(s string) *string { return &s }

func withWheels(t *testing.T) Spec {
	spec := basic(t)
	spec.Wheels, spec.Python = t.TempDir(), "3.12"
	return spec
}

func TestWheelsAreUnpacked(t *testing.T) {
	spec := withWheels(t)
	writeWheel(t, spec.Wheels, "alpha-1.0-py3-none-any.whl", map[string]*string{
		"alpha-1.0.data/scripts/alpha-run":      of("#!python\nimport alpha\n"),
		"alpha-1.0.data/scripts/alpha-sh":       of("#!/bin/sh\n"),
		"alpha-1.0.data/data/share/alpha.txt":   of("shared"),
		"alpha-1.0.data/headers/alpha.h":        of("header"),
		"alpha-1.0.data/platlib/alpha/_fast.so": of("fast"),
		"alpha-1.0.dist-info/entry_points.txt":  of("[other]\nx = y:z\n[console_scripts]\nalpha = alpha.cli:main\n# remark\n"),
	})
	writeWheel(t, spec.Wheels, "beta_two-2.0+cpu-1-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", nil)
	put(t, spec.Wheels, map[string]string{"requirements.txt": "alpha==1.0"})
	b := build(t, spec, nil)
	got := unpack(t, b.Image)
	const packages = "usr/local/lib/python3.12/site-packages/"
	for name, want := range map[string]string{
		packages + "alpha/__init__.py":               "name = 'alpha'\n",
		packages + "alpha/_fast.so":                  "fast",
		packages + "beta_two/__init__.py":            "name = 'beta_two'\n",
		"usr/local/bin/alpha-run":                    "#!/usr/bin/env python3\nimport alpha\n",
		"usr/local/bin/alpha-sh":                     "#!/bin/sh\n",
		"usr/local/bin/alpha":                        "#!/usr/bin/env python3\nimport sys\nfrom alpha.cli import main\nsys.exit(main())\n",
		"usr/local/share/alpha.txt":                  "shared",
		"usr/local/include/python3.12/alpha/alpha.h": "header",
	} {
		if got[name].content != want {
			t.Errorf("%s holds %q, want %q", name, got[name].content, want)
		}
		if mode := got[name].mode; (mode == 0o755) != strings.HasPrefix(name, "usr/local/bin/") {
			t.Errorf("%s has mode %o", name, mode)
		}
	}
	if _, there := got[packages+"alpha-1.0.dist-info/RECORD"]; !there {
		t.Error("Python cannot tell what is installed: RECORD is missing")
	}
	if _, there := b.Contents["alpha-1.0-py3-none-any.whl"]; !there || len(b.Contents) != 3 {
		t.Errorf("contents are %v", b.Contents)
	}
}

func TestWheelsThatCannotBeUsedAreRefused(t *testing.T) {
	const unusable, misfit = "Wheel cannot be used", "Wheel does not fit the image"
	const good = "alpha-1.0-py3-none-any.whl"
	tests := []struct {
		name, file string
		more       map[string]*string
		summary    string
		part       string
	}{
		{"name", "alpha-1.0-any.whl", nil, unusable, "not a wheel's name"},
		{"processor", "alpha-1.0-cp312-cp312-manylinux2014_aarch64.whl", nil, misfit, "linux/amd64"},
		{"system", "alpha-1.0-cp312-cp312-macosx_11_0_x86_64.whl", nil, misfit, "macosx"},
		{"python", "alpha-1.0-cp311-cp311-manylinux2014_x86_64.whl", nil, misfit, "Python 3.12"},
		{"later abi3", "alpha-1.0-cp313-abi3-linux_x86_64.whl", nil, misfit, "Python 3.12"},
		{"free-threaded", "alpha-1.0-cp312-cp312t-linux_x86_64.whl", nil, misfit, "cp312t"},
		{"python 2", "alpha-1.0-py2-none-any.whl", nil, misfit, "py2"},
		{"no WHEEL", good, map[string]*string{"alpha-1.0.dist-info/WHEEL": nil}, unusable, "alpha-1.0.dist-info"},
		{"other name", good, map[string]*string{"alpha-1.0.dist-info/WHEEL": nil, "beta-1.0.dist-info/WHEEL": of("Wheel-Version: 1.0")}, unusable, "alpha-1.0.dist-info"},
		{"version 2", good, map[string]*string{"alpha-1.0.dist-info/WHEEL": of("Wheel-Version: 2.0\n")}, unusable, "2.0"},
		{"wrong hash", good, map[string]*string{"alpha-1.0.dist-info/RECORD": of("alpha/__init__.py,sha256=" + strings.Repeat("A", 43) + ",\nalpha-1.0.dist-info/WHEEL,sha256=AA,\nalpha-1.0.dist-info/METADATA,sha256=AA,\n")}, unusable, "not what its RECORD says"},
		{"weak hash", good, map[string]*string{"alpha-1.0.dist-info/RECORD": of("alpha/__init__.py,md5=AAAA,\n")}, unusable, "no SHA-256"},
		{"not listed", good, map[string]*string{"alpha-1.0.dist-info/RECORD": of("")}, unusable, "not in its RECORD"},
		{"listed only", good, map[string]*string{"alpha-1.0.dist-info/RECORD": of("gone.py,sha256=AAAA,\n")}, unusable, "gone.py"},
		{"climbs", good, map[string]*string{"../evil.py": of("x")}, unusable, "evil"},
		{"absolute", good, map[string]*string{"/etc/evil": of("x")}, unusable, "evil"},
		{"climbs from scripts", good, map[string]*string{"alpha-1.0.data/scripts/../../x": of("x")}, unusable, "x"},
		{"unknown kind", good, map[string]*string{"alpha-1.0.data/kernel/x": of("x")}, unusable, "kernel"},
		{"entry point", good, map[string]*string{"alpha-1.0.dist-info/entry_points.txt": of("[console_scripts]\na = import os; x\n")}, unusable, "console_scripts"},
		{"over the trainer", good, map[string]*string{"alpha-1.0.data/scripts/stoke-trainer": of("x")}, "Two files at one path", TrainerPath},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := withWheels(t)
			writeWheel(t, spec.Wheels, test.file, test.more)
			refused(t, spec, "wheels", test.summary, test.part)
		})
	}
	spec := withWheels(t)
	refused(t, spec, "wheels", "There are no wheels", "pip download")
	put(t, spec.Wheels, map[string]string{good: "no archive"})
	refused(t, spec, "wheels", unusable, good)
	writeWheel(t, spec.Wheels, good, nil)
	writeWheel(t, spec.Wheels, "Alpha-2.0-py3-none-any.whl", nil)
	refused(t, spec, "wheels", "A package is there twice", "alpha")
}

func TestWheelTags(t *testing.T) {
	for name, want := range map[string]bool{
		"a-1-py2.py3-none-any.whl": true, "a-1-py313-none-any.whl": false, "a-1-py39-none-any.whl": true, "a-1-cp38-abi3-manylinux1_x86_64.whl": true,
		"a-1-cp312-none-any.whl": true, "a-1-cp311-none-any.whl": false, "a-1-cp312-cp312-musllinux_1_2_x86_64.whl": true, "a-1-pp310-pypy310_pp73-linux_x86_64.whl": false,
		"a-1-cp312-abi3-linux_x86_64.whl": true, "a-1-cp312-cp312-win_amd64.whl": false, "a-1-py3-none-manylinux_2_28_x86_64.whl": true, "a-1-py3-abi3-any.whl": false,
	} {
		is, err := parseWheelName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := is.fits("3.12", "amd64"); (err == nil) != want {
			t.Errorf("%s: %v, want fit %v", name, err, want)
		}
	}
}
