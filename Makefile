# Everything that people and CI do here. It needs Go, gcc (for the race
# detector alone) and make. `make help` lists it.

VERSION   ?= 0.1.0-dev
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
FUZZTIME  ?= 10s
BENCH     ?= ./cmd/stoke ./plan/run ./providers/gke ./runtime/engine/cpu

GO    := go
BUILD := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'

# The packages with suites under the build tag e2e: those take minutes, need a
# machine for themselves, or both. E2E_KUBE are those with tests on a control
# plane, with or without the tag; E2E_PODS those with tests that run pods, which
# are told apart by their names. E2E_CLUSTER makes clusters of machines, and needs
# what both of the others need.
E2E_ALL   = $(sort $(dir $(shell grep -rlE --include='*_test.go' '^//go:build (.* )?e2e( |$$)' .)))
E2E_CLUSTER = ./providers/metal/kubeadm/
E2E_METAL = $(filter-out ./providers/metal/drain/ $(E2E_CLUSTER),$(filter ./providers/metal/% ./providers/connect/ssh/%,$(E2E_ALL)))
E2E_KUBE  = $(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir=metal 'kubetest"$$' ./providers ./plan)) ./providers/connect/kubetest/ $(addprefix ./providers/metal/,addons/ drain/ member/))
E2E_PODS  = $(sort $(dir $(shell grep -rlE --include='*_test.go' '^func Test[A-Za-z]*RealPods' .)))
E2E       = $(filter-out $(E2E_METAL) $(E2E_KUBE) ./providers/connect/podtest/ ./providers/gke/ $(E2E_CLUSTER),$(E2E_ALL))
E2E_VM    = $(sort $(dir $(shell grep -rlE --include='*_test.go' '^//go:build (.* )?e2evm( |$$)' .)))

# What takes bare metal to its limits, by the names of tests, and metal FLAGS,
# which runs suites of bare metal.
CUT       = Cut(Everywhere|Off)|Killed|LockOut|Masqueraded
metal     = testdata/machines/install; began=$$(date +%s); \
	$(GO) test -tags e2e -count=1 -p 3 -parallel 3 -timeout 30m $(1) $(E2E_METAL); status=$$?; \
	echo "bare metal: $$(($$(date +%s) - began)) s"; exit $$status

# cluster NAMES,PACKAGES runs suites of clusters that the real kubeadm makes. The
# names of those in packages with other suites contain RealKubeadm.
cluster   = testdata/machines/install && place=$$(testdata/kubernetes/install) && testdata/kubernetes/containerd/install > /dev/null && \
	export STOKE_KUBE=required STOKE_KUBE_CACHE="$${place%/*}" && \
	$(GO) test -tags e2e -count=1 -timeout 30m -v -run '$(1)' $(2)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build ./bin/stoke and ./bin/stoke-trainer.
	$(BUILD) -o bin/ ./cmd/stoke ./cmd/stoke-trainer

.PHONY: quickstart
quickstart: build ## Build, then train a model on this machine with one apply.
	./bin/stoke -chdir=examples/quickstart apply -auto-approve

# With an empty build cache compiling takes minutes: the first command prints each
# package that it compiles, and nothing where all are compiled. go test prints
# results in the order in which it is given packages, so that cmd/stoke, which
# takes longest, comes last.
.PHONY: test
test: ## Run every test that needs nothing but Go.
	$(GO) build -v ./...
	$(GO) test -timeout 30m $$($(GO) list ./... | sort -r)

.PHONY: e2e
e2e: build ## Run the slow suites (build tag e2e): processes killed at random moments.
	$(GO) test -tags e2e -count=1 -p 1 -timeout 30m -skip 'RealPods|GoogleKillsEverywhere' $(E2E)

.PHONY: e2e-gke
e2e-gke: ## Kill stoke at every call by which it changes something on Google Cloud, and try all faults and 200 processes of capacity.
	$(GO) test -tags e2e -count=1 -timeout 30m -run '^Test(CapacityProcesses|Faults)$$' ./providers/gke
	$(GO) test -tags e2e -count=1 -parallel 6 -timeout 30m -run '^TestGoogleKillsEverywhere$$' ./cmd/stoke

.PHONY: e2e-order
e2e-order: ## Change and destroy 500 random graphs of 200 objects, where e2e takes 100.
	STOKE_ORDER_GRAPHS=500 $(GO) test -tags e2e -count=1 -timeout 60m -run '^TestOrder$$' ./cmd/stoke

.PHONY: e2e-metal
e2e-metal: build ## Run the suites of bare-metal hosts on Debian machines made for it (Linux, root).
	@$(call metal,-skip '$(CUT)|RealKubeadm')

.PHONY: e2e-cut
e2e-cut: build ## Run those that cut and kill at many moments, or count thousands of connections.
	@$(call metal,-run '$(CUT)')

# STAGES are those of the long suite that are run, on a cluster that has just been
# made, and RELEASE is that of Kubernetes, which is built where it is missing: the
# newest that can be had of the minor that metal_cluster makes where it is told none.
# make e2e-metal-cluster STAGES=drift RELEASE=v1.35.4
STAGES      ?= names|containerd|drift|hand|import|change|leave|reinstall|secrets|destroy
MORE_STAGES  = cutoff|gpus|undeclare|rolling|off|dead|destroy
RELEASE     ?= v1.36.3
e2e-metal-cluster e2e-metal-cluster-more e2e-metal-cluster-kills e2e-vm: export STOKE_KUBE_RELEASE = $(RELEASE)
stages       = testdata/kubernetes/network/install > /dev/null && testdata/kubernetes/gpus/install > /dev/null && $(call cluster,^TestClusterRealKubeadm$$/^($(1))$$,./providers/metal/)

.PHONY: e2e-metal-cluster
e2e-metal-cluster: ## Make a cluster of three such machines by stoke apply, with the real kubeadm, change it and take it apart (like e2e-pods).
	@$(call stages,$(STAGES))

.PHONY: e2e-metal-cluster-more
e2e-metal-cluster-more: ## The same with GPUs, joins that are cut off, hosts that change and machines that are off; then a cluster of one machine, and kubeadm's package.
	@$(subst -timeout 30m,-timeout 60m,$(call stages,$(MORE_STAGES))) && \
	$(call cluster,^TestClusterAloneRealKubeadm$$,./providers/metal/) && \
	$(call cluster,.,$(E2E_CLUSTER))

.PHONY: e2e-metal-cluster-short
e2e-metal-cluster-short: ## Make one of two machines, without a network of pods between them, and take it apart.
	@$(call cluster,^TestClusterShortRealKubeadm$$,./providers/metal/)

.PHONY: e2e-metal-cluster-kills
e2e-metal-cluster-kills: ## Kill stoke 30 times while it makes such clusters of three machines (half an hour and more).
	@testdata/kubernetes/network/install > /dev/null && testdata/kubernetes/gpus/install > /dev/null && export STOKE_KILLS=30 && \
	$(subst -timeout 30m,-timeout 90m,$(call cluster,^TestClusterKillsRealKubeadm$$,./providers/metal/))

.PHONY: kubeadm-validate
kubeadm-validate: ## Have kubeadm of each supported minor read what stoke writes for it (builds it: minutes, once).
	@place=$$(testdata/kubernetes/install) && export STOKE_KUBE=required STOKE_KUBE_CACHE="$${place%/*}" && \
	one=$$(testdata/kubernetes/kubeadm/install v1.35.4) && two=$$(testdata/kubernetes/kubeadm/install v1.36.3) && \
	STOKE_KUBEADMS="$$one:$$two" $(GO) test -count=1 -v -run '^TestKubeadmTakesThem$$' ./providers/metal/kubeadm

.PHONY: e2e-kube
e2e-kube: ## Run the suites of Kubernetes on a real control plane, which is built first (10 to 25 minutes, once).
	@place=$$(testdata/kubernetes/install) && export STOKE_KUBE=required STOKE_KUBE_CACHE="$${place%/*}" && \
	{ $(GO) test -count=1 -timeout 20m -run '^TestKubernetes' ./cmd/stoke & } && commands=$$! && \
	{ $(GO) test -tags e2e -count=1 -p 2 -timeout 20m -skip RealPods $(E2E_KUBE); status=$$?; wait $$commands && exit $$status; }

.PHONY: e2e-pods
e2e-pods: ## Run those with real pods: containerd and the kubelet, built like the above (Linux, root).
	@place=$$(testdata/kubernetes/install) && testdata/kubernetes/containerd/install > /dev/null && \
	export STOKE_KUBE=required STOKE_KUBE_CACHE="$${place%/*}" && \
	$(GO) test -count=1 -run '^TestContainerdTakesThem$$' ./providers/metal/containerd && \
	$(GO) test -tags e2e -count=1 -p 2 -timeout 20m -run RealPods -skip Scenarios $(E2E_PODS)

.PHONY: e2e-scenarios
e2e-scenarios: ## Preempt, drain and cut the power of nodes under a run in real pods (like e2e-pods; 10 minutes).
	@place=$$(testdata/kubernetes/install) && testdata/kubernetes/containerd/install > /dev/null && \
	export STOKE_KUBE=required STOKE_KUBE_CACHE="$${place%/*}" && \
	$(GO) test -tags e2e -count=1 -timeout 40m -v -run RealPodsScenarios ./cmd/stoke

.PHONY: e2e-kills
e2e-kills: ## Kill stoke 120 times while it works on runs in a cluster, where e2e-kube takes 10.
	@place=$$(testdata/kubernetes/install) && STOKE_KILLS=120 STOKE_KUBE=required STOKE_KUBE_CACHE="$${place%/*}" \
	$(GO) test -count=1 -timeout 30m -run '^TestKubernetesKills$$' -v ./cmd/stoke

.PHONY: bench-kube
bench-kube: ## Measure whole commands on a real control plane, which is built first.
	@place=$$(testdata/kubernetes/install) && STOKE_KUBE=required STOKE_KUBE_CACHE="$${place%/*}" \
	$(GO) test -run '^$$' -bench '^BenchmarkKubernetes$$' -benchtime 1x -timeout 30m ./cmd/stoke

.PHONY: bench-metal
bench-metal: ## Measure plans of a machine whose answers take 20 ms each (Linux, root).
	@testdata/machines/install
	$(GO) test -tags e2e -run '^$$' -bench HostPlan -benchtime 5x -timeout 30m ./providers/metal

.PHONY: e2e-vm
e2e-vm: build ## Run those on an emulated machine with a kernel of its own (Linux, root; slow).
	@testdata/machines/install vm; place=$$(testdata/kubernetes/install) && testdata/kubernetes/containerd/install > /dev/null && testdata/kubernetes/network/install > /dev/null && testdata/kubernetes/gpus/install > /dev/null && \
	export STOKE_KUBE=required STOKE_KUBE_CACHE="$${place%/*}" && \
	$(GO) test -tags 'e2e e2evm' -run Virtual -v -count=1 -p 1 -parallel 1 -timeout 90m $(E2E_VM)

# Without atexit_sleep_ms every program, each command of a test too, sleeps for
# a second at its end.
.PHONY: race
race: ## Run the tests under the race detector, the longest ones in short (needs gcc).
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) test -race -short -timeout 30m ./...

.PHONY: lint
lint: bin/staticcheck ## gofmt, go vet and staticcheck, with the e2e suites.
	@files=$$(gofmt -s -l .); if [ -n "$$files" ]; then echo "gofmt -s -w is needed on:"; echo "$$files"; exit 1; fi
	$(GO) vet -tags e2e ./...
	./bin/staticcheck -tags e2e ./...

bin/staticcheck: tools/go.mod tools/go.sum
	$(GO) build -C tools -o $(CURDIR)/$@ honnef.co/go/tools/cmd/staticcheck
	@touch $@

.PHONY: bench
bench: ## Measure whole commands (beside terraform where it is installed), the engine and the CPU trainer.
	$(GO) test -run '^$$' -bench . -benchmem -p 1 -timeout 90m $(BENCH)

.PHONY: bench-runtime
bench-runtime: ## Measure whole runs of the trainer, beside an older one's where BEFORE=path/of/stoke-trainer is given.
	STOKE_TRAINER_BEFORE=$(BEFORE) $(GO) test -run '^$$' -bench '^BenchmarkRuntime$$' -benchtime 5x -timeout 60m -v ./cmd/stoke-trainer

# One program for each package: go test would link it anew for every target.
.PHONY: fuzz
fuzz: ## Fuzz every parser and reader for a moment each (FUZZTIME=10s).
	@bin=$$(mktemp -d) && trap 'rm -rf "$$bin"' EXIT && cache=$$($(GO) env GOCACHE)/fuzz && \
	grep -rlE --include='*_test.go' '^func Fuzz' . | sed 's|/[^/]*$$||' | sort -u | while read -r package; do \
		$(GO) test -c -fuzz . -o "$$bin/fuzz.test" "$$package" && path=$$($(GO) list "$$package") && \
		targets=$$("$$bin/fuzz.test" -test.list '^Fuzz') || exit 1; \
		for target in $$targets; do \
			echo "== $$package $$target"; \
			(cd "$$package" && "$$bin/fuzz.test" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) -test.fuzzcachedir "$$cache/$$path") || exit 1; \
		done; \
	done

.PHONY: cross
cross: ## Compile for linux and darwin, amd64 and arm64.
	@for platform in $(PLATFORMS); do \
		echo "== $$platform"; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build ./... || exit 1; \
	done

.PHONY: schemas
schemas: ## Write the schemas of Kubernetes that stoke has in it (from the Go module proxy).
	$(GO) run -C testdata/kubernetes ./schemas $(CURDIR)/providers/kube/schema/data v1.35.4 v1.36.3 v1.37.2

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin
