package main

import (
	"strings"
	"time"
)

// suite is a choice of tests, or a command, with what it needs.
type suite struct {
	name  string
	about string
	gate  bool // a stage of the gate
	daily bool // not one of make nightly: the gate runs it whole

	command []string // runs instead of tests, from the module's root
	always  bool     // runs even where it passed before with the same inputs

	packages []string // folders of packages from the module's root; "a/..." is a and all below it
	except   []string
	tags     []string
	tagged   bool     // only tests in files that need one of the tags, and grow
	grow     []string // tests that do more with the tag than without it
	run      string   // regular expression of names, "" for all
	skip     string
	only     string // passed to -test.run as it is, for subtests of the tests chosen by run
	race     bool   // under the race detector
	short    bool   // long tests do less, or skip themselves
	threads  bool   // only packages that start goroutines or guard memory that they share

	processes int // test binaries at a time, 0 is 1
	parallel  int // tests of one binary at a time, 0 is Go's default
	timeout   time.Duration
	env       []string
	needs     []need
	real      bool // on real machines: a failed test is tried once more, apart from the others
}

// need is a thing that tests have to find on the machine, and the script that
// brings it there.
type need struct {
	name   string
	script []string // from the module's root
	where  bool     // "SCRIPT where" prints the folder of the thing; building it takes minutes
	env    string   // names the variable that gets the parent of that folder
}

var (
	machines   = need{name: "machines", script: []string{"testdata/machines/install"}}
	emulator   = need{name: "an emulator", script: []string{"testdata/machines/install", "vm"}}
	kubernetes = need{name: "the programs of Kubernetes", script: []string{"testdata/kubernetes/install"}, where: true, env: "STOKE_KUBE_CACHE"}
	containerd = need{name: "containerd", script: []string{"testdata/kubernetes/containerd/install"}, where: true}
	network    = need{name: "CoreDNS and flanneld", script: []string{"testdata/kubernetes/network/install"}, where: true}
	devices    = need{name: "a device plugin", script: []string{"testdata/kubernetes/gpus/install"}, where: true}
)

// The names of tests tell suites apart. A test that starts pods has RealPods in
// its name, one that drives the real kubeadm has RealKubeadm, one that runs on
// an emulated machine has Virtual, and one that takes a machine to its limits
// has one of these.
const (
	cuts    = `Cut(Everywhere|Off)|Killed|LockOut|Masqueraded`
	special = `RealPods|RealKubeadm|Virtual`
)

// olderRelease is the release of Kubernetes that long suites of clusters take:
// the newest of the minor that metal_cluster makes where it is told none.
const olderRelease = "STOKE_KUBE_RELEASE=v1.36.3"

var (
	e2e      = []string{"e2e"}
	real     = []string{"STOKE_KUBE=required"}
	controls = []string{"providers/kube/...", "providers/connect/kubetest", "providers/connect/kubernetes", "providers/train/launch/kubernetes",
		"providers/metal/addons", "providers/metal/drain", "providers/metal/member", "providers/metal/kubeadm"}
	onMachines     = []string{"providers/metal/...", "providers/connect/ssh"}
	growOnMachines = []string{"TestMatrix", "TestMatrixFirewall", "TestPlanAfterARefusedApply", "TestPlanAfterARefusedCluster",
		"TestPlanAfterARefusedFirewall", "TestPlanAfterARefusedNode"}
	podNeeds = []need{machines, kubernetes, containerd}
	allNeeds = []need{machines, kubernetes, containerd, network, devices}
)

// suites are in the order in which they run.
func suites() []suite {
	return []suite{
		{name: "lint", about: "gofmt, go vet, staticcheck, the rules of the house, the gate's own tests", gate: true, always: true,
			command: []string{"make", "lint"}},
		{name: "elsewhere", about: "the types of every package for the other platforms", gate: true,
			command: []string{"go", "run", "-C", "tools", "./gate", "elsewhere"}, packages: []string{"..."}, env: []string{"GOGC=400"}},
		{name: "first-steps", about: "the README's commands: make quickstart, make test, make quickstart", gate: true, always: true,
			command: []string{".ci/first-steps"}},
		{name: "race", about: "the race detector, in short, on packages that have goroutines", gate: true, daily: true,
			packages: []string{"..."}, except: linksMuch, skip: single, race: true, short: true, threads: true, processes: 2, timeout: 30 * time.Minute},
		{name: "chaos", about: "20 kills, stops, partitions and rescales of a run by all-reduce", gate: true, daily: true,
			packages: []string{"cmd/stoke-trainer"}, run: "^TestChaosOfAllReduce$", env: []string{"STOKE_CHAOS=20"}, timeout: 15 * time.Minute},
		{name: "screen", about: "one screen of the dashboard in Chromium, where that is installed", gate: true, daily: true, tags: e2e,
			packages: []string{"cmd/stoke/dashboard"}, run: "^TestBrowser$", only: "^TestBrowser$/^runs$", timeout: 15 * time.Minute},
		{name: "machine", about: "one machine's life", gate: true, daily: true, tags: e2e, tagged: true, real: true, needs: []need{machines},
			packages: []string{"providers/metal", "providers/metal/host"}, run: `^Test(HostSystem|FirewallResource|SSH)$`, parallel: 3, timeout: 15 * time.Minute},
		{name: "control-plane", about: "one control plane", gate: true, daily: true, tags: e2e, real: true, needs: []need{kubernetes}, env: real,
			packages: []string{"providers/kube"}, run: controlPlane, timeout: 15 * time.Minute},
		{name: "pod", about: "one real pod", gate: true, daily: true, tags: e2e, real: true, needs: podNeeds, env: real,
			packages: []string{"providers/kube"}, run: "^TestManifestRealPods$", timeout: 15 * time.Minute},
		{name: "cluster-short", about: "a cluster of two machines made by kubeadm, without a network of pods between them", gate: true, tags: e2e, tagged: true,
			real: true, needs: podNeeds, env: real, packages: []string{"providers/metal"}, run: "^TestClusterShortRealKubeadm$", timeout: 15 * time.Minute},

		{name: "lint-whole", about: "staticcheck with what it learns from other modules", command: []string{"make", "lint-whole"}, packages: []string{"..."}},
		{name: "race-all", about: "every test under the race detector",
			packages: []string{"..."}, race: true, processes: 2, timeout: time.Hour, env: []string{"STOKE_CHAOS=16"}},
		{name: "e2e", about: "processes killed at random moments, comparisons with Terraform", tags: e2e, tagged: true, timeout: time.Hour,
			packages: []string{"cmd/...", "modules/...", "plan/...", "runtime/..."}, skip: special + "|GoogleKills|^TestResNet$|^TestBrowser",
			grow: []string{"TestOrder", "TestKilledCommand", "TestKilledTraining", "TestKilledAtRequest"}},
		{name: "dashboard-same", about: "the dashboard's scripts, built again from their sources", packages: []string{"cmd/stoke/dashboard"},
			command: []string{"make", "dashboard-same"}},
		{name: "e2e-dashboard", about: "the dashboard's screens in Chromium, where that is installed", tags: e2e, packages: []string{"cmd/stoke/dashboard"},
			run: "^(TestBrowser|TestLoadOf)", skip: special, parallel: 1, timeout: 30 * time.Minute},
		{name: "e2e-resnet", about: "ResNet-20 learns CIFAR-10, where STOKE_TEST_DATA has it", tags: e2e, packages: []string{"cmd/stoke"}, run: "^TestResNet$",
			timeout: 3 * time.Hour},
		{name: "e2e-chaos", about: "200 kills, stops, partitions and rescales of a run by all-reduce", packages: []string{"cmd/stoke-trainer"}, run: "^TestChaosOfAllReduce$",
			env: []string{"STOKE_CHAOS=200"}, timeout: time.Hour},
		{name: "e2e-order", about: "500 random graphs of 200 objects, changed and destroyed", tags: e2e, packages: []string{"cmd/stoke"}, run: "^TestOrder$",
			timeout: time.Hour, env: []string{"STOKE_ORDER_GRAPHS=500"}},
		{name: "e2e-gke", about: "all faults of Google Cloud's double, and 200 processes of capacity", tags: e2e, packages: []string{"providers/gke"},
			run: "^Test(CapacityProcesses|Faults|PoolChangedOnceEach|PlanAfterARefusedApply)$", timeout: 30 * time.Minute},
		{name: "e2e-gke-kills", about: "stoke killed at every call by which it changes something on Google Cloud", tags: e2e, packages: []string{"cmd/stoke"},
			run: "^TestGoogleKillsEverywhere$", parallel: 6, timeout: 30 * time.Minute},
		{name: "e2e-metal", about: "bare-metal hosts: every resource through its whole life", tags: e2e, tagged: true, real: true, needs: []need{machines},
			packages: onMachines, skip: special + "|" + cuts, except: []string{"providers/metal/kubeadm"}, grow: growOnMachines, processes: 3, parallel: 3, timeout: 30 * time.Minute},
		{name: "e2e-cut", about: "the same, cut and killed at many moments, and with thousands of connections", tags: e2e, tagged: true, real: true,
			needs: []need{machines}, packages: onMachines, run: cuts, skip: special, processes: 3, parallel: 3, timeout: 30 * time.Minute},
		{name: "e2e-kube", about: "all that talks to Kubernetes, on a real control plane", tags: e2e, real: true, needs: []need{kubernetes}, env: real,
			packages: controls, skip: special + "|^TestCluster$", processes: 2, timeout: 20 * time.Minute},
		{name: "e2e-kube-commands", about: "stoke's commands on a real control plane", real: true, needs: []need{kubernetes}, env: real,
			packages: []string{"cmd/stoke"}, run: "^TestKubernetes", timeout: 20 * time.Minute},
		{name: "e2e-kills", about: "stoke killed 120 times while it works on runs in a cluster", real: true, needs: []need{kubernetes},
			env: append([]string{"STOKE_KILLS=120"}, real...), packages: []string{"cmd/stoke"}, run: "^TestKubernetesKills$", timeout: 30 * time.Minute},
		{name: "e2e-pods", about: "the suites with real pods, on containerd and the kubelet", tags: e2e, real: true, needs: podNeeds, env: real,
			packages: []string{"cmd/...", "providers/..."}, run: "RealPods|^TestContainerdTakesThem$", skip: "Scenarios", processes: 2, timeout: 30 * time.Minute},
		{name: "e2e-scenarios", about: "a run in real pods that are preempted and drained, and whose nodes lose their power", tags: e2e, real: true,
			needs: podNeeds, env: real, packages: []string{"cmd/stoke"}, run: "RealPodsScenarios", timeout: 40 * time.Minute},
		cluster("e2e-metal-cluster", "a cluster of three machines, changed in place and by hand, and taken apart",
			"^TestClusterRealKubeadm$/^(names|containerd|drift|hand|import|change|leave|reinstall|secrets|destroy)$"),
		cluster("e2e-metal-cluster-more", "the same with GPUs, joins that are cut off, hosts that change and machines that are off",
			"^TestClusterRealKubeadm$/^(cutoff|gpus|undeclare|rolling|off|dead|destroy)$"),
		cluster("e2e-metal-cluster-alone", "a cluster of one machine", "^TestClusterAloneRealKubeadm$"),
		{name: "e2e-kubeadm", about: "the package that drives kubeadm", tags: e2e, tagged: true, real: true, needs: allNeeds, env: append([]string{olderRelease}, real...),
			packages: []string{"providers/metal/kubeadm"}, timeout: 30 * time.Minute},
		cluster("e2e-metal-cluster-kills", "stoke killed 30 times while it makes clusters of three machines", "^TestClusterKillsRealKubeadm$", "STOKE_KILLS=30"),
		{name: "kubeadm-validate", about: "kubeadm of each supported minor reads stoke's configurations", packages: []string{"providers/metal/kubeadm"},
			command: []string{"make", "kubeadm-validate"}},
		{name: "e2e-vm", about: "an emulated machine with a kernel of its own", tags: []string{"e2e", "e2evm"}, tagged: true, real: true,
			needs: append([]need{emulator}, allNeeds...), env: append([]string{olderRelease}, real...), packages: onMachines, run: "Virtual", parallel: 1,
			timeout: 90 * time.Minute},
		{name: "bench", about: "whole commands, the engine and the CPU trainer", command: []string{"make", "bench"}, packages: []string{"..."}},
		{name: "bench-runtime", about: "whole runs of the trainer", command: []string{"make", "bench-runtime"}, packages: []string{"cmd/stoke-trainer"}},
		{name: "bench-chaos", about: "the time from the loss of a member of an all-reduce to the next update, and the goodput with 20 losses",
			command: []string{"make", "bench-chaos"}, packages: []string{"cmd/stoke-trainer"}},
		{name: "bench-allreduce", about: "the all-reduce of processes over TCP beside bare connections and Gloo, and of 32 members", command: []string{"make", "bench-allreduce"},
			packages: []string{"cmd/stoke-trainer"}},
		{name: "bench-metal", about: "plans of a machine whose answers take 20 ms each", command: []string{"make", "bench-metal"}, packages: []string{"providers/metal"}},
		{name: "bench-kube", about: "whole commands on a real control plane", command: []string{"make", "bench-kube"}, packages: []string{"cmd/stoke"}},
		{name: "fuzz", about: "every parser and reader for a moment each", command: []string{"make", "fuzz"}, packages: []string{"..."}},
	}
}

// linksMuch are packages whose tests link the clients of clouds and clusters:
// under the race detector those compile for minutes. The suite race-all has them.
var linksMuch = []string{"cmd/stoke", "providers/gke/...", "providers/kube/...", "providers/connect/kube...", "providers/train/...", "providers/metal/...",
	"plan/state/store/blob", "plan/state/store/kubernetes"}

// single are the tests of one goroutine on which the race detector spends most
// time: large texts, sealed plans, every byte
// of a journal, files of metrics. first-steps and the suite race-all have them.
const single = `^Test(TextOfManyBlocks|CompressedLabelsTakeNoMemory|Sealed(File|Configuration)|Journal(Bytes|Cut)|` +
	`UsageLeavesUpdatesAlone|ThinnedAsItGrows|EventsAreFiltered)$`

// controlPlane are the tests that show each resource's life, import and drift on a real
// control plane in a minute and a half. The suite e2e-kube has the others, too.
const controlPlane = `^Test(SharedFieldsGo|UndeclaredFieldBlocks|SimpleKinds|ManifestLife|CRDsAndTheirObjects|CRDChangesWithItsObjects|Import|ImportInherits|ImportOfAClaim|TakenOverByImport|` +
	`RBACLife|RBACIsLeast|StaticVolumes|KeptVolume|Replacement|ReplacementOfAResource|MoveBetweenResources|TemplateChangedByHand|AddedByHandIsDrift|` +
	`NothingIsDeletedUnplanned|MadeByThePlan|Conflicts|ObjectsOfOthers|StrictMutations|DataObject|DataNodes|DataServer|DataStorageClasses|PlanWithoutACluster)$`

// cluster is a suite of clusters that the real kubeadm makes. The name of the
// test comes before the names of its subtests.
func cluster(name, about, only string, env ...string) suite {
	run, _, _ := strings.Cut(only, "/")
	return suite{name: name, about: about, tags: e2e, tagged: true, real: true, needs: allNeeds, packages: []string{"providers/metal"},
		run: run, only: only, timeout: 90 * time.Minute, env: append(append([]string{olderRelease}, env...), real...)}
}
