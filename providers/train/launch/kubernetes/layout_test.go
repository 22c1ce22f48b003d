package kubernetes

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

var update = flag.Bool("update", false, "rewrite golden files")

// someRun is what runs of tests train.
func someRun(workers, servers int) spec.Spec {
	s := spec.Default()
	s.Name, s.Model = "digits", "mlp"
	s.Dataset.Path, s.Dataset.Hash = "/home/ada/digits", "sha256:0123"
	s.Worker.Replicas, s.ParameterServer.Replicas = workers, servers
	return s
}

// small is a placement with nothing that may be left out.
func small() launch.Placement {
	return launch.Placement{Namespace: "lab", Image: "registry.test/trainer:1", Port: 7070, Dataset: "/data"}
}

// everything is a placement with every field of it, but what needs a privileged
// namespace.
func everything() launch.Placement {
	p := small()
	p.PullPolicy, p.PullSecrets, p.Port = "IfNotPresent", []string{"registry"}, 9000
	p.Environment = map[string]string{"LOG": "debug", "HTTPS_PROXY": "http://proxy.test:3128"}
	p.Dataset, p.Checkpoints = "/shared/digits", "/shared/checkpoints"
	role := launch.PodRole{
		CPU: "500m", Memory: "512Mi", EphemeralStorage: "1Gi", Bandwidth: 100, SpreadOver: "topology.kubernetes.io/zone",
		NodeSelector: map[string]string{"disk": "ssd"}, Priority: launch.PriorityHigh,
		Tolerations: []launch.Toleration{{Key: "team", Value: "vision", Effect: "NoSchedule"}, {Key: "spot"}},
	}
	p.Coordinator, p.Server, p.Worker = role, role, role
	p.Worker.SharedMemory, p.Worker.Priority = "64Mi", launch.PriorityLow
	p.Volumes = []launch.Volume{
		{Path: "/shared", Claim: "shared", SubPath: "vision"},
		{Path: "/etc/program", ConfigMap: "program"},
		{Path: "/etc/login", Secret: "login"},
		{Path: "/scratch", EmptyDir: "2Gi"},
	}
	return p
}

// accelerated is a placement of workers of two priorities with GPUs, whose log
// outlives the coordinator's pod.
func accelerated() launch.Placement {
	p := small()
	p.Storage, p.StorageClass = "1Gi", "standard"
	p.Worker.GPUs, p.Worker.GPUResource, p.HighPriority, p.Worker.Priority = 2, "nvidia.com/mig-1g.10gb", 1, launch.PriorityLow
	p.Coordinator.Priority, p.Server.Priority = launch.PriorityHigh, launch.PriorityHigh
	return p
}

// reducingRun is a run by all-reduce.
func reducingRun(workers int) spec.Spec {
	s := someRun(workers, 0)
	s.Strategy = spec.StrategyAllReduce
	return s
}

// reaching is a placement of workers of two priorities that reach the checkpoints.
func reaching() launch.Placement {
	p := small()
	p.Checkpoints, p.HighPriority, p.Worker.Priority = "gs://lab/checkpoints", 1, launch.PriorityLow
	return p
}

// privileged is a placement of pods with volumes that the Pod Security level
// restricted refuses.
func privileged() launch.Placement {
	p := small()
	p.Volumes = []launch.Volume{
		{Path: "/data", HostPath: "/srv/data", ReadOnly: true},
		{Path: "/home", NFSServer: "nas.test", NFSPath: "/export/home", ReadOnly: true},
	}
	return p
}

// layouts are the golden ones, by the names of their files.
func layouts() map[string]*layout {
	return map[string]*layout{
		"small":       {"run-0000000000000001", someRun(1, 1), small(), 0},
		"everything":  {"run-0000000000000002", someRun(4, 2), everything(), 0},
		"accelerated": {"run-0000000000000003", someRun(3, 1), accelerated(), 0},
		"program":     programRun(2, 1),
		"all-reduce":  {"run-0000000000000005", reducingRun(3), reaching(), 0},
		"privileged":  {"run-0000000000000004", someRun(2, 1), privileged(), 0},
	}
}

// objects are all that a run has, in the order in which they are made.
func objects(t *testing.T, l *layout) []runtime.Object {
	t.Helper()
	var all []runtime.Object
	for _, c := range l.classes() {
		all = append(all, c)
	}
	config, err := l.configMap("op-1")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := l.secret("0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, config, secret, l.service(), l.policy())
	if l.Storage != "" {
		all = append(all, l.claim())
	}
	for _, j := range l.jobs() {
		all = append(all, j)
	}
	return all
}

func TestObjectsOfARun(t *testing.T) {
	for name, l := range layouts() {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			for _, o := range objects(t, l) {
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
				if err != nil {
					t.Fatal(err)
				}
				delete(content, "status")
				if content["kind"] == "Secret" {
					// It is another one for each run.
					for key := range content["data"].(map[string]any) {
						content["data"].(map[string]any)[key] = ""
					}
				}
				text, err := yaml.Marshal(content)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(text)
			}
			file := filepath.Join("testdata", "objects", name+".yaml")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("the objects are others than %s says (-want +got):\n%s\nAre they wanted? Then: go test -run %s -update", file, diff, t.Name())
			}
		})
	}
}

// TestEveryFieldIsGolden finds a field that no golden file shows.
func TestEveryFieldIsGolden(t *testing.T) {
	shown := make(map[string]bool)
	var visit func(name string, v reflect.Value)
	visit = func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				visit(name+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Slice:
			if e := v.Type().Elem(); e.Kind() == reflect.Struct {
				visit(name, reflect.Zero(e)) // its fields are to be shown, too
				for i := range v.Len() {
					visit(name, v.Index(i))
				}
				return
			}
			fallthrough
		default:
			shown[name] = shown[name] || !v.IsZero()
		}
	}
	for _, l := range layouts() {
		visit("Placement", reflect.ValueOf(l.Placement))
	}
	for name, ok := range shown {
		// Only workers have these: there is no argument for other roles.
		bare := name == "Placement.Coordinator.SharedMemory" || name == "Placement.Server.SharedMemory" ||
			name == "Placement.Coordinator.GPUs" || name == "Placement.Server.GPUs" ||
			name == "Placement.Coordinator.GPUResource" || name == "Placement.Server.GPUResource"
		if ok == bare {
			t.Errorf("%s: shown in a golden file: %v", name, ok)
		}
	}
	if len(shown) < 40 {
		t.Errorf("only %d fields found: they are not read", len(shown))
	}
}
