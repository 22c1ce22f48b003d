package member

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	scheduling "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// trial is a node with two GPUs whose pods say what the test has them say.
type trial struct {
	t       *testing.T
	k       *kubetest.Cluster
	c       *kubernetes.Client
	kubelet *kubetest.Kubelet
	node    string
}

func newTrial(t *testing.T, node string) *trial {
	t.Helper()
	k, c := dialled(t)
	r := &trial{t: t, k: k, c: c, kubelet: k.AddKubelet(t, node), node: node}
	k.Kubectl(t, "", "patch", "node", node, "--subresource=status", "--type=merge", "-p",
		`{"status":{"capacity":{"nvidia.com/gpu":"2"},"allocatable":{"nvidia.com/gpu":"2"}}}`)
	return r
}

// says has the pods that try the node say something, once all of them run.
func (r *trial) says(ctx context.Context, lines map[string]string) error {
	for {
		list, err := r.k.Client.CoreV1().Pods(probeNamespace).List(ctx, metav1.ListOptions{LabelSelector: probeLabel})
		if err != nil {
			return err
		}
		running := map[string]string{}
		for _, p := range list.Items {
			for of := range lines {
				if strings.HasPrefix(p.Name, of) && p.Status.Phase == core.PodRunning {
					running[of] = p.Name
				}
			}
		}
		if len(running) == len(lines) {
			for of, line := range lines {
				r.kubelet.Say(r.t, probeNamespace, running[of], "probe", line)
				if !strings.HasPrefix(line, "round") {
					r.kubelet.End(r.t, probeNamespace, running[of], "probe", 1, "Error")
				}
			}
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nothingLeft fails unless all that was made for trying has gone.
func (r *trial) nothingLeft() {
	r.t.Helper()
	pods, err := r.k.Client.CoreV1().Pods("").List(r.t.Context(), metav1.ListOptions{LabelSelector: probeLabel})
	if err != nil {
		r.t.Fatal(err)
	}
	classes, err := r.k.Client.SchedulingV1().PriorityClasses().List(r.t.Context(), metav1.ListOptions{LabelSelector: probeLabel})
	if err != nil {
		r.t.Fatal(err)
	}
	if len(pods.Items)+len(classes.Items) > 0 {
		r.t.Errorf("%d pods and %d priorities are left", len(pods.Items), len(classes.Items))
	}
}

// verify has pods try the node: they say first, and after systemd was reloaded
// then. reloads is how often it was.
func (r *trial) verify(first, then map[string]string) (v Verified, reloads int, err error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	saying := make(chan error, 1)
	go func() { saying <- r.says(ctx, first) }()
	want := Spec{Name: r.node, GPUs: map[string]int64{GPU: 2}}
	v, err = Verify(ctx, r.c, want, "stoke.test/none:1", func(ctx context.Context) error {
		reloads++
		return r.says(ctx, then)
	}, 40*time.Second)
	if failed := <-saying; failed != nil {
		r.t.Errorf("pods that try GPUs: %v", failed)
	}
	r.nothingLeft()
	return v, reloads, err
}

const opener, other = "stoke-opens-gpus-", "stoke-sees-no-gpu-"

// TestVerify: GPUs are relied on once a pod has opened them all, one that asked
// for none sees none, and both hold after systemd was reloaded.
func TestVerify(t *testing.T) {
	r := newTrial(t, "tried")
	once, again := map[string]string{opener: "round 1", other: "round 1"}, map[string]string{opener: "round 9", other: "round 9"}
	if v, reloads, err := r.verify(once, again); err != nil || len(v.Users) > 0 || reloads != 1 {
		t.Errorf("%+v, reloaded %d times, %v", v, reloads, err)
	}
	for _, tt := range []struct {
		what        string
		first, then map[string]string
		says        string
		reloads     int
	}{
		{"a GPU that does not open", map[string]string{opener: "cannot open /dev/nvidia1: No such device", other: "round 1"}, nil,
			"a pod with 2 nvidia.com/gpu cannot open /dev/nvidia1: No such device", 0},
		{"a pod that sees what it did not ask for", map[string]string{opener: "round 1", other: "sees /dev/nvidia0, and asked for no GPU"}, nil,
			"a pod that asked for no GPU sees /dev/nvidia0", 0},
		{"a GPU lost by reloading", once, map[string]string{opener: "cannot open /dev/nvidia0: Operation not permitted", other: "round 9"},
			"Operation not permitted, after systemctl daemon-reload", 1},
		{"one seen after reloading", once, map[string]string{opener: "round 9", other: "sees /dev/nvidia0, and asked for no GPU"},
			"sees /dev/nvidia0, and asked for no GPU, after systemctl daemon-reload", 1},
	} {
		_, reloads, err := r.verify(tt.first, tt.then)
		if failed := (*UnverifiedError)(nil); !errors.As(err, &failed) || !strings.Contains(err.Error(), tt.says) || reloads != tt.reloads {
			t.Errorf("%s: reloaded %d times, %v", tt.what, reloads, err)
		}
	}
}

// TestVerifyBeside: GPUs that others have are left alone, and so is systemd.
func TestVerifyBeside(t *testing.T) {
	r := newTrial(t, "shared")
	ns := r.k.Namespace(t)
	_, err := r.k.Client.CoreV1().Pods(ns).Create(t.Context(), &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "bert"},
		Spec: core.PodSpec{
			NodeName: r.node,
			Containers: []core.Container{{Name: "c", Image: "stoke.test/none:1", Resources: core.ResourceRequirements{
				Limits: core.ResourceList{GPU: resource.MustParse("1")},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v, reloads, err := r.verify(map[string]string{opener: "round 1", other: "round 1"}, nil)
	if err != nil || reloads != 0 || !slices.Equal(v.Users, []string{ns + "/bert"}) {
		t.Errorf("%+v, reloaded %d times, %v", v, reloads, err)
	}
}

// TestProbes: what a killed run has left goes, and nothing else; its pods give way
// to everybody.
func TestProbes(t *testing.T) {
	k, c := node(t, kubetest.GPUNode("left", 2))
	ours, theirs := probe{node: "left", name: "stoke-opens-gpus-left", image: "stoke.test/none:1", gpus: map[string]int64{GPU: 2}}, probe{node: "another", name: "stoke-opens-gpus-another", image: "stoke.test/none:1"}
	for _, p := range []probe{ours, theirs} {
		if err := p.make(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	made, err := k.Client.CoreV1().Pods(probeNamespace).Get(t.Context(), ours.name, metav1.GetOptions{})
	if err != nil || *made.Spec.Priority != lowest || *made.Spec.PreemptionPolicy != core.PreemptNever || made.Spec.ActiveDeadlineSeconds == nil {
		t.Errorf("%+v, %v", made.Spec, err)
	}
	if err := awaitGone(t.Context(), c, "left"); err != nil {
		t.Fatal(err)
	}
	k.Eventually(t, "the pod is gone", func(ctx context.Context) (bool, error) {
		_, err := k.Client.CoreV1().Pods(probeNamespace).Get(ctx, ours.name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if _, err := k.Client.CoreV1().Pods(probeNamespace).Get(t.Context(), theirs.name, metav1.GetOptions{}); err != nil {
		t.Errorf("another node's: %v", err)
	}
	if err := RemoveProbes(t.Context(), c, "another"); err != nil {
		t.Fatal(err)
	}
}

// TestProbeBeforePriority: an API server that does not know the priority yet is
// asked again; one that never does is an error.
func TestProbeBeforePriority(t *testing.T) {
	_, c := node(t, kubetest.GPUNode("early", 1))
	p := probe{node: "early", name: "stoke-sees-no-gpu-early", image: "stoke.test/none:1"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := p.makePod(ctx, c); !apierrors.IsForbidden(err) {
		t.Errorf("without a priority: %v", err)
	}
	made := make(chan error, 1)
	go func() { made <- p.makePod(t.Context(), c) }()
	never := core.PreemptNever
	class := &scheduling.PriorityClass{ObjectMeta: probeMeta(p.node, p.name), Value: lowest, PreemptionPolicy: &never}
	if err := create(t.Context(), c, priorityClasses, "", "PriorityClass", class); err != nil {
		t.Fatal(err)
	}
	if err := <-made; err != nil {
		t.Error(err)
	}
	if err := RemoveProbes(t.Context(), c, "early"); err != nil {
		t.Fatal(err)
	}
}

// TestProbeOfDevices: where NVIDIA's DRA driver allocates, a claim asks for the
// devices, and the API server takes it.
func TestProbeOfDevices(t *testing.T) {
	_, c := node(t, kubetest.Node{Name: "claims"})
	p := probe{node: "claims", name: "stoke-opens-gpus-claims", image: "stoke.test/none:1", claims: 2}
	if err := p.make(t.Context(), c); err != nil {
		t.Error(err)
	}
	if got := p.pod().Spec.Containers[0].Command; got[len(got)-1] != "2" {
		t.Errorf("it is told %q", got)
	}
	if err := RemoveProbes(t.Context(), c, "claims"); err != nil {
		t.Fatal(err)
	}
}
