package metal

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

// box is a double of a machine that kubeadm works on. It keeps its files in memory, and
// carries scripts out on its files, its packages and its kubelet, and on the API server of
// its cluster.
type box struct {
	hosttest.Machine
	t        testing.TB
	server   *sshtest.Server
	name, ip string
	cluster  *draintest.Cluster
	head     *box // the control plane's machine
	gate     *gate
	facts    string

	mu                   sync.Mutex // for a command
	packages             map[string]string
	held, auto           map[string]bool
	lists                bool // apt has read the lists of its repository
	active, enabled, due bool // the kubelet; due: its files have changed since it began
}

// gate refuses one of the commands and requests of an apply.
type gate struct {
	mu   sync.Mutex
	left int // until the one that is refused; negative for none
	how  effect
	what string
	all  []string // what has passed
}

func (g *gate) refuses(what string) (refused, after bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if refused = g.left == 0; refused {
		g.what = what
	}
	g.left = max(g.left-1, -1)
	g.all = append(g.all, what)
	return refused, refused && (g.how == whole || g.how == half && isKilled(what))
}

// isKilled reports a command that may be killed half-way.
func isKilled(what string) bool {
	return strings.HasSuffix(what, "(kubeadm init)") || strings.HasSuffix(what, "(kubeadm join)")
}

// passed returns all that has passed since the last call.
func (g *gate) passed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.all
	g.all = nil
	return all
}

// halves tells whether the kubeadm that runs is to be killed.
func (g *gate) halves() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.how == half && g.what != "" && g.left < 0
}

// refuse lets n pass and refuses the next one.
func (g *gate) refuse(n int, how effect) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left, g.how, g.what = n, how, ""
}

// open lets all pass, and returns the refused command; "" for none.
func (g *gate) open() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	what := g.what
	g.left, g.what = -1, ""
	return what
}

// effect is the effect of a refused command.
type effect string

const (
	none  effect = "no effect"
	half  effect = "kubeadm killed half-way" // and no effect of all others
	whole effect = "its whole effect"
)

func newBox(t testing.TB, c *draintest.Cluster, g *gate, name, ip string, config sshtest.Config) *box {
	t.Helper()
	facts, err := os.ReadFile("facts/testdata/debian12.txt")
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, name: name, ip: ip, cluster: c, gate: g, packages: map[string]string{}, held: map[string]bool{}, auto: map[string]bool{}}
	b.facts = strings.NewReplacer("cgroup=sysfs", "cgroup=cgroup2fs", "0.0.0.0:6443", "0.0.0.0:8443").Replace(string(facts)) // fit for a control plane
	b.head, b.Files, b.Answer = b, map[string]ssh.File{}, b.answer
	config.Answer = b.asked
	b.server = sshtest.New(t, config)
	return b
}

// asked answers a command that came over SSH.
func (b *box) asked(asked sshtest.Asked) (string, int) {
	in, err := io.ReadAll(asked.Stdin)
	if err != nil {
		return "", 255
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	what := title(asked.Args, in)
	refused, after := false, false
	if what != "lock the machine" && what != "follow kubeadm" { // by the clock
		refused, after = b.gate.refuses(b.name + ": " + what)
	}
	if refused && !after {
		return "", 1
	}
	out, err := b.Run(context.Background(), host.Command{Args: asked.Args, Stdin: in})
	status := 0
	if failed, ok := err.(*ssh.CommandError); ok {
		status = failed.Status
	} else if err != nil {
		status = 255
	}
	if refused {
		return "", 1
	}
	return string(out.Stdout), status
}

// title returns the purpose of a script, or the command.
func title(args []string, in []byte) string {
	if len(args) > 2 && args[1] == "-c" && strings.HasPrefix(args[2], "# ") {
		line, _, _ := strings.Cut(strings.TrimPrefix(args[2], "# "), "\n")
		return line
	}
	if len(args) == 2 && args[1] == "-s" {
		if strings.Contains(string(in), "/etc/kubernetes/admin.conf; do") || strings.Contains(string(in), "super-admin.conf; do") {
			return "read admin.conf"
		}
		return "facts"
	}
	return strings.Join(args, " ")
}

func ok(lines ...string) (hosttest.Answer, bool) {
	return hosttest.Answer{Stdout: strings.Join(lines, "")}, true
}

func bad(format string, args ...any) (hosttest.Answer, bool) {
	return hosttest.Answer{Stdout: fmt.Sprintf(format, args...) + "\n", Status: 1}, true
}

// answer carries a command out.
func (b *box) answer(cmd host.Command) (hosttest.Answer, bool) {
	what, args := title(cmd.Args, cmd.Stdin), cmd.Args
	if len(args) > 3 && args[1] == "-c" {
		args = args[4:]
	}
	for _, by := range []func(what string, args []string, in []byte) (hosttest.Answer, bool){b.system, b.apt, b.kubelet, b.kubeadm, b.kubectl} {
		if a, known := by(what, args, cmd.Stdin); known {
			return a, true
		}
	}
	return hosttest.Answer{}, false
}

// system reads and writes files, and looks at the machine.
func (b *box) system(what string, args []string, in []byte) (hosttest.Answer, bool) {
	switch what {
	case "lock the machine":
		if args[1] == "free" {
			return ok("free\n\n")
		}
		return ok("held\n" + args[3] + "\n")
	case "write a file":
		var mode int
		fmt.Sscanf(args[1], "%o", &mode)
		b.Files[args[0]] = ssh.File{Path: args[0], Content: in, Mode: os.FileMode(mode)}
		return ok()
	case "facts":
		return ok(b.facts)
	case "date +%s.%N":
		return ok(fmt.Sprintf("%d.0\n", time.Now().Unix()))
	case "look at what a node needs of its machine":
		return ok("hostname\t", b.name, "\naddress\t127.0.0.1\naddress\t", b.ip, "\ncontainerd\tyes\nend\n")
	case "connect to the API server":
		if !b.head.up() {
			return hosttest.Answer{Status: 1, Stderr: "bash: connect: Connection refused\n"}, true
		}
		return ok()
	case "read admin.conf":
		f, there := b.Files["/etc/kubernetes/admin.conf"]
		if !there {
			return hosttest.Answer{Status: 3}, true
		}
		return ok(string(f.Content))
	case "read files of the kubelet":
		var out strings.Builder
		for _, name := range args {
			f, there := b.Files[name]
			if !there {
				out.WriteString("missing\n")
				continue
			}
			fmt.Fprintf(&out, "%d\n%s", len(f.Content), f.Content)
		}
		return ok(out.String())
	case "look for errors of GPUs", "keep the last that the cluster's programs said", "the last errors that were kept",
		"keep the last lines of the kubelet, of containerd and of static pods":
		return ok()
	}
	return hosttest.Answer{}, false
}

// kubelet carries out commands about the kubelet's service.
func (b *box) kubelet(what string, args []string, in []byte) (hosttest.Answer, bool) {
	const unit = "kubelet.service"
	if strings.HasPrefix(what, "systemctl ") && strings.HasSuffix(what, unit) || strings.Contains(what, "the kubelet") && !strings.HasPrefix(what, "write") {
		if _, there := b.packages["kubelet"]; !there && !strings.Contains(what, "disable") && !strings.HasPrefix(what, "the kubelet does not") {
			return bad("Unit %s does not exist", unit)
		}
	}
	switch what {
	case "systemctl enable --no-reload --quiet " + unit:
		b.enabled = true
	case "systemctl disable --quiet " + unit:
		b.enabled = false
	case "systemctl daemon-reload":
	case "start the kubelet, now and after a reboot":
		b.enabled, b.active = true, true
	case "disable the kubelet at boot":
		b.enabled, b.active = false, false
	case "restart the kubelet":
		b.enabled, b.active, b.due = true, true, false
	case "write the kubelet's arguments":
		b.due = true
		b.write(flagsFile, in)
		return ok()
	case "write the cluster's configuration of the kubelet on this node":
		config := b.cluster.Object("configmaps", "kube-system", kubeadm.KubeletMap)
		if !b.head.up() || config == nil {
			return bad("the ConfigMap kubelet-config cannot be read")
		}
		b.due = true
		b.write("/var/lib/kubelet/config.yaml", []byte(config["data"].(map[string]any)["kubelet"].(string)+"resolvConf: /etc/resolv.conf\n"))
		return ok()
	default:
		return hosttest.Answer{}, false
	}
	b.runs()
	return ok()
}

func (b *box) write(name string, content []byte) {
	b.Files[name] = ssh.File{Path: name, Content: content, Mode: 0o600}
}

func (b *box) has(name string) bool { _, there := b.Files[name]; return there }

// up tells whether the machine's API server answers.
func (b *box) up() bool {
	return b.active && b.has("/etc/kubernetes/manifests/kube-apiserver.yaml") && b.has("/etc/kubernetes/manifests/etcd.yaml") && b.has("/etc/kubernetes/pki/apiserver.crt")
}

// runs acts for a kubelet that runs: etcd gets data, and the node is registered.
func (b *box) runs() {
	if !b.active || !b.has("/etc/kubernetes/kubelet.conf") {
		return
	}
	if b.has("/etc/kubernetes/manifests/etcd.yaml") {
		b.write("/var/lib/etcd/member", nil)
	}
	if !b.head.up() {
		return
	}
	flags := b.flags()
	node := flags["hostname-override"]
	if node == "" {
		node = b.name
	}
	if !b.has(identityFile) {
		b.write(identityFile, b.cluster.Files(node)[identityFile])
	}
	if slices.Contains(b.cluster.Names("nodes"), node) {
		b.cluster.SetReady(node, true)
		b.cluster.SetKubelet(node, true)
		return
	}
	b.cluster.AddNode(node, func(n *core.Node) {
		n.Status.Addresses = []core.NodeAddress{{Type: core.NodeInternalIP, Address: flags["node-ip"]}}
		for pair := range strings.SplitSeq(flags["node-labels"], ",") {
			if key, value, found := strings.Cut(pair, "="); found {
				n.Labels[key] = value
			}
		}
		n.Spec.Taints = taintsOf(flags["register-with-taints"])
	})
	for f := range b.Files {
		if pod, static := strings.CutPrefix(f, "/etc/kubernetes/manifests/"); static {
			b.cluster.AddPod(node, "kube-system/"+strings.TrimSuffix(pod, ".yaml")+"-"+node, draintest.Owner("v1", "Node"),
				func(p *core.Pod) { p.Annotations = map[string]string{core.MirrorPodAnnotationKey: "a"} })
		}
	}
}

const (
	identityFile = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	flagsFile    = "/var/lib/kubelet/kubeadm-flags.env"
)

func taintsOf(text string) (all []core.Taint) {
	for one := range strings.SplitSeq(text, ",") {
		pair, effect, found := strings.Cut(one, ":")
		if key, value, _ := strings.Cut(pair, "="); found {
			all = append(all, core.Taint{Key: key, Value: value, Effect: core.TaintEffect(effect)})
		}
	}
	return all
}

func (b *box) flags() map[string]string {
	text := strings.TrimSpace(string(b.Files[flagsFile].Content))
	return kubeadm.Facts{KubeletArgs: strings.Trim(strings.TrimPrefix(text, "KUBELET_KUBEADM_ARGS="), `"`)}.Arguments()
}

// observed returns the output of the script of kubeadm.Observe.
func (b *box) observed() string {
	var out strings.Builder
	line := func(fields ...string) { out.WriteString(strings.Join(fields, "\t") + "\n") }
	encode := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	release := func(name, before string) string {
		version, _, found := strings.Cut(b.packages[name], "-")
		if !found {
			return ""
		}
		return before + version
	}
	line("kubeadm", release("kubeadm", "v"))
	line("kubelet", release("kubelet", "Kubernetes v"))
	line("active", map[bool]string{true: "active", false: "inactive"}[b.active])
	line("enabled", map[bool]string{true: "enabled", false: "disabled"}[b.enabled])
	if b.due {
		line("restart", "due")
	}
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		content := b.Files[name].Content
		dir, base := path.Split(name)
		conf := dir == "/etc/kubernetes/" && strings.HasSuffix(base, ".conf")
		if conf || dir == "/etc/kubernetes/manifests/" || slices.Contains([]string{"/etc/kubernetes/pki/ca.crt", "/var/lib/kubelet/config.yaml", identityFile, "/var/lib/etcd/member"}, name) {
			line("there", name)
		}
		if strings.HasPrefix(dir, "/etc/kubernetes/pki/") && strings.HasSuffix(base, ".crt") || name == identityFile {
			line("certificate", name, encode(content))
		}
		switch name {
		case "/var/lib/etcd/member":
			line("etcd", "yes")
		case "/etc/kubernetes/kubelet.conf":
			line("server", b.cluster.URL)
		case "/etc/kubernetes/manifests/kube-apiserver.yaml", "/var/lib/kubelet/config.yaml", flagsFile:
			line("file", name, encode(content))
		}
	}
	return out.String() + "end\n"
}

// running returns the output of the look at the API server.
func (b *box) running() string {
	file := b.Files["/etc/kubernetes/manifests/kube-apiserver.yaml"].Content
	var pod core.Pod
	if len(file) == 0 || yaml.Unmarshal(file, &pod) != nil {
		return "end\n"
	}
	out := "file\t" + base64.StdEncoding.EncodeToString(file) + "\n"
	if b.up() {
		out += "process\t" + base64.StdEncoding.EncodeToString([]byte(strings.Join(pod.Spec.Containers[0].Command, "\n")+"\n")) + "\n"
	}
	return out + "end\n"
}

// address returns the address and port of the API server.
func (b *box) address() string {
	return strings.TrimPrefix(b.cluster.URL, "https://")
}

func hostOf(address string) string {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return name
}
