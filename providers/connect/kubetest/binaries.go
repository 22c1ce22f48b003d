package kubetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// errMissing says that the programs are not built.
var errMissing = errors.New("no Kubernetes here: run make e2e-kube, which builds it (10 to 25 minutes the first time)")

// binaries is the folder that has the programs of Kubernetes: the install script
// knows where, which depends on what they are built from.
func binaries() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		script := filepath.Join(dir, "testdata", "kubernetes", "install")
		if _, err := os.Stat(script); err == nil {
			return installed(script)
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("testdata/kubernetes is not in a folder above this test: run it in stoke's repository")
		}
		dir = filepath.Dir(dir)
	}
}

func installed(script string) (string, error) {
	var complaint strings.Builder
	where := exec.Command(script, "where")
	where.Stderr = &complaint
	out, err := where.Output()
	if err != nil {
		return "", fmt.Errorf("%s where: %w: %s", script, err, complaint.String())
	}
	dir := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(dir, "hyper")); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: there is no %s", errMissing, dir)
	} else if err != nil {
		return "", err
	}
	return dir, nil
}

// required tells whether a test that finds no Kubernetes fails.
func required() bool { return os.Getenv("STOKE_KUBE") == "required" }

// refuse ends a test that has no cluster.
func refuse(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errMissing) && !required() {
		t.Skip(err)
	}
	t.Fatal(err)
}
