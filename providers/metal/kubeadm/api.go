package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// NotReadyError says what an API server's readiness check answered, or that
// nothing did.
type NotReadyError struct{ Host, Said string }

func (e *NotReadyError) Error() string {
	return fmt.Sprintf("the API server of %s is not ready: %s", e.Host, e.Said)
}

const ready = `# ask the API server whether it is ready
` + kubectl + `exec kubectl --request-timeout=10s get --raw /readyz 2>&1`

// Ready asks a control plane's API server, as its administrator, whether it is
// ready. An error other than *NotReadyError says that the machine could not be
// asked.
func Ready(ctx context.Context, controlPlane host.Machine) error {
	out, status, err := host.LookStatus(ctx, controlPlane, "sh", "-c", ready)
	switch {
	case err != nil:
		return err
	case status != 0 || strings.TrimSpace(string(out)) != "ok":
		return &NotReadyError{controlPlane.Name(), lastLine(redacted(string(out)))}
	}
	return nil
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	_, line, _ := cutLast(text, "\n")
	if line == "" {
		return "it says nothing"
	}
	return line
}

const leading = `# ask whether the controller manager works
` + kubectl + `renewed=$(kubectl --request-timeout=10s --namespace kube-system get lease kube-controller-manager -o 'jsonpath={.spec.renewTime}') || exit
[ $(($(date +%s) - $(date -d "$renewed" +%s))) -lt 10 ]`

// leads tells whether the controller manager works. It ends, and is started again
// after a while, where it could not ask the API server for ten seconds; until then
// nobody signs certificates.
func leads(ctx context.Context, controlPlane host.Machine) error {
	_, status, err := host.LookStatus(ctx, controlPlane, "sh", "-c", leading)
	if err == nil && status != 0 {
		return &NotReadyError{controlPlane.Name(), "kube-controller-manager does not work yet"}
	}
	return err
}

// AwaitReady waits until the API server is ready with the arguments that its
// static pod has, for after a change the old one goes on for a while, and until
// the controller manager works with it. An error is what it was waiting for at the
// end.
func AwaitReady(ctx context.Context, controlPlane host.Machine, patience time.Duration) error {
	return await(ctx, controlPlane, patience, runs, Ready, leads)
}

// AwaitServer is AwaitReady for a control plane whose administrator may have no
// rights yet: kubeadm gives them to him after its API server has become ready.
func AwaitServer(ctx context.Context, controlPlane host.Machine, patience time.Duration) error {
	return await(ctx, controlPlane, patience, runs, Ready)
}

func await(ctx context.Context, controlPlane host.Machine, patience time.Duration, checks ...func(context.Context, host.Machine) error) error {
	host.Step(ctx, "waiting for the API server of %s", controlPlane.Name())
	for end := time.Now().Add(patience); ; {
		var err error
		for _, check := range checks {
			if err = check(ctx, controlPlane); err != nil {
				break
			}
		}
		if err == nil || !errors.As(err, new(*NotReadyError)) || time.Now().After(end) {
			return err
		}
		if paused := host.Pause(ctx, lookEvery); paused != nil {
			return errors.Join(paused, err)
		}
	}
}

const running = `# look at the API server that runs
[ ! -f ` + apiServerFile + ` ] || printf 'file\t%s\n' "$(base64 -w0 <` + apiServerFile + `)"
for p in /proc/[0-9]*; do
	[ "$(tr '\0' '\n' <"$p/cmdline" 2>/dev/null | sed -n '1{s,.*/,,;p;q}')" = kube-apiserver ] || continue
	printf 'process\t%s\n' "$(tr '\0' '\n' <"$p/cmdline" | base64 -w0)"
done
echo end`

// runs compares the API server that runs with its static pod.
func runs(ctx context.Context, m host.Machine) error {
	var pod struct {
		Spec struct {
			Containers []struct {
				Command []string `json:"command"`
			} `json:"containers"`
		} `json:"spec"`
	}
	var processes [][]string
	lines := host.Lines{
		"file": host.Data(1, func(v []string) error { return yaml.Unmarshal([]byte(v[0]), &pod) }),
		"process": host.Data(1, func(v []string) error {
			processes = append(processes, strings.Split(strings.TrimSuffix(v[0], "\n"), "\n"))
			return nil
		}),
	}
	if err := host.Look(ctx, m, "the API server", running, lines); err != nil {
		return err
	}
	switch {
	case len(pod.Spec.Containers) != 1:
		return &NotReadyError{m.Name(), "there is no " + apiServerFile}
	case len(processes) == 0:
		return &NotReadyError{m.Name(), "it does not run"}
	}
	for _, p := range processes {
		if slices.Equal(p[1:], pod.Spec.Containers[0].Command[1:]) {
			return nil
		}
	}
	return &NotReadyError{m.Name(), "one with other arguments runs still"}
}

const authorize = `# bind the operators' group, and remove the credential beyond all rights
set -e
` + kubectl + `kubectl apply --server-side --force-conflicts --field-manager stoke -f - >/dev/null
kubectl get clusterrolebinding kubeadm:cluster-admins -o name >/dev/null
rm -f /etc/kubernetes/super-admin.conf`

// Authorize binds a group to the role cluster-admin, by a binding of the group's
// name, and then removes super-admin.conf: its user has all rights, whatever RBAC
// says, and nobody needs it once admin.conf has its own by the binding
// kubeadm:cluster-admins.
func Authorize(ctx context.Context, controlPlane host.Machine, group string) error {
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": group},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}},
	})
	if err != nil {
		return fmt.Errorf("write a ClusterRoleBinding: %w", err)
	}
	if _, err := controlPlane.Run(ctx, host.Command{Args: []string{"sh", "-c", authorize, "sh"}, Stdin: manifest}); err != nil {
		return fmt.Errorf("bind the group %s: %w", group, err)
	}
	return nil
}

// Member is a node as the cluster has it.
type Member struct {
	Name   string
	Ready  bool
	Taints []string // their keys
}

const members = `# list the cluster's nodes
` + kubectl + `kubectl --request-timeout=20s get nodes -o 'jsonpath={range .items[*]}{"node\t"}{.metadata.name}{"\t"}{.status.conditions[?(@.type=="Ready")].status}{"\t"}{.spec.taints[*].key}{"\n"}{end}' || exit
echo end`

// Members lists the nodes of a cluster, as its administrator.
func Members(ctx context.Context, controlPlane host.Machine) ([]Member, error) {
	var all []Member
	err := host.Look(ctx, controlPlane, "the cluster's nodes", members, host.Lines{"node": host.Fields(0, func(v []string) error {
		if len(v) != 3 {
			return fmt.Errorf("%d fields in place of 3", len(v))
		}
		all = append(all, Member{Name: v[0], Ready: v[1] == "True", Taints: strings.Fields(v[2])})
		return nil
	})})
	return all, err
}

// Reserved tells whether pods are kept from a control plane's node.
func (m Member) Reserved() bool { return slices.Contains(m.Taints, controlPlaneTaint.Key) }

const untaint = `# let pods onto the control plane
` + kubectl + `exec kubectl taint node "$1" "$2-" --overwrite`

// Open lets all pods onto a control plane's node. The phase mark-control-plane
// keeps them from it.
func Open(ctx context.Context, controlPlane host.Machine, node string) error {
	_, err := host.Script(ctx, controlPlane, untaint, node, controlPlaneTaint.String())
	return err
}

const restartProxy = `# have kube-proxy read its configuration
set -e
` + kubectl + `kubectl --namespace kube-system rollout restart daemonset/kube-proxy >/dev/null
exec kubectl --namespace kube-system rollout status daemonset/kube-proxy --timeout=300s`

// RestartProxy has every kube-proxy take the cluster's configuration, one node
// after another.
func RestartProxy(ctx context.Context, controlPlane host.Machine) error {
	host.Step(ctx, "kube-proxy takes its configuration, node by node")
	_, err := host.Script(ctx, controlPlane, restartProxy)
	return err
}

// systemd reads no unit anew: containers of GPUs would lose them.
const startKubelet = `# start the kubelet, now and after a reboot
[ "$(systemctl is-enabled kubelet.service 2>/dev/null)" = enabled ] || systemctl enable --no-reload --quiet kubelet.service || exit
systemctl reset-failed kubelet.service 2>/dev/null
exec systemctl start kubelet.service`

// StartKubelet starts the kubelet where it is stopped.
func StartKubelet(ctx context.Context, m host.Machine) error {
	host.Step(ctx, "starting the kubelet of %s", m.Name())
	_, err := host.Script(ctx, m, startKubelet)
	return err
}

const disableKubelet = `# disable the kubelet at boot
systemctl cat kubelet.service >/dev/null 2>&1 || exit 0
exec systemctl disable --now kubelet.service`

// DisableKubelet undoes StartKubelet. A machine without a kubelet is passed over.
func DisableKubelet(ctx context.Context, m host.Machine) error {
	_, err := host.Script(ctx, m, disableKubelet)
	return err
}

const dropHalves = `# remove what half of was written
cd /etc/kubernetes 2>/dev/null || exit 0
find . -maxdepth 1 -name '*.conf' -size 0 -delete
for key in pki/*.key pki/etcd/*.key; do
	pair=${key%.key}
	[ "$pair" != pki/sa ] || continue
	[ -s "$key" ] && [ -s "$pair.crt" ] || rm -f "$key" "$pair.crt"
done
[ -s pki/sa.key ] && [ -s pki/sa.pub ] || rm -f pki/sa.key pki/sa.pub`

// DropHalves removes certificates, keys and kubeconfigs that a kubeadm init which
// was cut off has written half of: kubeadm keeps what is there, and cannot read
// them. It is for a machine that no API server ever ran on.
func DropHalves(ctx context.Context, m host.Machine) error {
	_, err := host.Script(ctx, m, dropHalves)
	return err
}

const renames = `# remove the API server's certificate, so that kubeadm makes a new one
exec rm -f /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/apiserver.key`

// Rename recreates the API server's certificate with the names in the
// configuration. kubeadm keeps an existing one, so it is removed first; if this
// is interrupted, the API server keeps the certificate that it has loaded.
func Rename(ctx context.Context, controlPlane host.Machine, configuration []byte) error {
	if _, err := host.Script(ctx, controlPlane, renames); err != nil {
		return err
	}
	return Phase(ctx, controlPlane, configuration, "certs", "apiserver")
}

// WritePatches makes a folder hold these patches and nothing else.
func WritePatches(ctx context.Context, m host.Machine, dir string, patches map[string]string) error {
	if _, err := host.Script(ctx, m, clearPatches, dir); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(patches)) {
		err := m.Put(ctx, ssh.File{Path: path.Join(dir, name), Content: []byte(patches[name]), Mode: 0o600, Owner: "root:root", Root: true})
		if err != nil {
			return fmt.Errorf("write the patch %s: %w", name, err)
		}
	}
	return nil
}

const clearPatches = `# make room for kubeadm's patches
rm -rf -- "$1" && mkdir -p -m 0700 -- "$1"`
