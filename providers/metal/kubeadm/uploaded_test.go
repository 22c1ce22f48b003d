package kubeadm

import (
	"testing"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestUploaded: ConfigMaps are told apart by what is in them, and those that are
// missing are not there.
func TestUploaded(t *testing.T) {
	const proxy = `map	kube-proxy	{"config.conf":"a\tb\n","kubeconfig.conf":"x"}` + "\n"
	look := func(out string) map[string]string {
		t.Helper()
		all, err := Uploaded(t.Context(), answers(hosttest.Answer{Stdout: out}, nil))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	one := look("map\tkubelet-config\t{\"kubelet\":\"maxPods: 1\\n\"}\n" + proxy + "end\n")
	other := look("map\tkubelet-config\t{\"kubelet\":\"maxPods: 2\\n\"}\n" + proxy + "end\n")
	if len(one) != 2 || one[KubeletMap] == other[KubeletMap] || one[ProxyMap] != other[ProxyMap] || len(one[ProxyMap]) != 64 {
		t.Errorf("%v, %v", one, other)
	}
	if none := look("end\n"); len(none) != 0 {
		t.Errorf("%v", none)
	}
	if _, err := Uploaded(t.Context(), answers(hosttest.Answer{Stderr: "refused", Status: 1}, nil)); err == nil {
		t.Error("no answer is taken for no ConfigMaps")
	}
}
