package modules

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/hcl/v2"
)

// What may lie in a folder instead of a readable file ends in one diagnostic.
func TestUnreadableFiles(t *testing.T) {
	cases := map[string]struct {
		make func(path string) error
		want string
	}{
		"huge": {func(path string) error {
			f, err := os.Create(path)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(200 << 20)
		}, "200.0 MiB"},
		"fifo":    {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "not a regular file"},
		"device":  {func(path string) error { return os.Symlink("/dev/zero", path) }, "not a regular file"},
		"folder":  {func(path string) error { return os.Symlink(".", path) }, "it is a folder"},
		"loop":    {func(path string) error { return os.Symlink(filepath.Base(path), path) }, "too many levels of symbolic links"},
		"nowhere": {func(path string) error { return os.Symlink("nowhere", path) }, "no such file"},
		"binary":  {func(path string) error { return os.WriteFile(path, []byte("\x7fELF\x00\x01\xfe"), 0o600) }, "NUL byte"},
		"deep":    {func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("[", 200_000)), 0o600) }, "brackets"},
	}
	if os.Getuid() != 0 {
		cases["forbidden"] = struct {
			make func(path string) error
			want string
		}{func(path string) error { return os.WriteFile(path, nil, 0) }, "permission denied"}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.tf")
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			_, _, diags := Load(OnDisk(), dir)
			if len(diags) != 1 || diags[0].Subject == nil || diags[0].Subject.Filename != path || diags[0].Subject.Start.Line < 1 {
				t.Fatal(report(diags))
			}
			if !strings.Contains(diags[0].Detail, c.want) {
				t.Errorf("%q does not say %q", diags[0].Detail, c.want)
			}
		})
	}
}

// A folder may be called like a file; it is none.
func TestFolderCalledLikeAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "modules.tf"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.tf"), []byte("\xef\xbb\xbflocals {\r\n  a = <<E\r\nb\r\nE\r\n}\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "y.tf.json"), []byte("\xef\xbb\xbf{\r\n\"locals\": {\"b\": 1}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, _, diags := Load(OnDisk(), dir)
	if len(diags) > 0 || len(m.Locals) != 2 {
		t.Fatal(report(diags), m.Locals)
	}
}

func TestFolders(t *testing.T) {
	_, _, diags := Load(OnDisk(), filepath.Join(t.TempDir(), "nowhere"))
	if len(diags) != 1 || !strings.Contains(diags[0].Detail, "no such file") {
		t.Error(report(diags))
	}
	// A folder that links to itself has no end.
	dir := t.TempDir()
	if err := os.Symlink(".", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.tf"), []byte("module \"m\" {\n  source = \"./loop\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, diags = Load(OnDisk(), dir)
	if len(diags) != 1 || diags[0].Subject.Start.Line != 2 {
		t.Error(report(diags))
	}
	// Calls that double with every level are bounded, too.
	files := map[string][]byte{}
	for i := range 30 {
		dir := fmt.Sprintf("m%d", i)
		files[dir+"/x.tf"] = fmt.Appendf(nil, "module \"a\" {\n  source = \"../m%d\"\n}\nmodule \"b\" {\n  source = \"../m%d\"\n}\n", i+1, i+1)
	}
	files["m30/x.tf"] = []byte("locals {}\n")
	_, _, diags = Load(InMemory(files), "m0")
	if len(diags) != 1 || diags[0].Summary != "Too many module calls" {
		t.Error(report(diags))
	}
}

// A saved plan holds the files; loading from them gives the same.
func TestFromFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range archive(whole) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	one, files, diags := Load(OnDisk(), ".")
	if diags.HasErrors() {
		t.Fatal(report(diags))
	}
	// Values may be secret: they are quoted, but not among the configuration.
	Values(one, Inputs{Flags: vars("required=secret")}, files)
	if len(files.Content()) != len(files.Configuration())+1 {
		t.Errorf("%d files, %d of configuration", len(files.Content()), len(files.Configuration()))
	}
	two, again, diags := Load(InMemory(files.Configuration()), ".")
	if diags.HasErrors() {
		t.Fatal(report(diags))
	}
	if len(one.Resources) != len(two.Resources) || len(files.Configuration()) != len(again.Configuration()) {
		t.Errorf("%d resources, then %d", len(one.Resources), len(two.Resources))
	}
	for name, r := range one.Resources {
		if two.Resources[name].Range != r.Range {
			t.Errorf("%v at %v, then %v", name, r.Range, two.Resources[name].Range)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for name, content := range archive(whole) {
		if strings.HasSuffix(name, ".tf") || strings.HasSuffix(name, ".json") {
			f.Add(content, strings.HasSuffix(name, ".json"))
		}
	}
	mistakes, _ := filepath.Glob("testdata/mistakes/*.txt")
	for _, path := range mistakes {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		input, _, _ := strings.Cut(string(text), "----------\n")
		for _, content := range archive(input) {
			f.Add(content, false)
			f.Add(content, true)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte, json bool) {
		name := "main.tf"
		if json {
			name += ".json"
		}
		m, files, diags := Load(InMemory(map[string][]byte{name: content, "child/x.tf": []byte("variable \"in\" {}")}), ".")
		if m == nil || files == nil {
			t.Fatal("nil results")
		}
		for _, d := range diags {
			if d.Subject == nil || d.Summary == "Parser failure" {
				t.Fatal(d)
			}
		}
		if !diags.HasErrors() {
			Values(m, Inputs{Source: InMemory(map[string][]byte{"terraform.tfvars": content}), Dir: "."}, files)
		}
	})
}

// tree is n resources that refer to each other as a 10-ary tree.
func tree(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "resource \"terraform_data\" \"n%d\" {\n  input = \"n%d\"\n", i, i)
		if i > 0 {
			fmt.Fprintf(&b, "  triggers_replace = terraform_data.n%d.id\n", (i-1)/10)
		}
		b.WriteString("}\n\n")
	}
	return []byte(b.String())
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		src := InMemory(map[string][]byte{"main.tf": tree(n)})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			var m *Module
			for b.Loop() {
				var diags hcl.Diagnostics
				if m, _, diags = Load(src, "."); diags.HasErrors() || len(m.Resources) != n {
					b.Fatal(diags)
				}
			}
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			b.ReportMetric(float64(stats.HeapAlloc)/(1<<20), "MiB-kept")
			runtime.KeepAlive(m)
		})
	}
}
