package kubeadm

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// someToken is always the same, so that golden files are.
var someToken = Token{"abcdef", "0123456789abcdef"}

const someHash = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func smallCluster() Cluster {
	return Cluster{Version: "1.37.2", Endpoint: "192.0.2.10:6443", Pods: []string{"10.244.0.0/16"}}
}

func fullCluster() Cluster {
	return Cluster{
		Version: "v1.37.2", Name: "lab", Endpoint: "api.lab.example:7443", Advertise: "192.0.2.10", Port: 7443,
		Pods: []string{"10.64.0.0/14", "fd00:1::/48"}, Services: []string{"10.112.0.0/16", "fd00:2::/112"}, Domain: "lab.example",
		APIServer:       map[string]string{"enable-admission-plugins": "ExtendedResourceToleration", "audit-log-path": "-"},
		CertNames:       []string{"api.lab.example", "*.api.lab.example", "198.51.100.7", "2001:db8::7"},
		CertificateLife: 90 * 24 * time.Hour, CALife: 5 * 365 * 24 * time.Hour, Images: "registry.example/kubernetes",
		Kubelet: map[string]any{"failCgroupV1": false, "maxPods": 50, "evictionHard": map[string]any{"memory.available": "1Gi"}},
		Proxy:   map[string]any{"mode": "iptables", "conntrack": map[string]any{"maxPerCore": 0}},
	}
}

func fullNode() Node {
	return Node{
		Name: "gpu-1.lab.example", IP: "192.0.2.11", CRISocket: "unix:///run/other.sock",
		Labels:  map[string]string{"example.com/rack": "7", "topology.kubernetes.io/zone": "a", "node.kubernetes.io/pool": "gpu"},
		Taints:  []Taint{{"nvidia.com/gpu", "", "NoSchedule"}, {"example.com/only", "training", "NoExecute"}},
		MaxPods: 30, KubeletArgs: map[string]string{"v": "3"}, IgnorePreflight: []string{"SystemVerification", "Port-7443"}, PullImages: "Never",
	}
}

// rendered are the configurations that golden files have.
func rendered(t *testing.T) map[string][]byte {
	t.Helper()
	head := Node{Name: "head", IP: "192.0.2.10"}
	open := head
	open.Schedulable = true
	join := Join{Endpoint: "192.0.2.10:6443", CAHash: someHash, Token: someToken}
	all := map[string][]byte{}
	for name, render := range map[string]func() ([]byte, error){
		"init":    func() ([]byte, error) { return smallCluster().Init(head, someToken) },
		"open":    func() ([]byte, error) { return smallCluster().Init(open, someToken) },
		"full":    func() ([]byte, error) { return fullCluster().Init(fullNode(), someToken) },
		"cluster": func() ([]byte, error) { return fullCluster().Configuration() },
		"join":    func() ([]byte, error) { return join.Configuration(fullNode()) },
	} {
		text, err := render()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = text
	}
	return all
}

func TestConfigurations(t *testing.T) {
	for name, got := range rendered(t) {
		file := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != string(got) {
			t.Errorf("%s is not as rendered now:\n%s", file, got)
		}
	}
}

// TestKubeadmTakesThem has the real kubeadm read all that is rendered, and refuse
// what it does not know. STOKE_KUBEADMS, a list of paths, has kubeadm of further
// releases (make kubeadm-validate).
func TestKubeadmTakesThem(t *testing.T) {
	programs := []string{filepath.Join(kubetest.Programs(t, "install", "hyper", "make e2e-kube"), "kubeadm")}
	for _, program := range append(programs, filepath.SplitList(os.Getenv("STOKE_KUBEADMS"))...) {
		out, err := exec.Command(program, "version", "-o", "short").Output()
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		t.Run(strings.TrimSpace(string(out)), func(t *testing.T) { takes(t, program, strings.TrimPrefix(t.Name(), "TestKubeadmTakesThem/v")) })
	}
}

func takes(t *testing.T, kubeadm, version string) {
	validate := func(config []byte) (string, error) {
		cmd := exec.Command(kubeadm, "config", "validate", "--config", "/dev/stdin")
		cmd.Stdin = bytes.NewReader(bytes.ReplaceAll(config, []byte("v1.37.2"), []byte("v"+version)))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for name, config := range rendered(t) {
		if out, err := validate(config); err != nil {
			t.Errorf("kubeadm does not take %s: %v\n%s", name, err, out)
		} else if strings.Contains(out, "unknown field") || strings.Contains(out, "deprecated") {
			t.Errorf("kubeadm says of %s:\n%s", name, out)
		}
		wrong := bytes.Replace(config, []byte("apiVersion: kubeadm.k8s.io/v1beta4\n"), []byte("apiVersion: kubeadm.k8s.io/v1beta4\nnobodyKnows: this\n"), 1)
		if out, err := validate(wrong); err == nil {
			t.Errorf("kubeadm takes a field of %s that there is not:\n%s", name, out)
		}
	}
}

func TestJoinsPinTheAuthority(t *testing.T) {
	j := Join{Endpoint: "192.0.2.10:6443", Token: someToken}
	for _, hash := range []string{"", "sha256:", "sha256:zz", someHash[:70]} {
		if j.CAHash = hash; len(j.Check()) != 1 {
			t.Errorf("%d problems with the hash %q", len(j.Check()), hash)
		}
		if text, err := j.Configuration(fullNode()); err == nil {
			t.Errorf("a join that trusts anybody is rendered:\n%s", text)
		}
	}
}

// TestLaidOver: what is declared wins, and what is beside it in a map stays.
func TestLaidOver(t *testing.T) {
	c := fullCluster()
	c.Kubelet = map[string]any{"cgroupDriver": "cgroupfs"}
	if got := c.KubeletConfiguration()["cgroupDriver"]; got != "cgroupfs" {
		t.Errorf("the cgroup driver is %v", got)
	}
	if got := c.KubeletConfiguration()["clusterDomain"]; got != "lab.example" {
		t.Errorf("the domain is %v", got)
	}
	merged := mergeOver(map[string]any{"a": map[string]any{"x": 1, "y": 2}, "b": 1}, map[string]any{"a": map[string]any{"y": 3}, "b": map[string]any{"z": 1}})
	if got := fmt.Sprint(merged); got != "map[a:map[x:1 y:3] b:map[z:1]]" {
		t.Errorf("merged: %s", got)
	}
}

func TestHash(t *testing.T) {
	hash := func(text string) string {
		var document map[string]any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		h, err := Hash(document)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	one, other, changed := hash("a: 1\nb: {c: x, d: y}\n"), hash("b:\n  d: y\n  c: x\na: 1\n"), hash("a: 1\nb: {c: x, d: z}\n")
	if one != other || one == changed || len(one) != 64 {
		t.Errorf("hashes %s, %s of the same and %s of another", one, other, changed)
	}
}

func TestChecks(t *testing.T) {
	if got := append(fullCluster().Check(), append(fullNode().Check(), smallCluster().Check()...)...); len(got) != 0 {
		t.Fatalf("problems where there are none: %v", got)
	}
	clusters := map[string]func(*Cluster){
		"Version 1.34.1 cannot be installed":            func(c *Cluster) { c.Version = "1.34.1" },
		"Version 1.36 cannot be installed":              func(c *Cluster) { c.Version = "1.36" },
		"Endpoint 192.0.2.10 is not HOST:PORT":          func(c *Cluster) { c.Endpoint = "192.0.2.10" },
		"Endpoint a_b:6443 cannot be":                   func(c *Cluster) { c.Endpoint = "a_b:6443" },
		"Endpoint h:70000 is not HOST:PORT":             func(c *Cluster) { c.Endpoint = "h:70000" },
		"Advertise 127.0.0.1 is not an address":         func(c *Cluster) { c.Advertise = "127.0.0.1" },
		"Port -1 is not a port":                         func(c *Cluster) { c.Port = -1 },
		"Pods  is not a network":                        func(c *Cluster) { c.Pods = nil },
		"Pods 10.0.0.1/16 is not a network":             func(c *Cluster) { c.Pods = []string{"10.0.0.1/16"} },
		"Pods 10.0.0.0/26 has not the size":             func(c *Cluster) { c.Pods = []string{"10.0.0.0/26"} },
		"Pods 10.3.0.0/16 is a second network":          func(c *Cluster) { c.Pods = []string{"10.2.0.0/16", "10.3.0.0/16"} },
		"Services 10.0.0.0/8 has not the size":          func(c *Cluster) { c.Pods, c.Services = []string{"192.168.0.0/16"}, []string{"10.0.0.0/8"} },
		"overlaps":                                      func(c *Cluster) { c.Pods = []string{"10.96.0.0/16"} },
		"Domain Lab cannot be":                          func(c *Cluster) { c.Domain = "Lab" },
		`APIServer["--v"] 2 is of no argument`:          func(c *Cluster) { c.APIServer = map[string]string{"--v": "2"} },
		`APIServer["secure-port"] 1 cannot be declared`: func(c *Cluster) { c.APIServer = map[string]string{"secure-port": "1"} },
		"CertNames a b cannot be":                       func(c *Cluster) { c.CertNames = []string{"a b"} },
		"CertificateLife 1m0s is not a life":            func(c *Cluster) { c.CertificateLife = time.Minute },
		"CertificateLife 8760h0m0s is longer":           func(c *Cluster) { c.CALife = time.Hour },
		`Kubelet["kind"] X cannot be declared`:          func(c *Cluster) { c.Kubelet = map[string]any{"kind": "X"} },
		`Proxy["clusterCIDR"] x cannot be declared`:     func(c *Cluster) { c.Proxy = map[string]any{"clusterCIDR": "x"} },
	}
	for want, spoil := range clusters {
		c := smallCluster()
		spoil(&c)
		one(t, want, c.Check())
		if text, err := c.Init(Node{Name: "n", IP: "192.0.2.1"}, someToken); err == nil {
			t.Errorf("%s: is rendered:\n%s", want, text)
		}
	}
	nodes := map[string]func(*Node){
		"Name A cannot be":                                               func(n *Node) { n.Name = "A" },
		"IP 0.0.0.0 is not an address":                                   func(n *Node) { n.IP = "0.0.0.0" },
		"CRISocket /run/x is not a socket":                               func(n *Node) { n.CRISocket = "/run/x" },
		`Labels["a b"] 1 cannot be`:                                      func(n *Node) { n.Labels = map[string]string{"a b": "1"} },
		`Labels["node-role.kubernetes.io/gpu"]  cannot be set by a node`: func(n *Node) { n.Labels = map[string]string{"node-role.kubernetes.io/gpu": ""} },
		"Taints a:Never has no effect":                                   func(n *Node) { n.Taints = []Taint{{Key: "a", Effect: "Never"}} },
		"MaxPods -1 is no number":                                        func(n *Node) { n.MaxPods = -1 },
		`KubeletArgs["node-ip"] x cannot be declared`:                    func(n *Node) { n.KubeletArgs = map[string]string{"node-ip": "x"} },
		"IgnorePreflight All would hide":                                 func(n *Node) { n.IgnorePreflight = []string{"All"} },
		"IgnorePreflight a b is not a check":                             func(n *Node) { n.IgnorePreflight = []string{"a b"} },
		"PullImages maybe is not a policy":                               func(n *Node) { n.PullImages = "maybe" },
	}
	for want, spoil := range nodes {
		n := Node{Name: "n", IP: "192.0.2.1"}
		spoil(&n)
		one(t, want, n.Check())
	}
}

// one fails unless there is one problem, which begins so or has that in it.
func one(t *testing.T, want string, got []Problem) {
	t.Helper()
	said := func(p Problem) string { return p.Field + " " + p.Value + " " + p.Why }
	if len(got) != 1 || !strings.Contains(said(got[0]), want) {
		t.Errorf("want %q: %d problems: %v", want, len(got), got)
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]string{"1.36.3": "1.36.3", "v1.37.0": "1.37.0", "1.35.10": "1.35.10", "1.38.0": "", "1.36": "", "1.36.03": "", "2.36.1": "", "1.36.1-rc.0": ""} {
		if got, err := ParseRelease(text); (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("release %s: %s, %v", text, got, err)
		}
	}
	var good []string
	for _, text := range []string{"1.34", "1.35", "v1.36", "1.37", "1.38", "1.36.1", "36", ""} {
		if m, err := ParseMinor(text); err == nil {
			good = append(good, m.String())
		}
	}
	if want := []string{"1.35", "1.36", "1.37"}; !slices.Equal(good, want) {
		t.Errorf("minors %v, want %v", good, want)
	}
}

// TestSkew: a kubelet is of the API server's minor, or of one of the three before it.
func TestSkew(t *testing.T) {
	for _, tt := range []struct{ kubelet, server, want string }{
		{"1.36.3", "v1.36.3", ""}, {"1.36.9", "v1.36.3-gke.100", ""}, {"1.35.0", "v1.36.3", ""}, {"1.35.0", "v1.38.0", ""},
		{"1.37.2", "v1.36.3", "newer minor"}, {"v1.37.0", "v1.36.3+k3s1", "newer minor"}, {"1.35.4", "v1.39.0", "3 minors older"},
		{"1.37.2", "unknown", ""}, {"", "v1.36.3", ""},
	} {
		if got := Skew(tt.kubelet, tt.server); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("Skew(%q, %q) = %q", tt.kubelet, tt.server, got)
		}
	}
}
