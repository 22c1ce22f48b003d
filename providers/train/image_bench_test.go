package train

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/train/image/imagetest"
)

const imageType = "train_image"

// smallTrainer builds a program that is called like the trainer, is of the
// version "test" and says so: the real one is ten times as large, and package
// image tests with it.
func smallTrainer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/small\n", "cmd/stoke-trainer/main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"test\\n\") }\n",
	} {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, trainerName)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/stoke-trainer")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// imageBench is a bench with a registry and a trainer for images.
type imageBench struct {
	*bench
	reg     *imagetest.Registry
	trainer string
	files   string // a folder of the user's
}

func newImageBench(t *testing.T) *imageBench {
	t.Helper()
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("builds a trainer, for Linux")
	}
	b := &imageBench{bench: newBench(t), reg: imagetest.New(t), trainer: smallTrainer(t), files: t.TempDir()}
	imagetest.LogIn(t, b.reg.Host, "ada", "secret")
	b.write("train.py", "print(1)")
	b.write("lib/a.py", "a")
	return b
}

func (b *imageBench) write(name, content string) {
	b.t.Helper()
	to := filepath.Join(b.files, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// config is a configuration that pushes; a null value takes an argument out.
func (b *imageBench) config(change values) cty.Value {
	all := values{
		"platform": cty.StringVal("linux/" + runtime.GOARCH), "trainer": cty.StringVal(b.trainer), "user": cty.StringVal("65532:65532"),
		"files": cty.MapVal(values{"/app": cty.StringVal(b.files)}), "push": cty.StringVal(b.tag()),
	}
	for k, v := range change {
		all[k] = v
	}
	return object(b.t, b.schema(imageType).ImpliedType(), all)
}

func (b *imageBench) tag() string { return b.reg.Host + "/team/trainer:1" }

func (b *imageBench) saysNote(part string) bool {
	for _, n := range b.notes {
		if contains(n.Text, part) {
			return true
		}
	}
	return false
}

// tarballs is a configuration that writes a tarball, and its path.
func (b *imageBench) tarballs() (string, values) {
	file := filepath.Join(b.t.TempDir(), "Trainer_1.tar")
	return file, values{"push": cty.NullVal(cty.String), "tarball": cty.StringVal(file)}
}

// pulled fetches an image and checks all of it.
func (b *imageBench) pulled(reference string) v1.Image {
	b.t.Helper()
	ref, err := name.ParseReference(reference)
	if err != nil {
		b.t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		b.t.Error(err)
	}
	return img
}
