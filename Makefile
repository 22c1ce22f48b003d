# Everything that people and CI do here. It needs Go, gcc (for the race
# detector alone) and make. `make help` lists it.

VERSION   ?= 0.1.0-dev
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
FUZZTIME  ?= 10s
BENCH     ?= ./cmd/stoke ./plan/run ./providers/gke ./runtime/engine/cpu ./runtime/session

# One set of flags for all that is built, so that every checkout on a machine
# shares what was compiled. The race detector is the exception. The gate has the
# same flags (tools/gate/run.go). Tables for debuggers are a tenth of compilation.
FLAGS := -trimpath -gcflags=all=-dwarf=false
export CGO_ENABLED := 0
export GOFLAGS     := $(filter-out $(FLAGS),$(GOFLAGS)) $(FLAGS)

GO    := go
GATE  := $(GO) run -C tools ./gate
BUILD := $(GO) build -ldflags '-s -w -X main.version=$(VERSION)'

# The suites of tools/gate/suites.go that are targets of their own.
SUITES := e2e e2e-chaos e2e-dashboard e2e-resnet e2e-order e2e-gke e2e-gke-kills e2e-metal e2e-cut e2e-kube e2e-kube-commands \
	e2e-kills e2e-pods e2e-scenarios e2e-metal-cluster e2e-metal-cluster-more e2e-metal-cluster-alone e2e-metal-cluster-kills e2e-kubeadm e2e-vm cluster-short

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build ./bin/stoke and ./bin/stoke-trainer.
	$(BUILD) -o bin/ ./cmd/stoke ./cmd/stoke-trainer

.PHONY: trainer-gpu
trainer-gpu: ## Build ./bin/stoke-trainer-gpu, the trainer with the engine of NVIDIA GPUs (Linux, glibc).
	$(BUILD) -tags gpu -o bin/stoke-trainer-gpu ./cmd/stoke-trainer

# Copy the folder to a machine with an NVIDIA GPU, and run check.sh there.
.PHONY: gpu-check
gpu-check: ## Build ./gpu-check: what a machine with a GPU and no network needs to check stoke (STOKE_TEST_DATA: data).
	tools/gpu-check/build.sh gpu-check

# stoke-gpu is the only program with cgo: NVIDIA's library is loaded by the C
# library's dlopen. Names of NVIDIA's calls that are deprecated are in go-nvml.
CGO := CGO_ENABLED=1 CGO_CFLAGS="-O2 -Wno-deprecated-declarations"

.PHONY: gpu
gpu: ## Build ./bin/stoke-gpu (Linux, needs gcc; for arm64 too where aarch64-linux-gnu-gcc is).
	$(CGO) GOOS=linux $(BUILD) -o bin/ ./cmd/stoke-gpu
	@if command -v aarch64-linux-gnu-gcc > /dev/null && [ "$$($(GO) env GOARCH)" != arm64 ]; then set -x; \
		CC=aarch64-linux-gnu-gcc $(CGO) GOOS=linux GOARCH=arm64 $(BUILD) -o bin/stoke-gpu-linux-arm64 ./cmd/stoke-gpu; \
	else echo "no stoke-gpu for arm64: aarch64-linux-gnu-gcc is not installed"; fi

.PHONY: quickstart
quickstart: build ## Build, then train a model on this machine with one apply.
	./bin/stoke -chdir=examples/quickstart apply -auto-approve

# With an empty build cache compiling takes minutes: the first command prints each
# package that it compiles, and nothing where all are compiled. go test prints
# results in the order in which it is given packages, so that cmd/stoke, which
# takes longest, comes last. make lint has go vet; tests start the programs in bin,
# and the sum of those tells go test whether results of before still hold. With GOGC a
# test's process collects garbage less often than the programs, and -w leaves the tables
# for debuggers out of what is linked.
.PHONY: test
test: ## Run every test that needs nothing but Go.
	$(BUILD) -v -o bin/ ./cmd/stoke ./cmd/stoke-trainer
	@export STOKE_PROGRAMS="$(CURDIR)/bin" STOKE_PROGRAMS_SUM="$$(cat bin/stoke bin/stoke-trainer | cksum)" && \
	set -x && GOGC=400 $(GO) test -vet=off -ldflags=-w -timeout 30m $$($(GO) list ./... | sort -r)

.PHONY: nightly
nightly: ## Run every suite, long ones too, but those that passed here with the same inputs (CI_ALL=1 for all).
	@$(GATE) nightly

.PHONY: suites
suites: ## List the suites; each e2e-… of them is a target, too.
	@$(GATE) list

# make e2e-metal-cluster STAGES=drift runs one stage of that suite on a new cluster,
# and STOKE_KUBE_RELEASE=v1.35.4 has the clusters of another release.
.PHONY: $(SUITES)
$(SUITES):
	@$(GATE) suite $(if $(STAGES),-run '^TestClusterRealKubeadm$$/^($(STAGES))$$') $@

.PHONY: kubeadm-validate
kubeadm-validate: ## Have kubeadm of each supported minor read what stoke writes for it (builds it: minutes, once).
	@place=$$(testdata/kubernetes/install) && export STOKE_KUBE=required STOKE_KUBE_CACHE="$${place%/*}" && \
	one=$$(testdata/kubernetes/kubeadm/install v1.35.4) && two=$$(testdata/kubernetes/kubeadm/install v1.36.3) && \
	STOKE_KUBEADMS="$$one:$$two" $(GO) test -count=1 -v -run '^TestKubeadmTakesThem$$' ./providers/metal/kubeadm

.PHONY: bench-kube
bench-kube: ## Measure whole commands on a real control plane, which is built first, beside BEFORE=path/of/stoke where given.
	@place=$$(testdata/kubernetes/install) && STOKE_KUBE=required STOKE_KUBE_CACHE="$${place%/*}" STOKE_BEFORE=$(BEFORE) \
	$(GO) test -run '^$$' -bench '^BenchmarkKubernetes$$' -benchtime 1x -timeout 30m ./cmd/stoke

.PHONY: bench-metal
bench-metal: ## Measure plans of a machine whose answers take 20 ms each (Linux, root).
	@testdata/machines/install
	$(GO) test -tags e2e -run '^$$' -bench HostPlan -benchtime 5x -timeout 30m ./providers/metal

.PHONY: race
race: ## Run every test under the race detector (needs gcc).
	@$(GATE) suite race-all

# GOGC=400: with 1 GB of memory the two linters need a third less CPU time.
.PHONY: lint
lint: bin/staticcheck ## gofmt, go vet and staticcheck with the e2e suites, the rules of the house.
	@files=$$(gofmt -s -l .); if [ -n "$$files" ]; then echo "gofmt -s -w is needed on:"; echo "$$files"; exit 1; fi
	$(GO) test -vet=off .
	$(GO) vet -C tools ./...
	$(GO) test -C tools -count=1 ./...
	GOGC=400 $(GO) vet -tags e2e ./...
	$(GO) vet -tags gpu ./cmd/stoke-trainer
	$(BUILD) -tags gpu -o /dev/null ./cmd/stoke-trainer
	GOGC=400 ./bin/staticcheck -tags e2e ./...

# The linter learns what it can from functions of other modules, too.
.PHONY: lint-whole
lint-whole: bin/staticcheck
	GOGC=400 ./bin/staticcheck -whole -tags e2e ./...

bin/staticcheck: tools/go.mod tools/go.sum tools/staticcheck/main.go
	$(GO) build -C tools -o $(CURDIR)/$@ ./staticcheck
	@touch $@

.PHONY: bench
bench: ## Measure whole commands (beside terraform where it is installed), the engine and the CPU trainer.
	$(GO) test -run '^$$' -bench . -benchmem -p 1 -timeout 90m $(BENCH)

.PHONY: bench-runtime
bench-runtime: ## Measure whole runs of the trainer, beside an older one's where BEFORE=path/of/stoke-trainer is given.
	STOKE_TRAINER_BEFORE=$(BEFORE) $(GO) test -run '^$$' -bench '^Benchmark(Runtime|ShortRun)$$' -benchtime 5x -timeout 60m -v ./cmd/stoke-trainer
	STOKE_TRAINER_BEFORE=$(BEFORE) $(GO) test -run '^$$' -bench '^BenchmarkKilledWorker$$' -benchtime 20x -timeout 60m -v ./cmd/stoke-trainer

.PHONY: bench-chaos
bench-chaos: ## Measure how long training by all-reduce stands still after the loss of a member, and its goodput with 20 losses.
	$(GO) test -run '^$$' -bench '^BenchmarkLostMember$$' -benchtime 20x -timeout 60m -v ./cmd/stoke-trainer
	$(GO) test -run '^$$' -bench '^BenchmarkGoodput$$' -benchtime 1x -timeout 60m -v ./cmd/stoke-trainer

.PHONY: bench-allreduce
bench-allreduce: ## Compare the all-reduce with bare connections and, where python3-torch is installed, with Gloo.
	$(GO) test -run '^$$' -bench '^BenchmarkAllReduce(Of32)?$$' -benchtime 1x -timeout 60m -v ./cmd/stoke-trainer

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
		GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build ./... || exit 1; \
	done

.PHONY: schemas
schemas: ## Write the schemas of Kubernetes that stoke has in it (from the Go module proxy).
	$(GO) run -C testdata/kubernetes ./schemas $(CURDIR)/providers/kube/schema/data v1.35.4 v1.36.3 v1.37.2

# The scripts are in the repository as built, so that go build needs no Node.
.PHONY: dashboard
dashboard: ## Build the scripts and styles of stoke dashboard (needs Node and npm).
	cd cmd/stoke/dashboard/web && npm ci --ignore-scripts --no-audit --no-fund && npx tsc -p . && node build.mjs

.PHONY: dashboard-same
dashboard-same: dashboard ## Build them, and compare with those in the repository.
	git diff --exit-code -- cmd/stoke/dashboard/assets

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin
