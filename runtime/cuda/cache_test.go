package cuda

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCompiledProgramsAreKept(t *testing.T) {
	c := cache{filepath.Join(t.TempDir(), "a", "b"), 1 << 20}
	if got, err := c.read("x"); got != nil || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	program := bytes.Repeat([]byte("program"), 100)
	if err := c.write("x", program); err != nil {
		t.Fatal(err)
	}
	if got, err := c.read("x"); !bytes.Equal(got, program) || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := c.read("y"); got != nil || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// Each bit counts: a damaged program could end the process.
func TestDamagedProgramsAreRemoved(t *testing.T) {
	c := cache{t.TempDir(), 1 << 20}
	for name, damage := range map[string]func([]byte) []byte{
		"empty":      func([]byte) []byte { return nil },
		"beginning":  func(b []byte) []byte { return b[:30] },
		"cut":        func(b []byte) []byte { return b[:len(b)-1] },
		"longer":     func(b []byte) []byte { return append(b, 0) },
		"last bit":   func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"sum":        func(b []byte) []byte { b[len(magic)] ^= 1; return b },
		"other file": func(b []byte) []byte { b[0] ^= 1; return b },
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.write("x", []byte("program")); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(c.file("x"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.file("x"), damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := c.read("x"); got != nil || err == nil || !strings.Contains(err.Error(), "is damaged") {
				t.Errorf("got %q, %v", got, err)
			}
			if got, err := c.read("x"); got != nil || err != nil {
				t.Errorf("the damaged file stayed: %q, %v", got, err)
			}
		})
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	c := cache{t.TempDir(), 10_000}
	program := make([]byte, 3000)
	a, b, last, d := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64), strings.Repeat("d", 64)
	for i, name := range []string{a, b, last} {
		if err := c.write(name, program); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(c.file(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.read(a); err != nil { // so that b is the oldest use
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{
		"." + a + ".xla-7": 2 * time.Hour, "." + b + ".xla-8": time.Minute, "toolkit": 100 * time.Hour, ".bashrc": 100 * time.Hour, "notes.xla": 100 * time.Hour,
	} {
		path, at := filepath.Join(c.dir, name), time.Now().Add(-age)
		if err := os.WriteFile(path, program, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.write(d, program); err != nil {
		t.Fatal(err)
	}
	if err := c.write(strings.Repeat("e", 64), make([]byte, 20_000)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{".bashrc", "." + b + ".xla-8", a + ".xla", last + ".xla", d + ".xla", "notes.xla", "toolkit"}
	if !slices.Equal(names, want) {
		t.Errorf("got %s, want %s", names, want)
	}
}

func TestKeysTellProgramsApart(t *testing.T) {
	flags := map[string]any{"a": true, "b": int64(1), "c": "x"}
	same := key("gpu", "text", flags)
	if again := key("gpu", "text", map[string]any{"c": "x", "b": int64(1), "a": true}); again != same {
		t.Error("the order of flags matters")
	}
	keys := map[string]string{same: "the first"}
	for name, k := range map[string]string{
		"machine":  key("gpu2", "text", flags),
		"text":     key("gpu", "text2", flags),
		"border":   key("gp", "utext", flags),
		"no flags": key("gpu", "text", nil),
		"value":    key("gpu", "text", map[string]any{"a": false, "b": int64(1), "c": "x"}),
		"type":     key("gpu", "text", map[string]any{"a": "true", "b": int64(1), "c": "x"}),
		"fewer":    key("gpu", "text", map[string]any{"b": int64(1), "c": "x"}),
		"in value": key("gpu", "text", map[string]any{"a": true, "b": int64(1), "c": "x\n"}),
	} {
		if other, ok := keys[k]; ok {
			t.Errorf("%q and %q have one key", name, other)
		}
		keys[k] = name
	}
}
