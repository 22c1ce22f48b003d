package cuda

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/pjrt"
	"github.com/stokehq/stoke/runtime/pjrt/pjrttest"
)

// doubled returns a machine whose plugin is a double and whose libraries can be
// loaded. The environment that XLA reads is restored when the test ends.
func doubled(t *testing.T, fault string) (*tree, Config) {
	t.Helper()
	for _, name := range []string{"PATH", "XLA_FLAGS", "TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"} {
		t.Setenv(name, os.Getenv(name))
	}
	for _, name := range []string{"XLA_FLAGS", "TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"} {
		os.Unsetenv(name)
	}
	t.Setenv("STOKE_DOUBLE", fault)
	r := whole(t)
	plugin := pjrttest.Build(t)
	r.remove(site + "/jax_plugins")
	data, err := os.ReadFile(plugin)
	if err != nil {
		t.Fatal(err)
	}
	r.write("/opt/plugin.so", string(data))
	files, err := (Config{Plugin: "/opt/plugin.so"}).find(r.machine())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files.Libraries {
		pjrttest.BuildLibrary(t, path)
	}
	return r, Config{Plugin: "/opt/plugin.so", Cache: filepath.Join(t.TempDir(), "cache"), MemoryFraction: 0.5}
}

// journal keeps the messages of a log.
type journal struct{ strings.Builder }

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// count returns how many messages there are of a text, and forgets all.
func (j *journal) count(t *testing.T, message string) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(j.String()) {
		var record struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if record.Msg == message {
			n++
		}
	}
	j.Reset()
	return n
}

func TestAClientStarts(t *testing.T) {
	r, config := doubled(t, "")
	t.Setenv("XLA_FLAGS", "--xla_a=1")
	var log journal
	c, err := open(t.Context(), r.machine(), config, 0, log.logger())
	if err != nil {
		t.Fatal(err)
	}
	if n := log.count(t, "program compiled"); n != 3 {
		t.Errorf("%d programs were compiled for the check, want 3", n)
	}
	if got, want := c.Class(), "NVIDIA H200; PJRT 0.115, stablehlo_current_version [1 20 0], xla_version 2, "+
		"double 1: preallocate=0 memory_fraction=0.5 visible_devices=[0], build "; !strings.HasPrefix(got, want) ||
		!strings.HasSuffix(got, "; cuDNN 9.19.0; XLA_FLAGS --xla_a=1") {
		t.Errorf("the class is %q, want %q…", got, want)
	}
	if c.GPU().UUID != "GPU-00000000" {
		t.Errorf("got %v", c.GPU())
	}

	// The plugin sees the environment and the libraries. It was loaded once more
	// by the same path, which is the same plugin.
	p, err := pjrt.Open(filepath.Join(r.root, config.Plugin))
	if err != nil {
		t.Fatal(err)
	}
	attributes, err := p.Attributes()
	if err != nil {
		t.Fatal(err)
	}
	tools := filepath.Join(r.root, toolkit)
	want := "XLA_FLAGS=--xla_a=1 --xla_gpu_cuda_data_dir=" + tools + " TF_CPP_MIN_LOG_LEVEL=1 PATH=" + tools + "/bin:"
	if got := attributes["environment"].(string); !strings.HasPrefix(got, want) || attributes["libraries"] != true {
		t.Errorf("the plugin sees %v, want %q…", attributes, want)
	}
	if _, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		t.Error("CUDA_VISIBLE_DEVICES is set for the only GPU")
	}

	// A later client has the programs already.
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	class := c.Class()
	c, err = open(t.Context(), r.machine(), config, 0, log.logger())
	if err != nil {
		t.Fatal(err)
	}
	if n := log.count(t, "program compiled"); n != 0 {
		t.Errorf("%d programs were compiled by the second client", n)
	}
	if got := c.Class(); got != class {
		t.Errorf("the second client's class is %q, want %q", got, class)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestPrograms(t *testing.T) {
	r, config := doubled(t, "")
	var log journal
	c, err := open(t.Context(), r.machine(), config, 0, log.logger())
	if err != nil {
		t.Fatal(err)
	}
	log.Reset()
	compile := func(want int, flags map[string]any) {
		t.Helper()
		e, err := c.Compile("double:add ", flags)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if n := log.count(t, "program compiled"); n != want {
			t.Errorf("compiled %d times, want %d", n, want)
		}
	}
	compile(1, nil)
	compile(0, nil)
	compile(1, map[string]any{"xla_gpu_deterministic_ops": true})
	compile(0, map[string]any{"xla_gpu_deterministic_ops": true})

	name := key(c.Class()+"; driver 580.159.04", "double:add ", nil)
	if err := os.WriteFile(c.kept.file(name), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	compile(1, nil)
	compile(0, nil)
	if err := c.kept.write(name, []byte("a program of another plugin")); err != nil {
		t.Fatal(err)
	}
	e, err := c.Compile("double:add ", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "XLA refuses a kept program, which is compiled again") {
		t.Errorf("the log is %s", log.String())
	}
	if n := log.count(t, "program compiled"); n != 1 {
		t.Errorf("compiled %d times, want 1", n)
	}
	compile(0, nil)

	// A cache that cannot be written keeps no program from being compiled.
	c.kept.dir = c.kept.file(name)
	compile(1, nil)
	compile(1, nil)
	if _, err := c.Compile("not a program", nil); err == nil || !strings.Contains(err.Error(), "MLIR") {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(e.Close(), c.Close()); err != nil {
		t.Error(err)
	}
}

func TestOneOfSeveralGPUs(t *testing.T) {
	r, config := doubled(t, "")
	r.addGPU("0000:00:08.0", 1, "NVIDIA H200")
	_, err := open(t.Context(), r.machine(), config, 2, slog.New(slog.DiscardHandler))
	wantFault(t, err, NoGPU, "There is no GPU 2", "There are: 0 (NVIDIA H200), 1 (NVIDIA H200).")
	c, err := open(t.Context(), r.machine(), config, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := os.Getenv("CUDA_VISIBLE_DEVICES"); got != "GPU-11111111" {
		t.Errorf("CUDA_VISIBLE_DEVICES is %q", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}

	// A sandbox has neither UUIDs nor models: XLA tells the model.
	sandbox, sandboxed := doubled(t, "")
	sandbox.remove("/proc")
	sandbox.remove("/usr/lib64/libcuda.so.1")
	pjrttest.BuildLibrary(t, filepath.Join(sandbox.root, "/usr/lib64/libcuda.so.580.159.03"))
	sandbox.link("/usr/lib64/libcuda.so.1", "libcuda.so.580.159.03")
	sandbox.write("/dev/nvidia1", "")
	inside, err := open(t.Context(), sandbox.machine(), sandboxed, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := os.Getenv("CUDA_VISIBLE_DEVICES"); got != "1" || !strings.HasPrefix(inside.Class(), "Double 1") {
		t.Errorf("CUDA_VISIBLE_DEVICES is %q, the class %s", got, inside.Class())
	}
	if err := inside.Close(); err != nil {
		t.Error(err)
	}

	// A choice by number becomes a choice by UUID, as CUDA may number otherwise.
	r.environment["CUDA_VISIBLE_DEVICES"] = "0"
	if c, err = open(t.Context(), r.machine(), config, 0, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if got := os.Getenv("CUDA_VISIBLE_DEVICES"); got != "GPU-00000000" {
		t.Errorf("CUDA_VISIBLE_DEVICES is %q", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestClientsThatDoNotStart(t *testing.T) {
	for fault, test := range map[string]struct {
		kind  Kind
		words []string
	}{
		"short":      {BadPlugin, []string{"lacks PJRT_Client_DmaMap", "Install a newer version of the Python package jax-cuda13-pjrt"}},
		"larger":     {BadPlugin, []string{"wants 400 bytes", "Install an older version", "or a newer stoke"}},
		"clientless": {BadGPU, []string{"XLA does not start on the GPU", "no supported devices found for platform CUDA"}},
		"deviceless": {BadGPU, []string{"found no device"}},
		"wrong":      {BadGPU, []string{"The GPU fails a check at the start", "One convolution on NVIDIA H200", "and Go computes"}},
	} {
		t.Run(fault, func(t *testing.T) {
			r, config := doubled(t, fault)
			_, err := open(t.Context(), r.machine(), config, 0, slog.New(slog.DiscardHandler))
			wantFault(t, err, test.kind, test.words...)
		})
	}
	t.Run("problem", func(t *testing.T) {
		r, config := doubled(t, "")
		r.remove(toolkit + "/bin")
		_, err := open(t.Context(), r.machine(), config, 0, slog.New(slog.DiscardHandler))
		wantFault(t, err, NoPtxas)
	})
	t.Run("broken library", func(t *testing.T) {
		r, config := doubled(t, "")
		r.write(site+"/nvidia/cu13/lib/libcublas.so.13", "broken")
		_, err := open(t.Context(), r.machine(), config, 0, slog.New(slog.DiscardHandler))
		wantFault(t, err, NoLibrary, "cannot be loaded", "libcublas.so.13")
	})
	t.Run("broken library that XLA can do without", func(t *testing.T) {
		r, config := doubled(t, "")
		r.write(site+"/nvidia/nccl/lib/libnccl.so.2", "broken")
		var log journal
		c, err := open(t.Context(), r.machine(), config, 0, log.logger())
		if err != nil {
			t.Fatal(err)
		}
		if n := log.count(t, "a library of CUDA cannot be loaded"); n != 1 {
			t.Errorf("the library was reported %d times", n)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		r, config := doubled(t, "")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := open(ctx, r.machine(), config, 0, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestWhatAPluginsFileNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plugin.so")
	for _, test := range []struct {
		flags   []string
		version int
		id      string
	}{
		{[]string{"-Wl,-rpath,$ORIGIN/../../nvidia/cu13/lib:$ORIGIN/x", "-Wl,--build-id=0x1234abcd"}, 13, "1234abcd"},
		{[]string{"-Wl,--disable-new-dtags,-rpath,$ORIGIN/../nvidia/cu14/lib", "-Wl,--build-id=none"}, 14, ""},
		{[]string{"-Wl,-rpath,$ORIGIN/../../nvidia/cublas/lib", "-Wl,--build-id=none"}, 12, ""},
		{[]string{"-Wl,--build-id=none"}, 0, ""},
	} {
		pjrttest.BuildLibrary(t, path, test.flags...)
		if version, id := cudaVersion(path), buildID(path); version != test.version || id != test.id {
			t.Errorf("%v: got CUDA %d, build %q", test.flags, version, id)
		}
	}
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if version, id := cudaVersion(path), buildID(path); version != 0 || id != "" {
		t.Errorf("got CUDA %d, build %q", version, id)
	}
	if version := cudaVersion("/x/jax_plugins/xla_cuda12/xla_cuda_plugin.so"); version != 12 {
		t.Errorf("got CUDA %d", version)
	}
}

// Without a folder in the configuration, programs are kept in the user's.
func TestTheUsersCache(t *testing.T) {
	r, config := doubled(t, "")
	config.Cache = ""
	user := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", user)
	t.Setenv("HOME", user)
	c, err := open(t.Context(), r.machine(), config, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(filepath.Join(base, "stoke/xla/*.xla")); err != nil || len(files) != 3 {
		t.Errorf("got %v, %v", files, err)
	}
}
