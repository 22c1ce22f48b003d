//go:build e2e && linux

package lab

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// ImageArchive writes an OCI layout with one image, which holds one file with
// this content, under each reference, and returns the archive's path. The image
// runs nothing.
func ImageArchive(t testing.TB, content string, refs ...string) string {
	t.Helper()
	type object = map[string]any
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	put := func(name string, b []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		w.Write(b)
	}
	blob := func(mediaType string, v any) object {
		b, ok := v.([]byte)
		if !ok {
			b, _ = json.Marshal(v)
		}
		sum := sha256.Sum256(b)
		put("blobs/sha256/"+hex.EncodeToString(sum[:]), b)
		return object{"mediaType": mediaType, "digest": "sha256:" + hex.EncodeToString(sum[:]), "size": len(b)}
	}
	var layer bytes.Buffer
	l := tar.NewWriter(&layer)
	l.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
	io.WriteString(l, content)
	l.Close()
	sum := sha256.Sum256(layer.Bytes())
	put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	manifest := blob("application/vnd.oci.image.manifest.v1+json", object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": blob("application/vnd.oci.image.config.v1+json", object{"architecture": runtime.GOARCH, "os": "linux",
			"rootfs": object{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}}}),
		"layers": []object{blob("application/vnd.oci.image.layer.v1.tar", layer.Bytes())},
	})
	var manifests []object
	for _, ref := range refs {
		m := object{"annotations": object{"io.containerd.image.name": ref}}
		for k, v := range manifest {
			m[k] = v
		}
		manifests = append(manifests, m)
	}
	index, _ := json.Marshal(object{"schemaVersion": 2, "manifests": manifests})
	put("index.json", index)
	w.Close()
	name := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
