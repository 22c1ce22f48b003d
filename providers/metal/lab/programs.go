//go:build e2e && linux

package lab

import (
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

var sharedLibrary = pattern.New(`/\S+\.so\S*`)

// Programs are programs of the machines' distribution for images that have nothing
// else: the files that they need, by the paths that they have there and in an
// image, with where they are on this machine. Paths may be patterns.
func (l *Lab) Programs(paths ...string) map[string]string {
	l.t.Helper()
	files := map[string]string{}
	for _, path := range paths {
		found, err := filepath.Glob(filepath.Join(l.root, path))
		if err != nil || len(found) == 0 {
			l.t.Fatalf("the machines' file system has no %s (%v)", path, err)
		}
		for _, file := range found {
			files[strings.TrimPrefix(file, l.root)] = file
		}
		out, err := exec.Command("chroot", l.root, "ldd", strings.TrimPrefix(found[0], l.root)).Output()
		if err != nil {
			l.t.Fatalf("look for the libraries of %s: %v", path, err)
		}
		for _, library := range sharedLibrary.FindAllString(string(out), -1) {
			files[library] = filepath.Join(l.root, library)
		}
	}
	return files
}
