package member

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	resources "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// ProbeImage is the default image of pods that test GPUs: a shell, from the
// registry that has the images of the control plane.
const ProbeImage = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"

const (
	// probeLabel is on all that a probe is made of, and the node's name its value as
	// an annotation, which may be longer.
	probeLabel     = "stoke.dev/tries-gpus"
	probeNamespace = "kube-system"
	// probeLife is the maximum life of such a pod: a pod that a killed run has
	// left ends by itself.
	probeLife = 600 // seconds
	// priorityKnown is for how long the API server may take to know a PriorityClass.
	priorityKnown = 30 * time.Second
	// lowest is a priority below all others: whoever wants a GPU has it at once.
	lowest = -2147483648
)

var (
	pods            = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	priorityClasses = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}
	runtimeClasses  = schema.GroupVersionResource{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"}
	resourceClaims  = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
)

// opens opens every GPU that it sees, once a second. $1 is their expected
// number; 0 where GPUs are divided, so that several are one device.
const opens = `# open every GPU
trap 'exit 0' TERM
round=0
while :; do
	count=0
	for device in /dev/nvidia[0-9]* /dev/nvidia-caps/nvidia-cap[0-9]*; do
		[ -e "$device" ] || continue
		case $device in
		/dev/nvidia-caps/*) why=$( { : <"$device"; } 2>&1 ) ;;
		*) why=$( { : <>"$device"; } 2>&1 ) && count=$((count + 1)) ;;
		esac || { echo "cannot open $device: $why"; exit 1; }
	done
	[ "$count" != 0 ] || { echo "sees no GPU (/dev/nvidia0)"; exit 1; }
	[ "$1" = 0 ] || [ "$count" = "$1" ] || { echo "sees $count GPUs in place of $1"; exit 1; }
	round=$((round + 1))
	echo "round $round"
	sleep 1
done`

// seesNone looks for GPUs, once a second.
const seesNone = `# see no GPU
trap 'exit 0' TERM
round=0
while :; do
	for device in /dev/nvidia[0-9]*; do
		[ ! -e "$device" ] || { echo "sees $device, and asked for no GPU"; exit 1; }
	done
	round=$((round + 1))
	echo "round $round"
	sleep 1
done`

// probe is one pod that tests the GPUs of a node, or that it sees none.
type probe struct {
	node, name, image string
	on                *State           // the node when it was made, where it asks for something
	gpus              map[string]int64 // what it asks for; nil: nothing
	claims            int64            // devices of NVIDIA's DRA driver that it asks for
	runtime           string           // RuntimeClass; "" for the node's own
}

func probeMeta(node, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{probeLabel: ""}, Annotations: map[string]string{probeLabel: node}}
}

// deviceCount is how many devices the pod must see; 0 if that does not follow from
// its requests.
func (p probe) deviceCount() int64 {
	if p.claims > 0 {
		return p.claims
	}
	if len(p.gpus) == 1 {
		return p.gpus[GPU]
	}
	return 0
}

func (p probe) pod() *core.Pod {
	no, grace, life := false, int64(1), int64(probeLife)
	container := core.Container{
		Name: "probe", Image: p.image, Command: []string{"sh", "-c", seesNone, "sh"}, TerminationMessagePolicy: core.TerminationMessageFallbackToLogsOnError,
		// As in images of CUDA: a runtime that follows this variable gives each of
		// them all GPUs.
		Env: []core.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}},
	}
	pod := &core.Pod{ObjectMeta: probeMeta(p.node, p.name), Spec: core.PodSpec{
		RestartPolicy: core.RestartPolicyNever, TerminationGracePeriodSeconds: &grace, ActiveDeadlineSeconds: &life,
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no, PriorityClassName: p.name,
		Tolerations: []core.Toleration{{Operator: core.TolerationOpExists}},
		Affinity: &core.Affinity{NodeAffinity: &core.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &core.NodeSelector{
			NodeSelectorTerms: []core.NodeSelectorTerm{{MatchFields: []core.NodeSelectorRequirement{{Key: "metadata.name", Operator: core.NodeSelectorOpIn, Values: []string{p.node}}}}},
		}}},
	}}
	if len(p.gpus) > 0 || p.claims > 0 {
		container.Command = []string{"sh", "-c", opens, "sh", strconv.FormatInt(p.deviceCount(), 10)}
		container.Env = []core.EnvVar{{Name: "NVIDIA_DRIVER_CAPABILITIES", Value: "utility"}} // what it sees, the device plugin says
	}
	for name, n := range p.gpus {
		if container.Resources.Limits == nil {
			container.Resources.Limits = core.ResourceList{}
		}
		container.Resources.Limits[core.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	if p.claims > 0 {
		pod.Spec.ResourceClaims = []core.PodResourceClaim{{Name: "gpus", ResourceClaimName: &p.name}}
		container.Resources.Claims = []core.ResourceClaim{{Name: "gpus"}}
	}
	if p.runtime != "" {
		pod.Spec.RuntimeClassName = &p.runtime
	}
	pod.Spec.Containers = []core.Container{container}
	return pod
}

// make creates the pod and its dependencies. Its own priority keeps it from
// displacing other pods, and lets all others displace it.
func (p probe) make(ctx context.Context, c *kubernetes.Client) error {
	never := core.PreemptNever
	err := create(ctx, c, priorityClasses, "", "PriorityClass", &scheduling.PriorityClass{ObjectMeta: probeMeta(p.node, p.name), Value: lowest, PreemptionPolicy: &never})
	if err == nil && p.claims > 0 {
		err = create(ctx, c, resourceClaims, probeNamespace, "ResourceClaim", &resources.ResourceClaim{
			ObjectMeta: probeMeta(p.node, p.name),
			Spec: resources.ResourceClaimSpec{Devices: resources.DeviceClaim{Requests: []resources.DeviceRequest{{
				Name: "gpus", Exactly: &resources.ExactDeviceRequest{DeviceClassName: draDriver, AllocationMode: resources.DeviceAllocationModeExactCount, Count: p.claims},
			}}}},
		})
	}
	if err == nil {
		err = p.makePod(ctx, c)
	}
	return err
}

// makePod creates the pod as soon as the API server knows its priority:
// admission reads a watch, which on a busy server is later than the
// PriorityClass.
func (p probe) makePod(ctx context.Context, c *kubernetes.Client) error {
	ctx, cancel := context.WithTimeout(ctx, priorityKnown)
	defer cancel()
	var refused error
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := create(ctx, c, pods, probeNamespace, "Pod", p.pod())
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "no PriorityClass with name "+p.name) {
			refused = err
			return false, nil
		}
		return err == nil, err
	})
	if err != nil && refused != nil && ctx.Err() != nil {
		return refused
	}
	return err
}

func create(ctx context.Context, c *kubernetes.Client, of schema.GroupVersionResource, namespace, kind string, object any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("write a %s: %w", kind, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(of.GroupVersion().WithKind(kind))
	if _, err := c.Dynamic.Resource(of).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: "stoke"}); err != nil {
		return fmt.Errorf("make the %s %s: %w", kind, u.GetName(), err)
	}
	return nil
}

// RemoveProbes removes all that Verify has made for a node, whoever was killed
// before.
func RemoveProbes(ctx context.Context, c *kubernetes.Client, node string) error {
	for _, of := range []schema.GroupVersionResource{pods, resourceClaims, priorityClasses} {
		namespace := probeNamespace
		if of == priorityClasses {
			namespace = ""
		}
		list, err := c.Dynamic.Resource(of).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: probeLabel})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for pods that tried the GPUs of node %s: %w", node, err)
		}
		for _, u := range list.Items {
			if u.GetAnnotations()[probeLabel] != node {
				continue
			}
			err := c.Dynamic.Resource(of).Namespace(namespace).Delete(ctx, u.GetName(), metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("remove %s: %w", name(u), err)
			}
		}
	}
	return nil
}

// Users are the pods on a node that have GPUs, as NAMESPACE/NAME, and how many of
// each resource is left.
func Users(ctx context.Context, c *kubernetes.Client, s *State, gpus map[string]int64) (users []string, free map[string]int64, err error) {
	free = map[string]int64{}
	for name := range gpus {
		amount := s.Node.Status.Allocatable[core.ResourceName(name)]
		free[name] = amount.Value()
	}
	err = listEach(ctx, c, pods, "spec.nodeName="+s.Node.Name, func(p *core.Pod) {
		if _, ours := p.Labels[probeLabel]; ours || p.Status.Phase == core.PodSucceeded || p.Status.Phase == core.PodFailed {
			return
		}
		has := len(p.Spec.ResourceClaims) > 0
		for name, n := range podResources(&p.Spec, gpus) {
			has = has || n > 0
			free[name] -= n
		}
		if has {
			users = append(users, p.Namespace+"/"+p.Name)
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("look at the pods of node %s: %w", s.Node.Name, err)
	}
	maps.DeleteFunc(free, func(_ string, n int64) bool { return n <= 0 })
	slices.Sort(users)
	return users, free, nil
}

// podResources is how much of each resource a pod has: init containers come one after
// another, and hand theirs on.
func podResources(spec *core.PodSpec, gpus map[string]int64) map[string]int64 {
	all := map[string]int64{}
	for name := range gpus {
		var first, together int64
		for _, c := range spec.InitContainers {
			n := c.Resources.Limits[core.ResourceName(name)]
			first = max(first, n.Value())
		}
		for _, c := range spec.Containers {
			n := c.Resources.Limits[core.ResourceName(name)]
			together += n.Value()
		}
		all[name] = max(first, together)
	}
	return all
}

// nvidiaRuntime is the RuntimeClass that pods with NVIDIA's GPUs need; "" where
// the cluster has none.
func nvidiaRuntime(ctx context.Context, c *kubernetes.Client) (string, error) {
	const name = "nvidia"
	_, err := c.Dynamic.Resource(runtimeClasses).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look at the RuntimeClass %s: %w", name, err)
	}
	return name, nil
}
