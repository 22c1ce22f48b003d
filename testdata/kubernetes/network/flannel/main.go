// Command flannel is a stand-in for flannel's CNI plugin, whose module cannot be
// had from Go's proxy. Like that one it reads what flanneld wrote about the
// node's range of addresses, and leaves the work to the plugins bridge and
// host-local; it knows no other delegate and no IPv6.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

type object = map[string]any

// config is what is declared of the plugin in a list of plugins.
type config struct {
	types.PluginConf
	SubnetFile string `json:"subnetFile"`
	DataDir    string `json:"dataDir"`
	Delegate   object `json:"delegate"`
}

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: check}, version.All, "flannel, a stand-in")
}

func read(stdin []byte) (config, error) {
	c := config{SubnetFile: "/run/flannel/subnet.env", DataDir: "/var/lib/cni/flannel"}
	if err := json.Unmarshal(stdin, &c); err != nil {
		return c, fmt.Errorf("read the configuration: %w", err)
	}
	return c, nil
}

// delegate is the configuration of the plugin bridge.
func (c config) delegate() (object, error) {
	text, err := os.ReadFile(c.SubnetFile)
	if err != nil {
		return nil, fmt.Errorf("flanneld has not written the node's range yet: %w", err)
	}
	subnet := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			subnet[name] = value
		}
	}
	mtu, err := strconv.Atoi(subnet["FLANNEL_MTU"])
	if err != nil || subnet["FLANNEL_NETWORK"] == "" {
		return nil, fmt.Errorf("%s has no network or MTU: %q", c.SubnetFile, text)
	}
	// It is the bridge's own address there.
	_, pods, err := net.ParseCIDR(subnet["FLANNEL_SUBNET"])
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.SubnetFile, err)
	}
	d := object{
		"cniVersion": c.CNIVersion, "name": c.Name, "type": "bridge", "mtu": mtu, "isGateway": true, "ipMasq": subnet["FLANNEL_IPMASQ"] != "true",
		"ipam": object{"type": "host-local", "ranges": [][]object{{{"subnet": pods.String()}}}, "routes": []object{{"dst": subnet["FLANNEL_NETWORK"]}}},
	}
	for key, value := range c.Delegate {
		d[key] = value
	}
	return d, nil
}

func add(args *skel.CmdArgs) error {
	c, err := read(args.StdinData)
	if err != nil {
		return err
	}
	d, err := c.delegate()
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	// Deleting is to find what was added, whatever flanneld says by then.
	if err := errors.Join(os.MkdirAll(c.DataDir, 0o700), os.WriteFile(c.kept(args), text, 0o600)); err != nil {
		return err
	}
	result, err := invoke.DelegateAdd(context.Background(), "bridge", text, nil)
	if err != nil {
		return err
	}
	return result.Print()
}

func (c config) kept(args *skel.CmdArgs) string { return filepath.Join(c.DataDir, args.ContainerID) }

func del(args *skel.CmdArgs) error {
	c, err := read(args.StdinData)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.kept(args))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was added
	}
	if err != nil {
		return err
	}
	if err := invoke.DelegateDel(context.Background(), "bridge", text, nil); err != nil {
		return err
	}
	return os.Remove(c.kept(args))
}

func check(*skel.CmdArgs) error { return nil }
