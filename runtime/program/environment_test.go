package program

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example is rank 2 and 3 of 4 on the second of two machines.
func example() Spec {
	return Spec{
		Command: []string{"python3", "train.py"}, Folder: "/code", Environment: []string{"PATH=/bin", "HOME=/a", "HOME=/b"},
		Framework: Torch, Processes: 2, Checkpoints: "/c", Logs: "/logs", Scratch: "/s",
		Member: Member{Run: "r1", Name: "worker-1", Generation: 3, Role: Worker, Task: 2, Rank: 2, World: 4, Group: 1, Groups: 2,
			Address: "10.0.0.1", Port: 29500, Restarts: 1, MaxRestarts: 5},
	}
}

func variables(t *testing.T, s Spec, local int) map[string]string {
	t.Helper()
	if err := s.validate(); err != nil {
		t.Fatal(err)
	}
	list, err := s.environment(local)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		if _, twice := all[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		all[name] = value
	}
	return all
}

func TestEnvironmentOfTorchrun(t *testing.T) {
	s := example()
	s.Environment = append(s.Environment, "RANK=9", "STOKE_TOKEN=secret", "TORCHELASTIC_ERROR_FILE=/x")
	want := map[string]string{
		"PATH": "/bin", "HOME": "/b",
		"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2",
		"ROLE_RANK": "3", "ROLE_WORLD_SIZE": "4", "ROLE_NAME": "worker", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500",
		"TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_MAX_RESTARTS": "5", "TORCHELASTIC_RUN_ID": "r1", "TORCHELASTIC_USE_AGENT_STORE": "False",
		"OMP_NUM_THREADS": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
		"STOKE_CHECKPOINT_DIR": "/c", "STOKE_METRICS_FILE": "/s/metrics-3-3.jsonl", "STOKE_PARAMETERS": "/s/parameters.json",
		"STOKE_MARK": "r1/worker-1/3/",
	}
	if diff := cmp.Diff(want, variables(t, s, 1)); diff != "" {
		t.Error(diff)
	}
	for name := range want {
		if ours := name != "PATH" && name != "HOME" && name != "OMP_NUM_THREADS" && name != "TORCH_NCCL_ASYNC_ERROR_HANDLING"; Reserved(name) != ours {
			t.Errorf("%s reserved: %v", name, !ours)
		}
	}
}

func TestVariablesOfTheUserStay(t *testing.T) {
	s := example()
	s.Environment = []string{"OMP_NUM_THREADS=7", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "NCCL_DEBUG=INFO", "CUDA_VISIBLE_DEVICES=3", "EMPTY="}
	got := variables(t, s, 0)
	for name, want := range map[string]string{
		"OMP_NUM_THREADS": "7", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "NCCL_DEBUG": "INFO", "CUDA_VISIBLE_DEVICES": "3", "EMPTY": "",
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s=%s, want %s", name, value, want)
		}
	}
	s.Environment, s.Processes = nil, 1
	got = variables(t, s, 0)
	for _, name := range []string{"OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "STOKE_RESUME_FROM", "TF_CONFIG", "WORKER_HOSTS", "JAX_PROCESS_ID"} {
		if value, ok := got[name]; ok {
			t.Errorf("%s=%s", name, value)
		}
	}
}

func TestEnvironmentOfTensorFlow(t *testing.T) {
	s := example()
	s.Framework = TensorFlow
	s.Processes = 1
	s.Resume = "/c/step-1"
	s.Member.Role, s.Member.Task, s.Member.Rank, s.Member.World = Server, 1, 1, 2
	s.Member.Members = map[string][]string{
		Chief: {"a:1"}, Worker: {"b:1", "c:1"}, Server: {"d:1", "e:1"}, Evaluator: {"f:1"},
	}
	got := variables(t, s, 0)
	for name, want := range map[string]string{
		"WORKER_HOSTS": "b:1,c:1", "PS_HOSTS": "d:1,e:1", "JOB_NAME": "ps", "TASK_INDEX": "1", "POD_NAME": "r1-ps-1",
		"ROLE_RANK": "1", "ROLE_WORLD_SIZE": "2", "ROLE_NAME": "ps", "STOKE_RESUME_FROM": "/c/step-1",
		"TF_CONFIG": `{"cluster":{"chief":["a:1"],"ps":["d:1","e:1"],"worker":["b:1","c:1"]},"task":{"type":"ps","index":1}}`,
	} {
		if got[name] != want {
			t.Errorf("%s=%s, want %s", name, got[name], want)
		}
	}
	s.Member.Role, s.Member.Task = Evaluator, 0
	if got := variables(t, s, 0)["TF_CONFIG"]; !strings.Contains(got, `"task":{"type":"evaluator","index":0}`) || strings.Contains(got, "f:1") {
		t.Error(got)
	}
	if len(s.Member.Members) != 4 {
		t.Error("the caller's addresses were changed")
	}
}

func TestEnvironmentOfJAX(t *testing.T) {
	s := example()
	s.Framework = JAX
	s.Member.Address = "fd00::1"
	got := variables(t, s, 1)
	for name, want := range map[string]string{"JAX_COORDINATOR_ADDRESS": "[fd00::1]:29500", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "3"} {
		if got[name] != want {
			t.Errorf("%s=%s, want %s", name, got[name], want)
		}
	}
}

func TestDevices(t *testing.T) {
	for _, test := range []struct {
		framework Framework
		devices   []string
		local     int
		want      string
	}{
		{Torch, []string{"4", "5"}, 1, "4,5"}, // programs for torchrun choose by LOCAL_RANK
		{Torch, []string{"4"}, 1, "4"},
		{JAX, []string{"4", "5"}, 1, "5"},
		{None, []string{"GPU-a", "GPU-b", "GPU-c", "GPU-d"}, 0, "GPU-a,GPU-b"},
	} {
		s := example()
		s.Framework, s.Devices = test.framework, test.devices
		if got := variables(t, s, test.local)["CUDA_VISIBLE_DEVICES"]; got != test.want {
			t.Errorf("%s, rank %d of %v: %s, want %s", test.framework, test.local, test.devices, got, test.want)
		}
	}
}

func TestParameters(t *testing.T) {
	parameters := map[string]any{
		"lr": 1e-3, "steps": 1e6, "epochs": json.Number("3"), "name": "a b'c", "sync": true, "n": 7, "big": int64(1) << 40, "none": nil,
		"learning.rate": 0.5, "tiny": 1e-30,
	}
	args, err := Substitute([]string{"--lr={{lr}}", "{{ steps }}", "{{epochs}}{{name}}", "{{{sync}}}", "{{ not a name }}", "{{}}", "{{none}}", "{{learning.rate}}"},
		parameters)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--lr=0.001", "1000000", "3a b'c", "{true}", "{{ not a name }}", "{{}}", "", "0.5"}
	if diff := cmp.Diff(want, args); diff != "" {
		t.Error(diff)
	}
	s := example()
	s.Parameters = parameters
	got := variables(t, s, 0)
	for name, want := range map[string]string{
		"LR": "0.001", "STEPS": "1000000", "EPOCHS": "3", "NAME": "a b'c", "SYNC": "true", "N": "7", "BIG": "1099511627776", "NONE": "",
		"LEARNING_RATE": "0.5", "TINY": "1e-30",
	} {
		if value, ok := got["STOKE_PARAM_"+name]; !ok || value != want {
			t.Errorf("%s=%s, want %s", name, value, want)
		}
	}
}

func TestParametersThatCannotBeGiven(t *testing.T) {
	_, err := Substitute([]string{"{{lr}}", "{{rate}}"}, map[string]any{"lr": 1.0, "batch": 2.0})
	if !errors.Is(err, ErrParameter) || !strings.Contains(err.Error(), "{{rate}}") || !strings.Contains(err.Error(), "batch, lr") {
		t.Error(err)
	}
	if _, err := Substitute([]string{"{{x}}"}, nil); !errors.Is(err, ErrParameter) {
		t.Error(err)
	}
	for name, parameters := range map[string]map[string]any{
		"list": {"a": []any{1}}, "object": {"a": map[string]any{}}, "equal variables": {"a.b": 1.0, "a-b": 2.0}, "NUL": {"a": "x\x00"},
	} {
		s := example()
		s.Parameters = parameters
		if _, err := s.environment(0); !errors.Is(err, ErrParameter) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSettingsThatAreNotValid(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"no command":      func(s *Spec) { s.Command = nil },
		"no processes":    func(s *Spec) { s.Processes = 0 },
		"rank":            func(s *Spec) { s.Member.Rank = 3 },
		"group":           func(s *Spec) { s.Member.Group = 2 },
		"run":             func(s *Spec) { s.Member.Run = "a/b" },
		"name":            func(s *Spec) { s.Member.Name = "" },
		"role":            func(s *Spec) { s.Member.Role = "a\n" },
		"framework":       func(s *Spec) { s.Framework = "pytorch" },
		"relative folder": func(s *Spec) { s.Folder = "code" },
		"grace":           func(s *Spec) { s.Grace = -1 },
		"NUL":             func(s *Spec) { s.Command = []string{"a\x00"} },
		"too few devices": func(s *Spec) { s.Framework, s.Devices = JAX, []string{"0"} },
		"unequal share":   func(s *Spec) { s.Framework, s.Devices = None, []string{"0", "1", "2"} },
		"missing address": func(s *Spec) { s.Member.Members = map[string][]string{Worker: {"a:1", "b:1", "c:1"}} },
	} {
		s := example()
		change(&s)
		if err := s.validate(); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMarks(t *testing.T) {
	s := example()
	all := "\x00STOKE_MARK=" + s.Member.mark().String()
	for mark, want := range map[Mark]bool{
		{Run: "r1"}: true, {Run: "r1", Member: "worker-1"}: true, {"r1", "worker-1", 3}: true,
		{Run: "r"}: false, {Run: "r1", Member: "worker"}: false, {"r1", "worker-1", 30}: false, {"r1", "worker-1", 2}: false,
	} {
		if got := strings.Contains(all, "\x00STOKE_MARK="+mark.String()); got != want {
			t.Errorf("%+v: %v", mark, got)
		}
	}
}
