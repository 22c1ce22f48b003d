package library

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
)

//go:embed cluster-training gke-benchmark gke-elastic headlamp local-path local-training metal-gpu-cluster metrics-server nfs nfs-share nvidia-device-plugin
var modules embed.FS

// Names lists the modules, in lexical order.
func Names() []string {
	entries, err := modules.ReadDir(".")
	if err != nil {
		panic(err) // it is part of the program
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Files is the folder of a module; the error is fs.ErrNotExist where there is
// none of that name.
func Files(name string) (fs.FS, error) {
	info, err := fs.Stat(modules, name)
	if err != nil || !info.IsDir() || name == "." {
		return nil, fmt.Errorf("find module %q in the library: %w", name, fs.ErrNotExist)
	}
	return fs.Sub(modules, name)
}

// Version is different for every content that a module has had. It is a
// semantic version, as manifests want one; "" where there is no such module.
func Version(name string) string {
	files, err := Files(name)
	if err != nil {
		return ""
	}
	h := sha256.New()
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		fmt.Fprintf(h, "%s %d\n", path, len(text))
		h.Write(text)
		return err
	})
	if err != nil {
		return ""
	}
	return "1.0.0+" + hex.EncodeToString(h.Sum(nil)[:6])
}
