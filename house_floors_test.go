package stoke_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
)

// floors lists the house from the ground up. A package imports only from floors
// below its own; two packages on one floor do not know each other. A pattern
// ends in /* for every package directly below, in /... for all of them.
var floors = []struct {
	name     string
	packages []string
}{
	{"processes of the machine, plugins for devices", []string{"runtime/process", "runtime/pjrt", "runtime/pjrt/pjrttest"}},
	{"files that are whole or absent, or of tensors, regular expressions, usage of machines",
		[]string{"runtime/durable", "runtime/safetensors", "runtime/pattern", "runtime/usage"}},
	{"NVIDIA's GPUs", []string{"runtime/cuda"}},
	{"programs of GPUs, judged", []string{"runtime/stablehlo", "runtime/stablehlo/stablehlotest"}},
	{"snapshots of code, and GPUs", []string{"runtime/code", "runtime/gpu"}},
	{"the trainer's contracts, and the child that reads GPUs", []string{"runtime/spec", "runtime/certificate", "runtime/gpu/probe"}},
	{"models", []string{"runtime/model"}},
	{"updates, and ready models", []string{"runtime/optimizer", "runtime/model/zoo"}},
	{"the engines' interface", []string{"runtime/engine"}},
	{"the trainer's API, and where checkpoints lie", []string{"runtime/api", "runtime/checkpoint"}},
	{"a run on one machine", []string{"runtime/run"}},
	{"the trainer's parts", []string{"runtime/engine/*", "runtime/dataset", "runtime/ledger", "runtime/history", "runtime/wire", "runtime/weights", "runtime/slot"}},
	{"the devices of XLA's engine", []string{"runtime/engine/xla/*"}},
	{"what a run names, resolved", []string{"runtime/workload", "runtime/program"}},
	{"what keeps a run together", []string{"runtime/session"}},
	{"the trainer's roles, and who owns their processes", []string{"runtime/coordinator", "runtime/ps", "runtime/worker", "runtime/rendezvous", "runtime/agent", "runtime/supervisor"}},
	{"names and syntax", []string{"modules/address", "modules/syntax"}},
	{"expressions, and where modules come from", []string{"modules/lang", "modules/source", "modules/library"}},
	{"configurations", []string{"modules"}},
	{"what configurations need, installed", []string{"modules/install"}},
	{"the providers' interface", []string{"providers"}},
	{"how experiments are launched", []string{"providers/train/launch"}},
	{"machines behind SSH", []string{"providers/connect/ssh", "providers/connect/ssh/sshtest"}},
	{"connections, plugins, and providers that need neither", []string{"providers/connect", "providers/plugin", "providers/builtin", "providers/filetest", "providers/reference"}},
	{"one machine, and one cluster", []string{"providers/metal/host", "providers/connect/kubernetes"}},
	{"machines of clouds as tables", []string{"providers/gke/catalogue"}},
	{"machines and clusters for tests", []string{"providers/metal/host/hosttest", "providers/metal/lab", "providers/metal/drain/draintest", "providers/connect/kubetest", "providers/gke/gcptest"}},
	{"clusters that run pods, for tests", []string{"providers/connect/podtest"}},
	{"what a machine is, its packages, and a node as its cluster has it", []string{"providers/metal/facts", "providers/metal/packages", "providers/metal/member"}},
	{"objects as data, and their pods", []string{"providers/kube/object", "providers/kube/pods"}},
	{"objects in clusters", []string{"providers/kube/live"}},
	{"the providers' parts", []string{"providers/train/launch/*", "providers/train/bench", "providers/train/program", "providers/train/graph", "providers/train/image", "providers/train/image/imagetest", "providers/metal/*", "providers/kube/*", "providers/gke/*"}},
	{"the providers", []string{"providers/train", "providers/train/traintest", "providers/metal", "providers/gke", "providers/kube"}},
	{"sealing", []string{"plan/seal"}},
	{"the state, the providers' contract, and what nobody may see", []string{"plan/state", "plan/contract", "plan/redact"}},
	{"curves, how terminals show them, and runs as files", []string{"plan/series", "plan/canvas", "plan/archive"}},
	{"backends", []string{"plan/state/backend"}},
	{"states made of objects", []string{"plan/state/store/object"}},
	{"where states are kept", []string{"plan/state/store/*"}},
	{"values", []string{"plan/eval"}},
	{"plans", []string{"plan"}},
	{"carrying plans out", []string{"plan/run"}},
	{"what people read", []string{"plan/view"}},
	{"pseudo-terminals for tests", []string{"cmd/stoke/terminal/terminaltest"}},
	{"terminals of commands", []string{"cmd/stoke/terminal"}},
	{"screens of commands", []string{"cmd/stoke/watch", "cmd/stoke/dashboard"}},
	{"the commands", []string{"cmd/*", "cmd/programtest/ranktest"}},
}

// bans say who may not know whom, whatever the floors allow.
var bans = []struct {
	who, whom string
	except    []string
	instead   string
}{
	{"plan/...", "providers/...", []string{"providers"},
		"the engine knows no concrete provider: drive it through the interface in package providers, and let cmd put it into the catalogue"},
	{"modules/...", "plan/...", nil, "configurations are read without knowing the engine: return declarations and let plan ask for them"},
	{"modules/...", "providers/...", nil, "configurations are read without knowing providers: check against schemas in plan"},
	{"providers/...", "plan/...", nil, "a provider works under any engine: what the engine adds travels in providers.Call"},
	{"providers/...", "modules/...", nil, "a provider sees values, never configurations"},
	{"runtime/...", "plan/...", nil, "the trainer runs without the engine: what both need belongs into runtime/spec"},
	{"runtime/...", "modules/...", nil, "the trainer runs without configurations: what both need belongs into runtime/spec"},
	{"runtime/...", "providers/...", nil, "the trainer runs without providers: what both need belongs into runtime/spec"},
	{"providers/...", "runtime/...", []string{"runtime/spec", "runtime/api", "runtime/run", "runtime/certificate", "runtime/code", "runtime/program", "runtime/pattern", "runtime/model", "runtime/model/zoo", "runtime/optimizer", "runtime/gpu", "runtime/slot"},
		"providers reach the trainer through runtime/spec, runtime/api, a run's folder (runtime/run), its certificate (runtime/certificate), its code (runtime/code), what programs are given (runtime/program), models as data (runtime/model, runtime/optimizer), who has the GPUs of this machine (runtime/slot) and the program stoke-trainer alone"},
	{"cmd/stoke", "runtime/...", nil, "the command line reaches the trainer through providers/train"},
	{"plan/...", "runtime/...", []string{"runtime/pattern"}, "the engine knows no trainer: an experiment is a resource like any other"},
	{"modules/...", "runtime/...", []string{"runtime/pattern"}, "configurations know no trainer: an experiment is a resource like any other"},
	{"plan/...", "plan/view", []string{}, "only cmd shows things: return data or events and let plan/view render them"},
	{"...", "cmd/...", []string{"cmd/stoke/terminal", "cmd/stoke/terminal/terminaltest", "cmd/stoke/watch", "cmd/stoke/dashboard"}, "commands are imported by nobody: move what is shared down to the package that owns it"},
}

// matches tells whether a package is meant by a pattern.
func matches(pattern, name string) bool {
	if pattern == "..." {
		return true
	}
	if root, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == root || strings.HasPrefix(name, root+"/")
	}
	if root, ok := strings.CutSuffix(pattern, "/*"); ok {
		rest, below := strings.CutPrefix(name, root+"/")
		return below && rest != "" && !strings.Contains(rest, "/")
	}
	return pattern == name
}

// floor is the number of the package's floor, or -1: a name in full counts
// before a pattern.
func floor(name string) int {
	at := -1
	for i, f := range floors {
		for _, pattern := range f.packages {
			if pattern == name {
				return i
			}
			if matches(pattern, name) {
				at = i
			}
		}
	}
	return at
}

// violations checks an import graph and tells, sorted, what breaks a rule and
// what to do about it.
func violations(graph map[string][]string) []string {
	var found []string
	for name, imported := range graph {
		if name == "." {
			continue // the rules themselves
		}
		mine := floor(name)
		if mine < 0 {
			found = append(found, fmt.Sprintf("%s lives on no floor: add it to the table in house_floors_test.go, above all that it imports", name))
			continue
		}
		for _, other := range imported {
			found = append(found, broken(name, mine, other)...)
		}
	}
	sort.Strings(found)
	return found
}

func broken(name string, mine int, other string) []string {
	var found []string
	for _, ban := range bans {
		if matches(ban.who, name) && matches(ban.whom, other) && !slices.Contains(ban.except, other) {
			found = append(found, fmt.Sprintf("%s imports %s: %s", name, other, ban.instead))
		}
	}
	if len(found) > 0 {
		return found
	}
	if theirs := floor(other); theirs >= mine {
		return []string{fmt.Sprintf("%s (%s) imports %s (%s): imports go down only; pass a value or an interface from above, or move what both need to a floor below",
			name, floors[mine].name, other, floors[theirs].name)}
	}
	return nil
}

func TestFloors(t *testing.T) {
	graph := imports(t, sources(t))
	for _, v := range violations(graph) {
		t.Error(v)
	}
	edges := 0
	for _, imported := range graph {
		edges += len(imported)
	}
	if edges < 40 {
		t.Errorf("only %d imports found: the graph is not read", edges)
	}
}

func TestFloorsAreNoticed(t *testing.T) {
	tests := []struct {
		name, other, want string
	}{
		{"plan", "providers/train", "the engine knows no concrete provider"},
		{"plan/run", "providers/filetest", "the engine knows no concrete provider"},
		{"plan/eval", "plan/view", "only cmd shows things"},
		{"plan/state", "plan", "imports go down only"},
		{"plan", "runtime/spec", "the engine knows no trainer"},
		{"providers/train", "plan/state", "a provider works under any engine"},
		{"providers/train", "modules/lang", "a provider sees values"},
		{"providers/train", "runtime/coordinator", "through runtime/spec"},
		{"providers/train/launch/local", "runtime/supervisor", "through runtime/spec"},
		{"providers/builtin", "providers/filetest", "imports go down only"},
		{"modules", "plan/eval", "without knowing the engine"},
		{"modules/lang", "providers", "without knowing providers"},
		{"modules/address", "modules", "imports go down only"},
		{"runtime/spec", "runtime/engine", "imports go down only"},
		{"runtime/spec", "runtime/run", "imports go down only"},
		{"runtime/supervisor", "runtime/coordinator", "imports go down only"},
		{"cmd/stoke", "runtime/api", "through providers/train"},
		{"runtime/worker", "providers", "without providers"},
		{"runtime/worker", "plan", "without the engine"},
		{"runtime/engine/cpu", "modules", "without configurations"},
		{"runtime/worker", "runtime/ps", "imports go down only"},
		{"cmd/stoke", "runtime/coordinator", "through providers/train"},
		{"cmd/stoke", "cmd/stoke-trainer", "imported by nobody"},
		{"kitchen", "plan", "kitchen lives on no floor"},
		{"providers/train", "providers", ""},
		{"providers/train", "runtime/spec", ""},
		{"plan/view", "plan/run", ""},
		{"cmd/stoke", "plan/view", ""},
		{"cmd/stoke-trainer", "runtime/supervisor", ""},
	}
	for _, test := range tests {
		t.Run(test.name+" imports "+test.other, func(t *testing.T) {
			got := violations(map[string][]string{test.name: {test.other}})
			switch {
			case test.want == "" && len(got) > 0:
				t.Errorf("allowed, but reported: %q", got)
			case test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
				t.Errorf("got %q, want one violation with %q", got, test.want)
			}
		})
	}
}
