package kubeadm

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// local are fields of the kubelet's configuration that kubeadm writes for one
// machine (componentconfigs.Mutate, instance-config.yaml): they are in none of
// the cluster's.
var local = []string{"resolvConf", "containerRuntimeEndpoint"}

// DifferentFields returns the fields of a machine's kubelet configuration that
// differ from the cluster's configuration, sorted.
func DifferentFields(cluster, machine map[string]any) []string {
	var all []string
	for key, want := range cluster {
		if !slices.Contains(local, key) && !reflect.DeepEqual(want, machine[key]) {
			all = append(all, key)
		}
	}
	for key := range machine {
		if _, known := cluster[key]; !known && !slices.Contains(local, key) {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all
}

// mayGo are arguments that a Node may do without.
var mayGo = []string{"max-pods", "resolv-conf"}

// KubeletArguments are the declared arguments of a node's kubelet, by name
// without dashes. Labels and taints are not among them: they count only while a
// node registers itself.
func (n Node) KubeletArguments() map[string]string {
	args := map[string]string{"hostname-override": n.Name, "node-ip": n.IP}
	if n.MaxPods > 0 {
		args["max-pods"] = strconv.Itoa(n.MaxPods)
	}
	maps.Copy(args, n.KubeletArgs)
	return args
}

// Arguments are those that kubeadm wrote for the kubelet.
func (f Facts) Arguments() map[string]string {
	args := map[string]string{}
	for word := range strings.FieldsSeq(f.KubeletArgs) {
		name, value, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		args[name] = value
	}
	return args
}

// DifferentArguments are those of the kubelet that are not as the node wants them,
// sorted.
func (f Facts) DifferentArguments(n Node) []string {
	have, want := f.Arguments(), n.KubeletArguments()
	var all []string
	for name, value := range want {
		if have[name] != value {
			all = append(all, name)
		}
	}
	for _, name := range mayGo {
		if _, wanted := want[name]; have[name] != "" && !wanted {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// SetArguments writes the kubelet's arguments where they differ. They count when
// it is restarted.
func SetArguments(ctx context.Context, m host.Machine, f Facts, n Node) error {
	if len(f.DifferentArguments(n)) == 0 {
		return nil
	}
	args := f.Arguments()
	for _, name := range mayGo {
		delete(args, name)
	}
	maps.Copy(args, n.KubeletArguments())
	var words []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		words = append(words, "--"+name+"="+args[name])
	}
	text := "KUBELET_KUBEADM_ARGS=" + strconv.Quote(strings.Join(words, " ")) + "\n"
	if _, err := m.Run(ctx, host.Command{Args: []string{"sh", "-c", putFlags, "sh"}, Stdin: []byte(text)}); err != nil {
		return fmt.Errorf("write the kubelet's arguments: %w", err)
	}
	return nil
}

// restartMark is there from before the kubelet's arguments or configuration change
// until it has been restarted. A boot removes it, and is a restart, too.
const restartMark = "/run/stoke-kubelet-restart"

const putFlags = `# write the kubelet's arguments
set -e
: >` + restartMark + `
cat >` + flagsFile + `.new
chmod 0644 ` + flagsFile + `.new
mv ` + flagsFile + `.new ` + flagsFile

// FetchKubeletConfiguration has kubeadm write the cluster's configuration of
// kubelets on a node, with further flags such as --patches=FOLDER. It counts when
// the kubelet is restarted.
func FetchKubeletConfiguration(ctx context.Context, m host.Machine, flags ...string) error {
	host.Step(ctx, "kubeadm upgrade node phase kubelet-config")
	out, err := m.Run(ctx, host.Command{Args: append([]string{"sh", "-c", fetch, "sh"}, flags...)})
	return failure(m, "upgrade node phase kubelet-config", out, err)
}

// kubeadm keeps the old configuration for upgrades by hand. It is removed,
// because nothing else would ever remove it.
const fetch = `# write the cluster's configuration of the kubelet on this node
` + alone + `: >` + restartMark + ` || exit
kubeadm upgrade node phase kubelet-config "$@" >` + logFile + ` 2>&1 || { status=$?; tail -n 200 ` + logFile + `; exit "$status"; }
rm -rf /etc/kubernetes/tmp/kubeadm-kubelet-config*`

// RestartKubelet starts the kubelet anew, and with the machine from now on.
func RestartKubelet(ctx context.Context, m host.Machine) error {
	host.Step(ctx, "restarting the kubelet")
	_, err := host.Script(ctx, m, restart)
	return err
}

// It may have failed so often that systemd starts it no more. To enable a unit
// reloads systemd besides, by which containers that run may lose their GPUs.
const restart = `# restart the kubelet
set -e
systemctl enable --no-reload --quiet kubelet.service
systemctl reset-failed kubelet.service 2>/dev/null || :
systemctl restart kubelet.service
rm -f ` + restartMark
