package nvidia

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCUDAToolkit(t *testing.T) {
	for _, c := range []struct {
		version, os, release, arch string
		url, name                  string
	}{
		{"12.9", "ubuntu", "24.04", "amd64", "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/", "cuda-toolkit-12-9"},
		{"13.0", "debian", "12", "arm64", "https://developer.download.nvidia.com/compute/cuda/repos/debian12/sbsa/", "cuda-toolkit-13-0"},
		{"12", "debian", "12", "amd64", "", ""},
		{"12.9; reboot", "debian", "12", "amd64", "", ""},
		{"12.9", "plan9", "4", "amd64", "", ""},
	} {
		source, name, err := CUDAToolkit(c.version, State{OS: c.os, Release: c.release, Arch: c.arch})
		if source.URL != c.url || name != c.name || (err == nil) != (c.name != "") {
			t.Errorf("%s on %s %s: %q %q %v", c.version, c.os, c.release, source.URL, name, err)
		}
		if err == nil && (source.Fingerprint == "" || source.KeyURL == "") {
			t.Errorf("%s: nothing says by which key %s is signed", c.version, source.URL)
		}
	}
}

// The toolkit's repository is the driver's, under one name: apt refuses one that is
// declared twice with two keyrings.
func TestCUDAToolkitBesideTheDriver(t *testing.T) {
	want := spec("580", fromNVIDIA)
	have := debian("12", a100).sees("linux-headers-6.1.0-40-amd64").state(t, want)
	w, err := want.Want(have)
	if err != nil {
		t.Fatal(err)
	}
	source, _, err := CUDAToolkit("12.9", have)
	if err != nil || !slices.ContainsFunc(w.Sources, func(s Source) bool { return cmp.Equal(s, source) }) {
		t.Errorf("the toolkit is from %+v (%v), and the driver from %+v", source, err, w.Sources)
	}
}
