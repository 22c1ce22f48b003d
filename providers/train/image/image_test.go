package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/stokehq/stoke/cmd/programtest"
)

// TestDigestIsReproducible builds from two checkouts that differ in all that does
// not matter.
func TestDigestIsReproducible(t *testing.T) {
	files := map[string]string{"train.py": "print(1)", "run.sh!": "#!/bin/sh\n", "lib/a.py": "a", "lib/b.py": "b", "lib/z/deep.txt": strings.Repeat("x", 1<<20)}
	spec := basic(t)
	spec.Wheels, spec.Python = t.TempDir(), "3.12"
	writeWheel(t, spec.Wheels, "alpha-1.0-py3-none-any.whl", nil)
	var digests []string
	var sums []map[string]string
	for i, umask := range []int{0o022, 0o077} {
		old := syscall.Umask(umask)
		dir := t.TempDir()
		put(t, dir, files)
		if err := os.Symlink("a.py", filepath.Join(dir, "lib", "c.py")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "empty"), 0o777); err != nil {
			t.Fatal(err)
		}
		syscall.Umask(old)
		err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
			if err != nil || d.Type()&os.ModeSymlink != 0 {
				return err
			}
			when := time.Now().Add(time.Duration(i) * 1000 * time.Hour)
			if !d.IsDir() && i == 1 && !strings.HasSuffix(name, ".sh") {
				if err := os.Chmod(name, 0o664); err != nil {
					return err
				}
			}
			return os.Chtimes(name, when, when)
		})
		if err != nil {
			t.Fatal(err)
		}
		spec.Files = map[string]string{"/app": dir, "/etc/one": filepath.Join(dir, "train.py")}
		spec.Environment = map[string]string{"B": "2", "A": "1"}
		b := build(t, spec, nil)
		digests, sums = append(digests, b.Digest), append(sums, b.Contents)
		if err := validate.Image(b.Image); err != nil {
			t.Error(err)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("digests differ: %v", digests)
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Error(diff)
	}
	// And every input that matters does.
	base := spec
	seen := map[string]string{digests[0]: "the same"}
	for name, change := range map[string]func(*Spec){
		"user": func(s *Spec) { s.User = "1000" }, "command": func(s *Spec) { s.Command = []string{"x"} },
		"environment": func(s *Spec) { s.Environment = map[string]string{"A": "2"} }, "label": func(s *Spec) { s.Labels = map[string]string{"a": "b"} },
		"entrypoint": func(s *Spec) { s.Entrypoint = []string{"/x"} }, "folder": func(s *Spec) { s.WorkingDir = "/app" },
		"files": func(s *Spec) { s.Files = map[string]string{"/app": s.Files["/app"]} }, "version": func(s *Spec) { s.TrainerVersion = "2" },
		"wheels": func(s *Spec) { s.Wheels, s.Python = "", "" }, "packages": func(s *Spec) { s.SitePackages = "/opt/lib/python3.12/site-packages" },
		"trainer": func(s *Spec) { s.Trainer = program(t, elf.EM_X86_64, "another") },
	} {
		changed := base
		change(&changed)
		d := build(t, changed, nil).Digest
		if other, taken := seen[d]; taken {
			t.Errorf("%s changes no more than %s", name, other)
		}
		seen[d] = name
	}
}

func TestImageHoldsWhatWasGiven(t *testing.T) {
	dir := put(t, t.TempDir(), map[string]string{"train.py": "print(1)", "bin/go!": "#!/bin/sh\n", "lib/a.py": "a"})
	for link, target := range map[string]string{"lib/b.py": "a.py", "top.py": "lib/../lib/a.py", "up": "./lib", "lib/back": "../train.py", "nowhere": "not/there"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "data", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	spec := basic(t)
	spec.Files = map[string]string{"/app": dir, "/etc/": filepath.Join(dir, "train.py")}
	b := build(t, spec, nil)
	got := unpack(t, b.Image)
	trainer, err := os.ReadFile(spec.Trainer)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]found{
		"usr/local/bin/stoke-trainer": {tar.TypeReg, 0o755, "", string(trainer)}, "tmp": {tar.TypeDir, 0o1777, "", ""},
		"app/train.py": {tar.TypeReg, 0o644, "", "print(1)"}, "app/bin/go": {tar.TypeReg, 0o755, "", "#!/bin/sh\n"}, "app/lib/a.py": {tar.TypeReg, 0o644, "", "a"},
		"app/lib/b.py": {tar.TypeSymlink, 0o777, "a.py", ""}, "app/top.py": {tar.TypeSymlink, 0o777, "lib/../lib/a.py", ""}, "app/up": {tar.TypeSymlink, 0o777, "./lib", ""},
		"app/lib/back": {tar.TypeSymlink, 0o777, "../train.py", ""}, "app/nowhere": {tar.TypeSymlink, 0o777, "not/there", ""},
		"app/data/empty": {tar.TypeDir, 0o755, "", ""}, "etc/train.py": {tar.TypeReg, 0o644, "", "print(1)"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(found{})); diff != "" {
		t.Error(diff)
	}
	sum := sha256.Sum256([]byte("#!/bin/sh\n"))
	if b.Contents["/app/bin/go"] != "sha256:"+hex.EncodeToString(sum[:])+" executable" || b.Contents["/app/lib/b.py"] != "link to a.py" || len(b.Contents) != 11 {
		t.Errorf("contents are %v", b.Contents)
	}
	config, err := b.Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if config.OS != "linux" || config.Architecture != "amd64" || c.User != DefaultUser || !cmp.Equal(c.Entrypoint, []string{TrainerPath}) || len(c.Cmd) > 0 ||
		!cmp.Equal(c.Env, []string{"PATH=" + searchPath}) || c.Labels[LabelVersion] != "1.2.3" || len(c.ExposedPorts) > 0 || !config.Created.Equal(epoch) {
		t.Errorf("configuration is %+v", config)
	}
}

// foundationOf is a base of one layer, as Docker would have made it.
func foundationOf(t *testing.T, docker bool) v1.Image {
	t.Helper()
	layer := static.NewLayer([]byte("a base's layer"), types.DockerLayer)
	base, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	if !docker {
		base = mutate.ConfigMediaType(mutate.MediaType(base, types.OCIManifestSchema1), types.OCIConfigJSON)
	}
	base, err = mutate.ConfigFile(base, &v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{{Algorithm: "sha256", Hex: strings.Repeat("a", 64)}}},
		Config: v1.Config{Env: []string{"PATH=/opt/bin", "LANG=C"}, Entrypoint: []string{"/bin/python"}, Cmd: []string{"-i"}, User: "root", WorkingDir: "/work", ExposedPorts: map[string]struct{}{"80/tcp": {}}, Labels: map[string]string{"of": "base"}}})
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func TestImageOnABase(t *testing.T) {
	for _, docker := range []bool{true, false} {
		base := foundationOf(t, docker)
		spec := basic(t)
		spec.Environment, spec.Labels = map[string]string{"LANG": "de", "X": "y=z"}, map[string]string{"mine": "too"}
		b := build(t, spec, base)
		m, err := b.Image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		kind, ours := types.OCIManifestSchema1, types.OCILayer
		if docker {
			kind, ours = types.DockerManifestSchema2, types.DockerLayer
		}
		if m.MediaType != kind || len(m.Layers) != 2 || m.Layers[1].MediaType != ours {
			t.Errorf("manifest is %+v", m)
		}
		config, err := b.Image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		if !cmp.Equal(c.Env, []string{"PATH=/opt/bin", "LANG=de", "X=y=z"}) || !cmp.Equal(c.Entrypoint, []string{TrainerPath}) || len(c.Cmd) > 0 ||
			c.User != DefaultUser || len(c.ExposedPorts) > 0 || c.WorkingDir != "/work" || c.Labels["of"] != "base" || c.Labels["mine"] != "too" {
			t.Errorf("configuration is %+v", c)
		}
	}
}

func TestWhatCannotBeInAnImageIsRefused(t *testing.T) {
	outside := filepath.Join(put(t, t.TempDir(), map[string]string{"secret": "s"}), "secret")
	make := func(change func(dir string)) map[string]string {
		dir := put(t, t.TempDir(), map[string]string{"a": "a", "sub/b": "b"})
		change(dir)
		return map[string]string{"/app": dir}
	}
	link := func(name, target string) map[string]string {
		return make(func(dir string) {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		})
	}
	// Inside by its letters, outside by what the links mean.
	crooked := link("sub/m", "s/../../b")
	if err := os.Symlink("../sub", filepath.Join(crooked["/app"], "sub", "s")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name          string
		files         map[string]string
		summary, part string
	}{
		{"absolute link", link("l", outside), "Link leads out of its folder", outside},
		{"absolute link inside", link("l", "/etc/passwd"), "Link leads out of its folder", "/etc/passwd"},
		{"link up", link("sub/l", "../../x"), "Link leads out of its folder", "../../x"},
		{"link through links", crooked, "Link leads out of its folder", "s/../../b"},
		{"dangling crooked link", link("l", "gone/../../x/../app/a"), "Link leads out of its folder", "gone"},
		{"fifo", make(func(dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
		}), "File cannot be in an image", "neither a file nor a folder nor a link"},
		{"device", map[string]string{"/app": "/dev/null"}, "File cannot be in an image", "neither"},
		{"whiteout", make(func(dir string) { put(t, dir, map[string]string{".wh.x": ""}) }), "File cannot be in an image", ".wh."},
		{"missing", map[string]string{"/app": outside + "x"}, "There is no such file", outside + "x"},
		{"relative", map[string]string{"app": outside}, "Path in the image is malformed", "slash"},
		{"up", map[string]string{"/app/../x": outside}, "Path in the image is malformed", ".."},
		{"trainer", map[string]string{TrainerPath: outside}, "Two files at one path", TrainerPath},
		{"file as a folder", map[string]string{"/a": outside, "/a/b": outside}, "Two files at one path", "/a"},
		{"nothing", map[string]string{"/a": ""}, "Path of a file is malformed", "/a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := basic(t)
			spec.Files = test.files
			refused(t, spec, "files", test.summary, test.part)
		})
	}
}

func TestSocketsAndUnreadableFilesAreRefused(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	spec := basic(t)
	spec.Files = map[string]string{"/app": dir}
	refused(t, spec, "files", "File cannot be in an image", "socket")

	closed := put(t, t.TempDir(), map[string]string{"a": "a"})
	if err := os.Chmod(filepath.Join(closed, "a"), 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		return // may read everything
	}
	spec.Files = map[string]string{"/app": closed}
	refused(t, spec, "files", "File cannot be read", "permission denied")
}

func TestTrainerThatDoesNotFitIsRefused(t *testing.T) {
	const summary = "The trainer does not fit the image"
	spec := basic(t)
	spec.Platform.Architecture = "arm64"
	refused(t, spec, "trainer", summary, "EM_X86_64")
	spec.Trainer = program(t, elf.EM_AARCH64, "")
	build(t, spec, nil)
	spec.Trainer = filepath.Join(put(t, t.TempDir(), map[string]string{"x!": "#!/bin/sh\n"}), "x")
	refused(t, spec, "trainer", summary, "not a program for Linux")
	spec.Trainer += "y"
	refused(t, spec, "trainer", "There is no such file", "y")
	if shell, err := filepath.EvalSymlinks("/bin/sh"); err == nil && runtime.GOOS == "linux" {
		spec.Platform.Architecture, spec.Trainer = runtime.GOARCH, shell
		refused(t, spec, "trainer", summary, "linked with libraries")
	}
}

func TestSpecMistakes(t *testing.T) {
	for _, test := range []struct {
		change            func(*Spec)
		argument, summary string
	}{
		{func(s *Spec) { s.User = "nobody" }, "user", "User is no number"},
		{func(s *Spec) { s.WorkingDir = "app" }, "working_dir", "Path in the image is malformed"},
		{func(s *Spec) { s.Environment = map[string]string{"A=B": ""} }, "environment", "Variable cannot be set"},
		{func(s *Spec) { s.Labels = map[string]string{LabelVersion: "9"} }, "labels", "Label cannot be used"},
		{func(s *Spec) { s.Python = "3.12" }, "python", "Argument python has no use"},
		{func(s *Spec) { s.SitePackages = "/x" }, "site_packages", "Argument site_packages has no use"},
		{func(s *Spec) { s.Wheels = "w" }, "python", "Version of Python is missing"},
		{func(s *Spec) { s.Wheels, s.Python = "/nonexistent/w", "3.12" }, "wheels", "There is no such file"},
		{func(s *Spec) { s.Entrypoint = []string{} }, "entrypoint", "Entrypoint is empty"},
	} {
		spec := basic(t)
		test.change(&spec)
		refused(t, spec, test.argument, test.summary, "")
	}
	if _, err := ParsePlatform("windows/amd64"); err == nil {
		t.Error("windows passes")
	}
}

// TestFileThatChangesMeanwhileIsNoticed: neither a layer of mixed content nor one
// of another digest leaves.
func TestFileThatChangesMeanwhileIsNoticed(t *testing.T) {
	for _, now := range []string{"short", "quite a bit longer than before", "sized so"} {
		dir := put(t, t.TempDir(), map[string]string{"a": "sized as"})
		spec := basic(t)
		spec.Files = map[string]string{"/app": dir}
		b := build(t, spec, nil)
		layers, err := b.Image.Layers()
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, map[string]string{"a": now})
		r, err := layers[len(layers)-1].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err == nil || !strings.Contains(err.Error(), "being written to") {
			t.Errorf("%q: %v", now, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHugeFilesAreStreamed builds with a sparse file far larger than what may be
// in memory meanwhile.
func TestHugeFilesAreStreamed(t *testing.T) {
	const size, most = 256 << 20, 48 << 20
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	spec := basic(t)
	spec.Files = map[string]string{"/data": dir}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b := build(t, spec, nil)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("building from %d MiB takes %d MiB of memory", size>>20, used>>20)
	}
	if b.Size > 4<<20 {
		t.Errorf("zeros take %d bytes", b.Size)
	}
}

// TestEntrypointStartsTheTrainer unpacks an image with the real trainer and
// starts what it would start.
func TestEntrypointStartsTheTrainer(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("builds the trainer, for Linux")
	}
	binary := programtest.Path(t, "stoke-trainer")
	version, err := exec.Command(binary, "version").Output()
	if err != nil || len(version) == 0 {
		t.Fatalf("the trainer says %q, %v", version, err)
	}
	spec := basic(t)
	spec.Trainer, spec.Platform.Architecture = binary, runtime.GOARCH
	b := build(t, spec, nil)
	config, err := b.Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	start := config.Config.Entrypoint[0]
	there := unpack(t, b.Image)[strings.TrimPrefix(start, "/")]
	to := filepath.Join(t.TempDir(), "entrypoint")
	if err := os.WriteFile(to, []byte(there.content), os.FileMode(there.mode)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(to, "version").CombinedOutput()
	if err != nil || !bytes.Equal(out, version) {
		t.Errorf("says %q, %v; the trainer itself %q", out, err, version)
	}
}
