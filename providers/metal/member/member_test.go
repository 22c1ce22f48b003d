package member

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	resources "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

var shared kubetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// node adds a node to a real API server, and a client to look at it.
func node(t *testing.T, n kubetest.Node) (*kubetest.Cluster, *kubernetes.Client) {
	t.Helper()
	k, c := dialled(t)
	k.AddNodes(t, n)
	return k, c
}

func dialled(t *testing.T) (*kubetest.Cluster, *kubernetes.Client) {
	t.Helper()
	c := shared.Cluster(t)
	client, err := kubernetes.Dial(t.Context(), connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: c.Kubeconfig()}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return c, client
}

func seen(t *testing.T, c *kubernetes.Client, name string) *State {
	t.Helper()
	s, err := Observe(t.Context(), c, name)
	if err != nil || s == nil {
		t.Fatalf("node %s: %v, %v", name, s, err)
	}
	return s
}

// TestLabelsAndTaints: what is declared comes, what is declared no more goes, and
// what others have set stays.
func TestLabelsAndTaints(t *testing.T) {
	for name, joined := range map[string]bool{"worker": true, "head": false} {
		t.Run(name, func(t *testing.T) {
			dedicated := core.Taint{Key: "dedicated", Value: "others", Effect: core.TaintEffectNoSchedule}
			_, c := node(t, kubetest.Node{Name: name, Labels: map[string]string{"pool": "before", "theirs": "1"}, Taints: []core.Taint{dedicated}})
			gpu := core.Taint{Key: GPU, Value: "present", Effect: core.TaintEffectNoSchedule}
			want := Spec{Name: name, ID: "one", Joined: joined, Labels: map[string]string{"pool": "gpu", "node-role.kubernetes.io/gpu": ""}, Taints: []core.Taint{gpu}}
			if d := Diff(want, seen(t, c, name)); len(d) != 3 || d[0].Key != "node-role.kubernetes.io/gpu" || d[1].Have != "before" || d[2].Key != "nvidia.com/gpu:NoSchedule" {
				t.Errorf("before: %+v", d)
			}
			apply(t, c, want)
			is := seen(t, c, name)
			if d := Diff(want, is); len(d) > 0 || is.Mark.ID != "one" || is.Node.Labels["theirs"] != "1" || is.taint(dedicated) == nil {
				t.Errorf("after: %+v, labels %v, taints %v", d, is.Node.Labels, is.Node.Spec.Taints)
			}
			version := is.Node.ResourceVersion
			apply(t, c, want)
			if is := seen(t, c, name); is.Node.ResourceVersion != version && len(Diff(want, is)) > 0 {
				t.Error("a second Apply changes the node")
			}

			want.Labels, want.Taints = map[string]string{"node-role.kubernetes.io/gpu": ""}, nil
			apply(t, c, want)
			is = seen(t, c, name)
			pool, there := is.Node.Labels["pool"]
			if joined && there || !joined && pool != "before" {
				t.Errorf("a label that is declared no more is %q", pool)
			}
			if is.taint(gpu) != nil || is.taint(dedicated) == nil {
				t.Errorf("taints %v", is.Node.Spec.Taints)
			}

			if err := Release(t.Context(), c, name, "another"); err != nil {
				t.Fatal(err)
			}
			if is := seen(t, c, name); is.Mark.ID != "one" {
				t.Error("somebody else's Release takes the mark")
			}
			if err := Release(t.Context(), c, name, "one"); err != nil {
				t.Fatal(err)
			}
			is = seen(t, c, name)
			if _, there := is.Node.Labels["node-role.kubernetes.io/gpu"]; there || is.Mark.ID != "" || is.Node.Annotations[Annotation] != "" {
				t.Errorf("after Release: %v %v", is.Node.Labels, is.Node.Annotations)
			}
		})
	}
	_, c := node(t, kubetest.Node{Name: "other"})
	if err := Release(t.Context(), c, "nobody", "one"); err != nil {
		t.Errorf("Release of a node that is gone: %v", err)
	}
}

func apply(t *testing.T, c *kubernetes.Client, want Spec) {
	t.Helper()
	if err := Apply(t.Context(), c, want); err != nil {
		t.Fatal(err)
	}
}

// TestGPUs: a node is ready with as many as are declared, and what is missing is
// told apart.
func TestGPUs(t *testing.T) {
	k, c := node(t, kubetest.GPUNode("gpus", 2))
	await := func(name string, gpus map[string]int64) string {
		t.Helper()
		_, err := Await(t.Context(), c, Spec{Name: name, GPUs: gpus}, 0)
		var unready *UnreadyError
		switch {
		case err == nil:
			return ""
		case !errors.As(err, &unready):
			t.Fatal(err)
		}
		return err.Error()
	}
	for want, says := range map[int64]string{2: "", 3: "too few GPUs (2 of 3)", 1: "more of nvidia.com/gpu than declared (2, and 1 declared)"} {
		if got := await("gpus", map[string]int64{GPU: want}); !strings.Contains(got, says) || says == "" && got != "" {
			t.Errorf("%d declared: %s", want, got)
		}
	}
	if got := await("gpus", map[string]int64{"nvidia.com/mig-1g.10gb": 7}); !strings.Contains(got, "no device plugin runs on the node that offers nvidia.com/mig-1g.10gb (7 declared)") {
		t.Error(got)
	}
	if got := await("gpus", nil); got != "" {
		t.Errorf("nothing declared: %s", got)
	}
	if got := await("nowhere", nil); !strings.Contains(got, "its kubelet has not registered it") {
		t.Error(got)
	}
	status := `{"status":{"allocatable":{"nvidia.com/gpu":"1"}}}`
	k.Kubectl(t, "", "patch", "node", "gpus", "--subresource=status", "--type=merge", "-p", status)
	if got := await("gpus", map[string]int64{GPU: 2}); !strings.Contains(got, "too few GPUs (1 of 2): the device plugin counts 2, and calls 1 unhealthy") {
		t.Error(got)
	}
}

// TestResourceSlices: where NVIDIA's DRA driver allocates, its devices count, and
// of a pool only the newest generation.
func TestResourceSlices(t *testing.T) {
	k, c := node(t, kubetest.Node{Name: "dra"})
	gpu, offered := "gpu", map[string]int64{GPU: 2, "nvidia.com/mig-1g.10gb.me": 2}
	device := func(name, kind string) resources.Device {
		attributes := map[resources.QualifiedName]resources.DeviceAttribute{"type": {StringValue: &gpu}}
		if kind != gpu {
			mig := "mig"
			attributes["type"], attributes["profile"] = resources.DeviceAttribute{StringValue: &mig}, resources.DeviceAttribute{StringValue: &kind}
		}
		return resources.Device{Name: name, Attributes: attributes}
	}
	slice := func(name, driver string, generation int64, devices ...resources.Device) {
		t.Helper()
		on := "dra"
		_, err := k.Client.ResourceV1().ResourceSlices().Create(t.Context(), &resources.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       resources.ResourceSliceSpec{Driver: driver, NodeName: &on, Pool: resources.ResourcePool{Name: "dra", Generation: generation, ResourceSliceCount: 1}, Devices: devices},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			k.Client.ResourceV1().ResourceSlices().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}
	slice("old", draDriver, 1, device("gpu-0", gpu), device("gpu-1", gpu), device("gpu-2", gpu), device("gpu-3-mig", "2g.20gb"))
	slice("new", draDriver, 2, device("gpu-0", gpu), device("gpu-1", gpu), device("gpu-2-mig-0", "1g.10gb+me"), device("gpu-2-mig-1", "1g.10gb+me"))
	slice("others", "cpu.example.org", 2, device("cpu-0", gpu))
	k.Eventually(t, "the slices are seen", func(ctx context.Context) (bool, error) {
		s, err := Observe(ctx, c, "dra")
		return err == nil && maps.Equal(s.Devices, offered), err
	})
	if short := seen(t, c, "dra").Shortages(Spec{GPUs: offered}); len(short) > 0 {
		t.Errorf("with two GPUs and two slices: %v", short)
	}
	if short := seen(t, c, "dra").Shortages(Spec{GPUs: map[string]int64{GPU: 3}}); len(short) != 1 || short[0].String() != "too few GPUs (2 of 3)" {
		t.Errorf("with two of three devices: %v", short)
	}
	if short := seen(t, c, "dra").Shortages(Spec{GPUs: map[string]int64{"nvidia.com/mig-2g.20gb": 1}}); len(short) != 1 || short[0].String() != "too few of nvidia.com/mig-2g.20gb (0 of 1)" {
		t.Errorf("with a slice of an older generation: %v", short)
	}
}

// TestPinned: volumes that only pods on the node can use.
func TestPinned(t *testing.T) {
	k, c := node(t, kubetest.Node{Name: "disks", Labels: map[string]string{core.LabelHostname: "disks"}})
	volume := func(name string, values ...string) {
		t.Helper()
		_, err := k.Client.CoreV1().PersistentVolumes().Create(t.Context(), &core.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: core.PersistentVolumeSpec{
				Capacity: core.ResourceList{core.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []core.PersistentVolumeAccessMode{core.ReadWriteOnce},
				PersistentVolumeSource: core.PersistentVolumeSource{Local: &core.LocalVolumeSource{Path: "/data"}},
				NodeAffinity: &core.VolumeNodeAffinity{Required: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{
					{MatchExpressions: []core.NodeSelectorRequirement{{Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: values}}},
				}}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			k.Client.CoreV1().PersistentVolumes().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}
	volume("here", "disks")
	volume("elsewhere", "other")
	volume("both", "disks", "other")
	got, err := Pinned(t.Context(), c, seen(t, c, "disks"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []Volume{{Name: "here"}}) {
		t.Errorf("pinned are %v", got)
	}
}

// TestDelete: a node that came back under the same name stays.
func TestDelete(t *testing.T) {
	k, c := node(t, kubetest.Node{Name: "leaves"})
	was := seen(t, c, "leaves")
	stale := *was
	node := *was.Node
	stale.Node = &node
	stale.Node.UID = "00000000-0000-0000-0000-000000000000"
	if err := Delete(t.Context(), c, &stale); err != nil {
		t.Fatal(err)
	}
	seen(t, c, "leaves")
	for range 2 {
		if err := Delete(t.Context(), c, was); err != nil {
			t.Fatal(err)
		}
	}
	k.Eventually(t, "the node is gone", func(ctx context.Context) (bool, error) {
		s, err := Observe(ctx, c, "leaves")
		return s == nil, err
	})
	if err := AwaitRegistered(t.Context(), c, "leaves", time.Millisecond); err == nil || !strings.Contains(err.Error(), "its kubelet has not registered it") {
		t.Errorf("waiting for a node that is gone: %v", err)
	}
}

// TestKubeletConfiguration reads what kubeadm keeps.
func TestKubeletConfiguration(t *testing.T) {
	k, c := node(t, kubetest.Node{Name: "kubelet"})
	if _, err := KubeletConfiguration(t.Context(), c); err == nil {
		t.Error("there is none, and it is read")
	}
	_, err := k.Client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &core.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kubelet-config"}, Data: map[string]string{"kubelet": "kind: KubeletConfiguration\nmaxPods: 40\n"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.Client.CoreV1().ConfigMaps("kube-system").Delete(context.Background(), "kubelet-config", metav1.DeleteOptions{})
	})
	got, err := KubeletConfiguration(t.Context(), c)
	if err != nil || got["maxPods"] != 40.0 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestOutOfService: the taint comes and goes, beside those of others, and the age
// of a lease goes by the clock that is asked.
func TestOutOfService(t *testing.T) {
	dedicated := core.Taint{Key: "dedicated", Value: "others", Effect: core.TaintEffectNoSchedule}
	k, c := node(t, kubetest.Node{Name: "off", Taints: []core.Taint{dedicated}})
	for _, off := range []bool{true, true, false, false} {
		if err := SetOutOfService(t.Context(), c, "off", off); err != nil {
			t.Fatal(err)
		}
		if is := seen(t, c, "off"); is.IsOutOfService() != off || is.taint(dedicated) == nil {
			t.Errorf("off %v: %v", off, is.Node.Spec.Taints)
		}
	}
	if _, leased, err := Silent(t.Context(), c, "nobody", time.Now()); leased || err != nil {
		t.Errorf("a node without a lease: %v, %v", leased, err)
	}
	renewed := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	_, err := k.Client.CoordinationV1().Leases(core.NamespaceNodeLease).Create(t.Context(), &coordination.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "leased"}, Spec: coordination.LeaseSpec{RenewTime: &renewed},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	since, leased, err := Silent(t.Context(), c, "leased", renewed.Add(time.Minute))
	if since != time.Minute || !leased || err != nil {
		t.Errorf("a lease that is a minute old by its cluster's clock: %s, %v, %v", since, leased, err)
	}
}
