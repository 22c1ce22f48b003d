//go:build e2e && linux

package podtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Addresses of the network that nodes are in, which is the half of 198.18.0.0/15
// that is set aside for tests of networks (RFC 2544), and those of pods and
// Services. All of them are in namespaces of the test's alone.
const (
	hubAddress = "198.18.0.1"
	// What Services lead to: the API server, and the cluster's DNS. Every node has
	// it for itself.
	servedAddress = "198.18.1.1"
	servedPort    = 6443
)

func nodeAddress(number int) string { return fmt.Sprintf("198.18.0.%d", 10+number) }
func podRange(number int) string    { return fmt.Sprintf("10.244.%d.0/24", number) }

// network is a network namespace, which is there until it is closed and the last
// process in it has ended.
type network struct{ file *os.File }

func newNetwork() (*network, error) {
	type made struct {
		file *os.File
		err  error
	}
	done := make(chan made)
	go func() {
		// Never unlocked: the thread ends with this, as it is in another network.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- made{nil, fmt.Errorf("make a network namespace: %w", err)}
			return
		}
		file, err := os.Open("/proc/thread-self/ns/net")
		done <- made{file, err}
	}()
	m := <-done
	return &network{m.file}, m.err
}

func (n *network) close() { _ = n.file.Close() }

// path is where other processes find the namespace.
func (n *network) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// do does something in the network, on a thread of its own. A process that is
// started there with a signal for the end of its parent must be waited for
// there.
func (n *network) do(what func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked, as above
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter a network namespace: %w", err)
			return
		}
		done <- what()
	}()
	return <-done
}

// ip runs lines of ip(8) in the network.
func (n *network) ip(lines ...string) error {
	return n.do(func() error {
		cmd := exec.Command("ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(lines, "; "), err, bytes.TrimSpace(out))
		}
		return nil
	})
}

// dial dials an address, which has no name in it, from within the network.
func (n *network) dial(ctx context.Context, address string) (conn net.Conn, err error) {
	err = n.do(func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "tcp", address)
		return err
	})
	return conn, err
}

// newHub makes the network that connects the nodes' and routes between them.
func newHub() (*network, error) {
	hub, err := newNetwork()
	if err != nil {
		return nil, err
	}
	err = hub.ip("link set lo up", "link add hub type bridge", "addr add "+hubAddress+"/24 dev hub", "link set hub up")
	if err == nil {
		err = hub.do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	}
	if err != nil {
		hub.close()
		return nil, err
	}
	return hub, nil
}

// plug makes a node's network again, by its number: the old network and its
// content are removed, as on a machine that boots. The hardware address follows
// from the number, or else others would look for the node at its old one for a
// while.
func (n *network) plug(number int) (*network, error) {
	node, err := newNetwork()
	if err != nil {
		return nil, err
	}
	port, address := fmt.Sprintf("port%d", number), nodeAddress(number)
	_ = n.ip("link del " + port) // there is none at its first boot
	err = n.ip(
		fmt.Sprintf("link add %s type veth peer name host0 address 02:00:c6:12:00:%02x netns %s", port, number, node.path()),
		"link set "+port+" master hub up",
	)
	if err == nil {
		err = node.ip("link set lo up", "addr add "+servedAddress+"/32 dev lo",
			"addr add "+address+"/24 dev host0", "link set host0 up", "route add default via "+hubAddress)
	}
	if err == nil {
		err = n.ip("route replace " + podRange(number) + " via " + address)
	}
	if err != nil {
		node.close()
		return nil, fmt.Errorf("make the network of node %d: %w", number, err)
	}
	return node, nil
}
