package kubeadm

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestKubeletArguments: those that follow from the node are compared, others stay.
func TestKubeletArguments(t *testing.T) {
	f := Facts{KubeletArgs: "--hostname-override=gpu-1 --max-pods=20 --node-ip=10.0.0.5 --node-labels=a=b,c=d --register-with-taints=x=y:NoSchedule"}
	n := Node{Name: "gpu-1", IP: "10.0.0.5", MaxPods: 20}
	if d := f.DifferentArguments(n); len(d) > 0 {
		t.Errorf("the same differ in %v", d)
	}
	n.MaxPods, n.IP, n.KubeletArgs = 0, "10.0.0.6", map[string]string{"resolv-conf": "/run/resolv.conf"}
	if d := f.DifferentArguments(n); !slices.Equal(d, []string{"max-pods", "node-ip", "resolv-conf"}) {
		t.Errorf("they differ in %v", d)
	}
	var input []string
	if err := SetArguments(t.Context(), answers(hosttest.Answer{}, &input), f, n); err != nil {
		t.Fatal(err)
	}
	const want = `KUBELET_KUBEADM_ARGS="--hostname-override=gpu-1 --node-ip=10.0.0.6 --node-labels=a=b,c=d --register-with-taints=x=y:NoSchedule --resolv-conf=/run/resolv.conf"` + "\n"
	if !slices.Equal(input, []string{want}) {
		t.Errorf("written is %q", input)
	}
	if err := SetArguments(t.Context(), &hosttest.Machine{}, f, Node{Name: "gpu-1", IP: "10.0.0.5", MaxPods: 20}); err != nil {
		t.Errorf("nothing differs, and yet: %v", err)
	}
}

// TestDifferentFields: what kubeadm writes for one machine is no difference, what
// somebody added by hand is one.
func TestDifferentFields(t *testing.T) {
	cluster := map[string]any{"maxPods": 40.0, "evictionHard": map[string]any{"a": "0%"}, "cgroupDriver": "systemd"}
	machine := map[string]any{"maxPods": 40.0, "evictionHard": map[string]any{"a": "0%"}, "cgroupDriver": "systemd", "resolvConf": "/run/resolv.conf", "containerRuntimeEndpoint": "unix:///run/c.sock"}
	if d := DifferentFields(cluster, machine); len(d) > 0 {
		t.Errorf("the same differ in %v", d)
	}
	machine["maxPods"], machine["registryPullQPS"] = 7.0, 1.0
	delete(machine, "cgroupDriver")
	if d := DifferentFields(cluster, machine); !slices.Equal(d, []string{"cgroupDriver", "maxPods", "registryPullQPS"}) {
		t.Errorf("they differ in %v", d)
	}
}

// TestKubeletStartsWithoutReload: to enable a unit reloads systemd, unless it is
// told not to, and pods may lose their GPUs by that.
func TestKubeletStartsWithoutReload(t *testing.T) {
	for name, do := range map[string]func(context.Context, host.Machine) error{"restart": RestartKubelet, "start": StartKubelet} {
		var scripts []string
		m := &hosttest.Machine{Answer: func(c host.Command) (hosttest.Answer, bool) {
			scripts = append(scripts, strings.Join(c.Args, " ")+string(c.Stdin))
			return hosttest.Answer{}, true
		}}
		if err := do(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		all := strings.Join(scripts, "\n")
		for line := range strings.Lines(all) {
			if strings.Contains(line, "systemctl enable") && !strings.Contains(line, "--no-reload") || strings.Contains(line, "daemon-reload") {
				t.Errorf("%s: %s", name, line)
			}
		}
		if name == "restart" && !strings.HasSuffix(all, "\nrm -f "+restartMark+" sh") {
			t.Errorf("it is to be restarted again: %s", all)
		}
		if !strings.Contains(all, "enable") {
			t.Errorf("%s: the kubelet is not enabled: %s", name, all)
		}
	}
}
