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

// errMissing says that programs are not built.
var errMissing = errors.New("no Kubernetes here")

// errNoKubernetes: the programs of the control plane are missing.
var errNoKubernetes = fmt.Errorf("%w: run make e2e-kube, which builds it (10 to 25 minutes the first time)", errMissing)

// binaries is the folder that has the programs of Kubernetes.
func binaries() (string, error) { return find("install", "hyper", errNoKubernetes) }

// Programs is the folder that has other programs for tests, one of which is
// named, and which a script in testdata/kubernetes builds. Where they are not
// built the test is skipped, or fails, as without Kubernetes; build says what
// builds them.
func Programs(t testing.TB, script, program, build string) string {
	t.Helper()
	dir, err := find(script, program, fmt.Errorf("%w: run %s, which builds %s", errMissing, build, program))
	if err != nil {
		refuse(t, err)
	}
	return dir
}

// find is the folder that has a program: the install script in testdata/kubernetes
// knows where, which depends on what it is built from.
func find(install, program string, missing error) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		script := filepath.Join(dir, "testdata", "kubernetes", install)
		if _, err := os.Stat(script); err == nil {
			return installed(script, program, missing)
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("testdata/kubernetes is not in a folder above this test: run it in stoke's repository")
		}
		dir = filepath.Dir(dir)
	}
}

func installed(script, program string, missing error) (string, error) {
	var complaint strings.Builder
	where := exec.Command(script, "where")
	where.Stderr = &complaint
	out, err := where.Output()
	if err != nil {
		return "", fmt.Errorf("%s where: %w: %s", script, err, complaint.String())
	}
	dir := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(dir, program)); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: there is no %s", missing, dir)
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
