//go:build e2e && linux

package podtest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Images that every node has.
const (
	// Demo has one static program, /demo, which does what its arguments say; see
	// testdata/kubernetes/containerd/demo. Without arguments it fails.
	Demo = "stoke.test/demo:1"

	pauseRef = "stoke.test/pause:1"
)

// Image is one that containers are made from. Pods are to have
// imagePullPolicy: Never or IfNotPresent, which is the default where there is a
// tag other than latest.
type Image struct {
	// Ref is its name in full, such as "stoke.test/mine:1".
	Ref string
	// Files are the files of the image: paths in it, and paths on this machine.
	// All are made executable; it has no other files, so that programs must be
	// linked statically.
	Files map[string]string
	// Links are symbolic links in it: their paths, and what they lead to.
	Links map[string]string
	// Command is what it runs; a pod's args are added.
	Command []string
	// Env are variables, as NAME=value.
	Env []string
}

// Load gives the node the images of an archive, as Archive makes it and as docker
// save does.
func (n *Node) Load(t testing.TB, archive string) {
	t.Helper()
	n.cluster.Wait(t, "containerd on "+n.Name+" answers", func(context.Context) (bool, error) {
		_, err := n.exec("ctr", "version")
		return err == nil, err
	})
	n.Exec(t, "ctr", "--namespace", "k8s.io", "images", "import", archive)
}

// LoadTrainer gives all nodes the image stoke.test/trainer:1, which has a program
// stoke-trainer of this machine, and the records of Digits in /data.
func (c *Cluster) LoadTrainer(t testing.TB, program string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	if out, err := exec.Command(program, "dataset", "prepare", "--origin", origin, "--to", data).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := map[string]string{"/usr/bin/stoke-trainer": program}
	entries, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files["/data/"+e.Name()] = filepath.Join(data, e.Name())
	}
	c.Load(t, Archive(t, Image{Ref: trainerRef, Files: files, Command: []string{"/usr/bin/stoke-trainer"}}))
}

type object = map[string]any

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// archive is an OCI layout (image-spec 1.1) that is being written.
type archive struct {
	t    testing.TB
	out  *tar.Writer
	have map[string]bool
	// layers are the written layers, by their content: several images may have the
	// same files.
	layers map[string][]byte
}

// Archive writes images into one archive and returns its path. It ends with the
// test.
func Archive(t testing.TB, images ...Image) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "images.tar")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	a := &archive{t: t, out: tar.NewWriter(file), have: map[string]bool{}, layers: map[string][]byte{}}
	var manifests []object
	for _, image := range images {
		m := a.image(image)
		m["annotations"] = object{"io.containerd.image.name": image.Ref}
		manifests = append(manifests, m)
	}
	a.put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	a.put("index.json", a.json(object{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests}))
	if err := errors.Join(a.out.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

func (a *archive) put(name string, content []byte) {
	a.t.Helper()
	err := a.out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = a.out.Write(content)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *archive) json(v any) []byte {
	a.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		a.t.Fatal(err)
	}
	return text
}

// blob puts content under its digest and returns its descriptor.
func (a *archive) blob(mediaType string, content []byte) object {
	a.t.Helper()
	sum := digest(content)
	if !a.have[sum] {
		a.have[sum] = true
		a.put("blobs/sha256/"+strings.TrimPrefix(sum, "sha256:"), content)
	}
	return object{"mediaType": mediaType, "digest": sum, "size": len(content)}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// image puts an image of one layer.
func (a *archive) image(image Image) object {
	a.t.Helper()
	layer := a.layer(image.Files, image.Links)
	config := a.json(object{
		"architecture": runtime.GOARCH, "os": "linux", "config": object{"Entrypoint": image.Command, "Env": image.Env},
		"rootfs": object{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	return a.blob(manifestType, a.json(object{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": a.blob(configType, config), "layers": []object{a.blob(layerType, layer)},
	}))
}

func (a *archive) layer(files, links map[string]string) []byte {
	a.t.Helper()
	what := fmt.Sprint(files, links) // maps are printed in the order of their keys
	if a.layers[what] != nil {
		return a.layers[what]
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[path])
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(path, "/"), Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg})
		}
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			a.t.Fatal(err)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(links)) {
		if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(path, "/"), Linkname: links[path], Mode: 0o777, Typeflag: tar.TypeSymlink}); err != nil {
			a.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		a.t.Fatal(err)
	}
	a.layers[what] = out.Bytes()
	return a.layers[what]
}
