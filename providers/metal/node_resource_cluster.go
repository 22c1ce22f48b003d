package metal

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

const authorityFile = "/etc/kubernetes/pki/ca.crt"

// clusterError: a cluster could not be reached, and where. It does not mean that
// the cluster does not exist.
type clusterError struct {
	what string // of what failed: the endpoint, or the control plane's machine
	err  error
}

func (e *clusterError) Error() string {
	summary, detail := kubernetes.Describe(e.err)
	if summary == "" || detail == "" {
		return fmt.Sprintf("%s: %v", e.what, e.err)
	}
	return fmt.Sprintf("%s: %s. %s", e.what, summary, strings.TrimSuffix(detail, "."))
}

func (e *clusterError) Unwrap() error { return e.err }

// errNoCluster: a cluster certainly no longer exists, because its control
// plane's machine answers and does not belong to it.
var errNoCluster = errors.New("the cluster no longer exists")

// controlPlane returns the machine of a cluster's control plane. It is used
// without its lock: the work there for a node does not change the machine.
func (s *settings) controlPlane(ctx context.Context, j joinModel) (*host.Remote, error) {
	way, err := wayOf(ctx, j.ControlPlane)
	if err != nil {
		return nil, err
	}
	return s.reach(way, nil)
}

// cluster logs in to the cluster over SSH, as whoever its access is given to does,
// after its authority was compared with the hash in j.
func (s *settings) cluster(ctx context.Context, j joinModel) (*kubernetes.Client, *host.Remote, error) {
	head, err := s.controlPlane(ctx, j)
	if err != nil {
		return nil, nil, err
	}
	authority, there, err := host.ReadFile(ctx, head, authorityFile)
	if err != nil {
		return nil, head, &clusterError{head.Name(), err}
	}
	hash := ""
	if block, _ := pem.Decode(authority); there && block != nil {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			hash = kubeadm.CAHash(c)
		}
	}
	if hash != j.CAHash.ValueString() {
		return nil, head, fmt.Errorf("%w: %s has no authority with the hash %s in %s", errNoCluster, head.Name(), j.CAHash.ValueString(), authorityFile)
	}
	way, err := wayOf(ctx, j.ControlPlane)
	if err != nil {
		return nil, head, err
	}
	c, err := s.clusters.Get(ctx, connect.Connection{
		Endpoint: "https://" + j.Endpoint.ValueString(), CA: string(authority), Credential: connect.Credential{SSH: &way},
	})
	if err != nil {
		return nil, head, &clusterError{"https://" + j.Endpoint.ValueString(), err}
	}
	return c, head, nil
}

// dialLimit is for how long a node tries to reach the API server: dropped packets
// get no answer.
const dialLimit = 8 * time.Second

// reachesAPI opens a connection from the machine to the API server, as kubeadm
// will, and names the obstacle if that fails.
func reachesAPI(ctx context.Context, m host.Machine, head *host.Remote, endpoint string, ip netip.Addr) error {
	err := dials(ctx, m, endpoint)
	if err == nil {
		return nil
	}
	if context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	if dials(ctx, head, endpoint) != nil {
		return fmt.Errorf("%s cannot reach the API server at %s (%w): the control plane %s cannot either. Look there at the API server (crictl ps), and at whether the endpoint leads to it", m.Name(), endpoint, err, head.Name())
	}
	return standsBetween(ctx, head, m.Name(), endpoint, ip, err)
}

// standsBetween returns the obstacle between a machine and an API server that
// the control plane reaches.
func standsBetween(ctx context.Context, head host.Machine, machine, endpoint string, ip netip.Addr, err error) error {
	_, port, _ := net.SplitHostPort(endpoint)
	why := fmt.Sprintf("%s cannot reach the API server at %s (%v): ", machine, endpoint, err)
	if unnamed(err) {
		return fmt.Errorf("%sit cannot resolve that name, which the control plane can. Add it to its DNS or /etc/hosts, or give metal_cluster an address as endpoint", why)
	}
	rec, opened := host.OpenRecord(ctx, head, firewallRecord)
	var declared struct {
		Role          string   `json:"role"`
		Peers         []string `json:"peers"`
		ControlPlanes []string `json:"control_planes"`
		APIClients    []string `json:"api_clients"`
	}
	switch {
	case opened != nil || json.Unmarshal(rec.LastDeclared(), &declared) != nil:
		return fmt.Errorf("%s%s has no metal_firewall, so that another firewall, of the machine, the network or the "+
			"cloud, is in the way: it has to let TCP port %s in from %s", why, head.Name(), port, ip)
	case port != "6443" || declared.Role != string(firewall.ControlPlane):
		return fmt.Errorf("%sthe metal_firewall of %s, with role = %q, opens no port %s unless a rule of it does: it "+
			"has to let TCP port %s in from %s (role = %q opens 6443)", why, head.Name(), declared.Role, port, port, ip, firewall.ControlPlane)
	case !letsIn(slices.Concat(declared.Peers, declared.ControlPlanes, declared.APIClients), ip):
		return fmt.Errorf("%sthe metal_firewall of %s lets in TCP port %s only from its peers, and %s is not a peer: "+
			"add it to peers", why, head.Name(), port, ip)
	}
	return fmt.Errorf("%sthe metal_firewall of %s lets TCP port %s in from %s, so that a network or cloud firewall "+
		"is in the way: open it there", why, head.Name(), port, ip)
}

// unnamed reports whether a machine cannot resolve a name, by the error of bash
// (EAI_NONAME, EAI_AGAIN).
func unnamed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "Name or service not known") || strings.Contains(text, "name resolution")
}

// letsIn reports whether an address is among addresses and networks.
func letsIn(all []string, ip netip.Addr) bool {
	return slices.ContainsFunc(all, func(text string) bool {
		a, err := netip.ParseAddr(text)
		n, other := netip.ParsePrefix(text)
		return err == nil && a == ip || other == nil && n.Contains(ip)
	})
}

// dial connects from a machine with a program of its own: a server of SSH may
// forward nothing, and what counts is what the kubelet can.
const dial = `# connect to the API server
exec timeout "$3" bash -c 'exec 3<>"/dev/tcp/$1/$2"' bash "$1" "$2"`

func dials(ctx context.Context, m host.Machine, endpoint string) error {
	name, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return err
	}
	_, err = host.LookScript(ctx, m, dial, name, port, fmt.Sprint(int(dialLimit/time.Second)))
	var failed *ssh.CommandError
	switch {
	case errors.As(err, &failed) && failed.Status == 124:
		return fmt.Errorf("no answer within %s", dialLimit)
	case errors.As(err, &failed):
		lines := strings.Split(strings.TrimSpace(failed.Output), "\n")
		_, said, found := strings.Cut(lines[0], "/dev/tcp/"+name+"/"+port+": ")
		if !found {
			said = lines[0]
		}
		return errors.New(said)
	}
	return err
}

// ownNode reports whether the machine is the machine of the control plane.
func ownNode(ctx context.Context, on types.Object, j joinModel) bool {
	a, known := connect.MachineFromObject(ctx, on)
	b, also := connect.MachineFromObject(ctx, j.ControlPlane)
	return known && also && sameKey(a.HostKey, b.HostKey)
}
