//go:build e2e && linux

package podtest

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// Node is one that runs pods. Its methods fail the test when they cannot do what
// they say.
type Node struct {
	// Name is the node's in the cluster: "node-1", and so on.
	Name string
	// Address is where its kubelet is, in the network of the nodes alone.
	Address string

	cluster   *Cluster
	number    int
	dir       string
	group     string // the path of its control group, in every hierarchy
	machineID string

	mu     sync.Mutex
	bootID string        // of this boot
	pid    int           // of its first process
	ended  chan struct{} // closed when that has ended; nil before the first boot
	wanted bool          // it is to be on
	net    *network
	api    *proxy
	names  *nameServer
}

func (c *Cluster) newNode(t testing.TB, number int) (*Node, error) {
	name := fmt.Sprintf("node-%d", number)
	n := &Node{
		Name: name, Address: nodeAddress(number), cluster: c, number: number, dir: filepath.Join(c.dir, name),
		group: "/" + filepath.Base(c.dir) + "/" + name,
	}
	var err error
	if n.machineID, err = random(); err != nil {
		return nil, err
	}
	if err := n.configure(); err != nil {
		return nil, err
	}
	for file, login := range map[string]kubetest.Login{
		"kubeconfig":       {User: "system:node:" + name, Groups: []string{"system:nodes"}},
		"proxy.kubeconfig": {User: "system:kube-proxy"},
	} {
		login.Edit = func(config *clientapi.Config) {
			for _, cluster := range config.Clusters {
				// Not the Service's: kube-proxy changes where that leads to.
				cluster.Server, cluster.TLSServerName = "https://"+net.JoinHostPort(servedAddress, strconv.Itoa(servedPort)), "kubernetes"
			}
		}
		kubeconfig, err := os.ReadFile(c.KubeconfigFor(t, login))
		if err == nil {
			err = os.WriteFile(n.file(file), kubeconfig, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	return n, nil
}

// random is 32 digits, as of a machine-id.
func random() (string, error) {
	id := make([]byte, 16)
	_, err := rand.Read(id)
	return hex.EncodeToString(id), err
}

func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }

// groups are the node's control groups, in every hierarchy, or those below them.
func (n *Node) groups(below string) []string {
	var all []string
	for _, g := range n.cluster.groups {
		all = append(all, filepath.Join(g, n.Name, below))
	}
	return all
}

// Start switches a node on that is off, and waits until it is ready. What was
// on its disk is there.
func (n *Node) Start(t testing.TB) {
	t.Helper()
	if err := n.boot(); err != nil {
		t.Fatal(err)
	}
	n.awaitReady(t)
}

// Stop cuts the power: all processes of the node are killed at once, without a
// signal.
func (n *Node) Stop(t testing.TB) {
	t.Helper()
	if err := n.cut(); err != nil {
		t.Fatal(err)
	}
}

// boot starts the node's network and programs.
func (n *Node) boot() error {
	if n.on() {
		return fmt.Errorf("%s is on", n.Name)
	}
	id, err := random()
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bootID = id
	if err := os.WriteFile(n.file("boot_id"), []byte(id+"\n"), 0o644); err != nil {
		return err
	}
	for _, below := range []string{"", "programs"} { // pods are beside the latter
		if err := makeGroups(n.groups(below)); err != nil {
			return err
		}
	}
	if n.net, err = n.cluster.hub.plug(n.number); err != nil {
		return err
	}
	if err := n.serve(); err != nil {
		return err
	}
	return n.run()
}

// serve lets the node and its pods reach the API server and the cluster's DNS.
func (n *Node) serve() error {
	endpoint := strings.TrimPrefix(n.cluster.Endpoint, "https://")
	return n.net.do(func() error {
		api, err := net.Listen("tcp", net.JoinHostPort(servedAddress, strconv.Itoa(servedPort)))
		if err != nil {
			return err
		}
		n.api = newProxy(api, forward(endpoint))
		names, err := net.ListenPacket("udp", net.JoinHostPort(servedAddress, "53"))
		if err != nil {
			return err
		}
		n.names = newNameServer(names, n.cluster.Client)
		return nil
	})
}

// run starts the node's first process. It is killed when the thread ends that
// started it, so that thread waits for it.
func (n *Node) run() error {
	log, err := os.OpenFile(n.file("init.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{"-c", initScript, "init", n.Name, n.dir, n.cluster.programs, n.cluster.Program("kubelet"), n.Address}, n.groups("programs")...)
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL, Setsid: true,
	}
	started, ended := make(chan error, 1), make(chan struct{})
	network := n.net
	go func() {
		defer close(ended)
		err := network.do(func() error {
			err := cmd.Start()
			started <- err
			if err == nil {
				_ = cmd.Wait() // it never ends well
			}
			return nil
		})
		if err != nil {
			started <- err
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	n.pid, n.ended, n.wanted = cmd.Process.Pid, ended, true
	return nil
}

// on tells whether the node has been started and has not ended.
func (n *Node) on() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended == nil {
		return false
	}
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// crashed reports whether the node ended without a call of Stop.
func (n *Node) crashed() bool {
	on := n.on()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wanted && !on
}

// cut ends all of the node. Killing its first process kills all others, before
// any of them can react.
func (n *Node) cut() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = false
	if n.ended != nil {
		_ = syscall.Kill(n.pid, syscall.SIGKILL) // it may have ended
		<-n.ended
		n.ended = nil
	}
	if n.api != nil {
		n.api.close()
		n.api = nil
	}
	if n.names != nil {
		n.names.close()
		n.names = nil
	}
	if n.net != nil {
		n.net.close()
		n.net = nil
	}
	return removeGroups(n.groups(""))
}

// end ends the node with the test, and shows what it said where that failed.
func (n *Node) end(t testing.TB) {
	if err := n.cut(); err != nil {
		t.Error(err)
	}
	if !t.Failed() {
		return
	}
	for _, log := range []string{"init.log", "containerd.log", "kubelet.log", "proxy.log"} {
		text, err := os.ReadFile(n.file(log))
		if err != nil {
			text = []byte(err.Error())
		}
		lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "I") || strings.Contains(line, "level=info") })
		t.Logf("%s, %s:\n%s", n.Name, log, strings.Join(lines[max(0, len(lines)-30):], "\n"))
	}
}

// Exec runs a command on the node as root, past Kubernetes, and returns what it
// wrote to its output: how a test looks at a node or changes it by hand. ctr is there.
func (n *Node) Exec(t testing.TB, args ...string) string {
	t.Helper()
	out, err := n.exec(args...)
	if err != nil {
		t.Fatalf("%s: %s: %v", n.Name, strings.Join(args, " "), err)
	}
	return out
}

func (n *Node) exec(args ...string) (string, error) {
	if !n.on() {
		return "", errors.New("it is off")
	}
	n.mu.Lock()
	enter := []string{"--target", strconv.Itoa(n.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--", "env", "PATH=" + n.cluster.programs + ":" + os.Getenv("PATH")}
	n.mu.Unlock()
	var out, complaint bytes.Buffer
	cmd := exec.Command("nsenter", append(enter, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, complaint.String())
	}
	return out.String(), nil
}

// boots is the id of the node's boot, as the kubelet tells it.
func (n *Node) boots() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bootID
}
