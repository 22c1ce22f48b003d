package metal

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

const (
	boxSources = "/etc/apt/sources.list.d/stoke-kubernetes.sources"
	boxKey     = "packages/testdata/key-ed25519.asc"
)

// offered are the versions of the repository of a box. The kubelet needs kubernetes-cni.
var offered = map[string]string{"kubeadm": "1.36.3-1.1", "kubelet": "1.36.3-1.1", "kubectl": "1.36.3-1.1", "cri-tools": "1.36.0-1.1", "kubernetes-cni": "1.8.0-1.1"}

// apt carries out commands of apt and dpkg.
func (b *box) apt(what string, args []string, _ []byte) (hosttest.Answer, bool) {
	words := strings.Fields(what)
	switch {
	case what == "observe packages":
		return ok(b.installed(strings.Fields(args[0]), args[1:]))
	case what == "wait for apt", what == "look at configuration files of packages":
		return ok("end\n")
	case what == "fetch a key":
		key, err := os.ReadFile(boxKey)
		if err != nil {
			b.t.Error(err)
		}
		return ok(string(key))
	case what == "fetch lists of packages":
		b.lists = b.has(boxSources)
		return ok()
	case what == "remove lists of packages":
		b.lists = false
		return ok()
	case what == "read what repositories offer":
		before := b.lists
		b.lists = b.has(boxSources)
		out := b.policy(strings.Fields(args[0]))
		b.lists = before
		return ok(out, "status\t0\nend\n")
	case what == "simulate apt-get":
		out, status := b.install(args[slices.Index(args, "apt-get"):], true)
		return hosttest.Answer{Stdout: out, Status: status}, true
	case what == "run apt-get":
		at := slices.IndexFunc(args, func(a string) bool { return a == "apt-get" || a == "dpkg" })
		if args[at] == "dpkg" {
			for _, name := range args[at+2:] {
				b.remove(name)
			}
			return ok()
		}
		out, status := b.install(args[at:], false)
		return hosttest.Answer{Stdout: out, Status: status}, true
	case len(words) > 3 && words[2] == "apt-mark":
		for _, name := range words[4:] {
			switch words[3] {
			case "hold", "unhold":
				b.held[name] = words[3] == "hold"
			default:
				b.auto[name] = words[3] == "auto"
			}
		}
		return ok()
	case strings.HasPrefix(what, "rm -rf -- /var/cache/"):
		return ok()
	}
	return hosttest.Answer{}, false
}

func (b *box) remove(name string) {
	delete(b.packages, name)
	delete(b.held, name)
	delete(b.auto, name)
	if name == "kubelet" {
		b.enabled, b.active = false, false
	}
}

// install carries out, or simulates, NAME=VERSION and NAME- of an apt-get install.
func (b *box) install(args []string, simulated bool) (string, int) {
	var out strings.Builder
	come := func(name, version string) {
		if is := b.packages[name]; is == version {
			return
		} else if is != "" {
			fmt.Fprintf(&out, "Inst %s [%s] (%s Kubernetes [amd64])\n", name, is, version)
		} else {
			fmt.Fprintf(&out, "Inst %s (%s Kubernetes [amd64])\n", name, version)
		}
		if !simulated {
			b.packages[name] = version
		}
	}
	leave := func(name string) {
		if is := b.packages[name]; is != "" {
			fmt.Fprintf(&out, "Remv %s [%s]\n", name, is)
			if !simulated {
				b.remove(name)
			}
		}
	}
	for _, arg := range args {
		name, version, found := strings.Cut(arg, "=")
		switch {
		case strings.HasPrefix(arg, "-"), strings.Contains(arg, "::"), strings.HasPrefix(arg, "Dir"), strings.HasPrefix(arg, "DPkg"), strings.HasPrefix(arg, "Dpkg"):
		case found && (!b.lists || offered[name] != version) && b.packages[name] != version:
			return fmt.Sprintf("E: Version '%s' for '%s' was not found\n", version, name), 100
		case found:
			if name == "kubelet" && b.packages["kubernetes-cni"] == "" {
				come("kubernetes-cni", offered["kubernetes-cni"])
				if !simulated {
					b.auto["kubernetes-cni"] = true
				}
			}
			come(name, version)
		case strings.HasSuffix(arg, "-"):
			leave(strings.TrimSuffix(arg, "-"))
		}
	}
	if slices.Contains(args, "--auto-remove") && slices.Contains(args, "kubelet-") {
		leave("kubernetes-cni")
	}
	return out.String(), 0
}

// policy returns the output of apt-cache policy.
func (b *box) policy(names []string) string {
	var out strings.Builder
	for _, name := range names {
		version, known := offered[name]
		is := b.packages[name]
		if !known || !b.lists && is == "" {
			continue
		}
		installed, mark := "(none)", "   "
		if is != "" {
			installed, mark = is, "***"
		}
		fmt.Fprintf(&out, "policy\t%s:\npolicy\t  Installed: %s\npolicy\t  Candidate: %s\npolicy\t  Version table:\npolicy\t %s %s 500\n", name, installed, version, mark, version)
		if b.lists {
			out.WriteString("policy\t        500 http://packages.example.org/k8s  Packages\n")
		}
		if is != "" {
			out.WriteString("policy\t        100 /var/lib/dpkg/status\n")
		}
	}
	return out.String()
}

// installed returns the output of the script of packages.Observe.
func (b *box) installed(names, files []string) string {
	var out strings.Builder
	out.WriteString("os\tdebian\napt\tamd64\n")
	for _, name := range slices.Sorted(maps.Keys(b.packages)) {
		if !slices.Contains(names, name) {
			continue
		}
		status := "ii "
		if b.held[name] {
			status = "hi "
		}
		fmt.Fprintf(&out, "pkg\t%s\tok\t%s\tamd64\t%s\n", status, name, b.packages[name])
		if b.auto[name] {
			fmt.Fprintf(&out, "auto\t%s\tamd64\n", name)
		}
	}
	out.WriteString(b.policy(names))
	encode := func(name string) string { return base64.StdEncoding.EncodeToString(b.Files[name].Content) }
	if b.has(boxSources) {
		fmt.Fprintf(&out, "source\t%s\t%s\n", boxSources, encode(boxSources))
	}
	for _, name := range files {
		if f, there := b.Files[name]; there {
			fmt.Fprintf(&out, "file\t%s\t%o root:root\t%s\n", name, f.Mode, encode(name))
		}
	}
	for name, f := range b.Files {
		if strings.HasSuffix(name, "/record.json") && strings.Contains(string(f.Content), `"file `+boxSources+`":`) {
			fmt.Fprintf(&out, "owner\tkubernetes\t%s\n", strings.Split(name, "/")[4])
		}
	}
	return out.String() + "end\n"
}

// kubectl carries out kubectl's commands with admin.conf.
func (b *box) kubectl(what string, args []string, in []byte) (hosttest.Answer, bool) {
	c := b.cluster
	switch what {
	case "ask the API server whether it is ready":
		if !b.up() {
			return hosttest.Answer{Stdout: "The connection to the server was refused\n", Status: 1}, true
		}
		return ok("ok")
	case "look at the API server that runs":
		return ok(b.running())
	}
	do := map[string]func() (hosttest.Answer, bool){
		"ask whether the controller manager works":                               func() (hosttest.Answer, bool) { return ok() },
		"have kube-proxy read its configuration":                                 func() (hosttest.Answer, bool) { return ok() },
		"list the cluster's nodes":                                               b.members,
		"look at what kubeadm keeps in the cluster":                              b.uploaded,
		"end the token that kubeadm init was given":                              func() (hosttest.Answer, bool) { b.revoke("description", args[0]); return ok() },
		"end what allowed a node to join":                                        func() (hosttest.Answer, bool) { b.revoke("node", args[0]); return ok() },
		"end what allowed a machine to join":                                     func() (hosttest.Answer, bool) { c.Remove("secrets", "kube-system", args[0]); return ok() },
		"allow one machine to join the cluster":                                  func() (hosttest.Answer, bool) { return b.allow(args[1], in) },
		"bind the operators' group, and remove the credential beyond all rights": func() (hosttest.Answer, bool) { return b.authorize(in) },
		"let pods onto the control plane": func() (hosttest.Answer, bool) {
			c.ChangeNode(args[0], func(n *core.Node) {
				n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t core.Taint) bool { return t.Key+":"+string(t.Effect) == args[1] })
			})
			return ok()
		},
	}[what]
	switch {
	case do == nil:
		return hosttest.Answer{}, false
	case !b.up() || !b.has("/etc/kubernetes/admin.conf"):
		return bad("The connection to the server was refused")
	}
	return do()
}

func (b *box) members() (hosttest.Answer, bool) {
	var out strings.Builder
	for _, name := range b.cluster.Names("nodes") {
		n := b.cluster.Node(name)
		var keys []string
		for _, t := range n.Spec.Taints {
			keys = append(keys, t.Key)
		}
		fmt.Fprintf(&out, "node\t%s\t%s\t%s\n", name, n.Status.Conditions[0].Status, strings.Join(keys, " "))
	}
	return ok(out.String(), "end\n")
}

func (b *box) uploaded() (hosttest.Answer, bool) {
	var out strings.Builder
	for _, name := range []string{"kubeadm-config", kubeadm.KubeletMap, kubeadm.ProxyMap} {
		if m := b.cluster.Object("configmaps", "kube-system", name); m != nil {
			data, err := json.Marshal(m["data"])
			if err != nil {
				b.t.Error(err)
			}
			fmt.Fprintf(&out, "map\t%s\t%s\n", name, data)
		}
	}
	return ok(out.String(), "end\n")
}

// revoke removes the tokens with a value in a field.
func (b *box) revoke(field, value string) {
	for _, name := range b.cluster.Names("secrets") {
		data, _ := b.cluster.Object("secrets", "kube-system", name)["data"].(map[string]any)
		if data[field] == base64.StdEncoding.EncodeToString([]byte(value)) {
			b.cluster.Remove("secrets", "kube-system", name)
		}
	}
}

func (b *box) allow(node string, in []byte) (hosttest.Answer, bool) {
	var secret struct {
		Metadata struct{ Name string }
	}
	if err := yaml.Unmarshal(in, &secret); err != nil {
		return bad("%v", err)
	}
	b.revoke("node", node)
	b.cluster.Put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": secret.Metadata.Name, "namespace": "kube-system"},
		"data": map[string]any{"node": base64.StdEncoding.EncodeToString([]byte(node)), "until": time.Now().Add(kubeadm.MaxTokenLife).String()}})
	return ok()
}

func (b *box) authorize(in []byte) (hosttest.Answer, bool) {
	var group struct {
		Metadata struct{ Name string }
	}
	if err := yaml.Unmarshal(in, &group); err != nil {
		return bad("%v", err)
	}
	b.cluster.Put(binding(group.Metadata.Name))
	if b.cluster.Object("clusterrolebindings", "", "kubeadm:cluster-admins") == nil {
		return bad(`clusterrolebindings "kubeadm:cluster-admins" not found`)
	}
	delete(b.Files, "/etc/kubernetes/super-admin.conf")
	return ok()
}
