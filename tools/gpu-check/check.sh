#!/bin/bash
# Checks stoke on a machine with an NVIDIA GPU, in a folder that build.sh made: health, numbers,
# runs through the local launcher, speed beside JAX and PyTorch where they are, deterministic
# bits, kills, two runs on one GPU. It prints a table, at most 12,000 characters, and ends with
# 1 where a line of it failed: a part that fails does not end the others, and a part for which
# LIMIT seconds (540) do not suffice is left out. RESULTS=FOLDER gets the table and all logs.
# PARTS names some of the parts: "health numbers runs speed kills memory" are all.
# LONG=1 checks all models, two large ones at full size against PyTorch in float64, speeds of more
# models, whole runs from disk, 200 kills, and memory over 10 minutes in place of that: in parts
# of 8 minutes at most. Each call goes on where the last one ended, and ends with 3 where
# there is more to do; RESTART=1 begins again. PARTS names some of these:
# "models float64 bits speed restart runs kills memory-seconds".
# A row whose comparison needs Python, JAX or PyTorch says "skipped:" where one is absent.
set -u
cd "$(dirname "$0")" || exit 1
if [ -z "${LONG:-}" ]; then LIMIT=${LIMIT:-540}; fi
. ./parts.sh
exec 2>errors.log # XLA writes dozens of lines there for each process
: >table.txt
unpack bin/*.xz data/*/*.xz || exit 1
chmod +x bin/*
ln -sf stoke-trainer-gpu bin/stoke-trainer # it does all that stoke-trainer does
rm -rf run-*
[ -z "${RESTART:-}" ] || rm -f "$STATE"
export PATH="$PWD/bin:$PATH" HOME="${HOME:-$PWD}" XLA_PYTHON_CLIENT_PREALLOCATE=false
trap save EXIT
find_python
measured_check() { # all rates are measured
	timeout 100 stoke-gpu check >check.log 2>&1
	local status=$?
	tail -n 12 check.log
	[ $status = 0 ] && grep -q 'TFLOP/s' check.log
}
# lacks MODULE prints why Python cannot run a twin with it, and nothing where it can.
lacks() {
	if [ -z "$python" ]; then
		echo "no python3"
	elif ! "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)" >/dev/null; then
		echo "no $1"
	fi
}
soon() { echo $(($(left) < 5 ? 5 : $(left) < $1 ? $(left) : $1)); } # seconds for a command that may take $1
twin() { # framework, model, batch/precision(/mode): steps per second of the twin, or nothing
	timeout "$(soon 100)" "$python" "python/$1_ref.py" "$2" "$3" 2>&1 | tee -a twins.log | sed -n 's/.* \([0-9.]*\) steps\/s.*/\1/p' | tail -n 1
}
bench() { timeout "$(soon 90)" stoke-trainer-gpu bench "$@" --engine xla | tee -a bench.log | steps; }
below() { awk -v a="${1:-0}" -v b="${2:-0}" -v least="$3" 'BEGIN { exit !(a < least * b) }'; }
# beside MODEL TWIN SHAPE BATCH TYPE JAX GRAPH COMPILE compares steps with JAX, a CUDA graph of
# PyTorch and torch.compile: the last three are the least ratios, 0 where one is printed only,
# "-" where it is not measured. A ratio that is wanted and that this machine cannot measure makes
# the row "skipped:", unless another one has failed.
beside() {
	local ours rate why text missing="" outcome=ok names=(JAX "a CUDA graph of PyTorch" "torch.compile")
	local twins=("jax $2 $4/$5" "torch $2 $4/$5/graph" "torch $2 $4/$5/compilegraph") least=("$6" "$7" "$8") i classes=10
	[ "$1" != transformer ] || classes=256
	ours=$(bench "$1" --shape "$3" --classes $classes --batch "$4" --compute-type "$5" --seconds 0.3)
	text="$(printf '%.0f' "${ours:-0}") steps/s"
	[ -n "$ours" ] || outcome=FAILED
	for i in 0 1 2; do
		[ "${least[i]}" != - ] && [ -n "$ours" ] || continue
		why=$(lacks "${twins[i]%% *}")
		rate=""
		if [ -z "$why" ]; then
			rate=$(twin ${twins[i]}) # words of one twin
			[ -n "$rate" ] || why="no rate: twins.log"
		fi
		if [ -n "$rate" ]; then
			text="$text, $(awk -v o="$ours" -v r="$rate" 'BEGIN { printf "%.2f", o / r }') of ${names[i]}"
			if below "$ours" "$rate" "${least[i]}"; then
				outcome=FAILED
				text="$text (want ${least[i]})"
			fi
		elif [ "${least[i]}" = 0 ]; then
			text="$text, ${names[i]} skipped: $why"
		else
			missing="$missing${missing:+, }${names[i]}: $why"
		fi
	done
	if [ $outcome = ok ] && [ -n "$missing" ]; then outcome=skipped:; fi
	row "$1 $5, batch $4" $outcome "${missing:+$missing; }$text"
}
# ratio NAME RATE OTHER LEAST prints whether a rate is some of another one.
ratio() {
	local outcome=ok
	if [ -z "$2" ] || [ -z "$3" ] || below "$2" "$3" "$4"; then outcome=FAILED; fi
	row "$1" $outcome "${2:-nothing} of ${3:-nothing} /s, $(awk -v a="${2:-0}" -v b="${3:-0}" 'BEGIN { print (b > 0) ? sprintf("%.2f", a / b) : "no ratio" }'), want $4"
}
# restarts measures the first step of a process that finds all programs compiled. The first
# process fills a cache that is empty.
restarts() {
	local first again
	rm -rf cache
	first=$(STOKE_XLA_CACHE=$PWD/cache timeout "$(soon 90)" stoke-trainer-gpu bench "$@" --engine xla --seconds 0.05 | first_step)
	again=$(STOKE_XLA_CACHE=$PWD/cache timeout "$(soon 90)" stoke-trainer-gpu bench "$@" --engine xla --seconds 0.05 | first_step)
	echo "${first:-nothing} s with an empty cache, then ${again:-nothing} s, want 2"
	[ -n "$first" ] && [ -n "$again" ] && ! below 2 "$again" 1
}
run() { # name, configuration: applies it in a folder of its own; a run that fails is stopped
	mkdir -p "run-$1"
	cp "$2.tf" "run-$1/main.tf"
	if timeout 30 stoke -chdir="run-$1" init -no-color >/dev/null; then
		timeout -k 20 "${RUN_LIMIT:-150}" stoke -chdir="run-$1" apply -auto-approve -no-color &
		echo $! >"run-$1/apply.pid"
		if wait $!; then
			timeout 30 stoke -chdir="run-$1" output -no-color | tr '\n' ' '
			return 0
		fi
	fi
	timeout 60 stoke -chdir="run-$1" destroy -auto-approve -no-color >/dev/null
	return 1
}
bits() { gpu.test -test.run 'TestBitsOnGPU$' -test.v -test.timeout 100s | sed 's/^ *[a-z_]*.go:[0-9]*: //'; }
# kill_workers SECONDS MOST kills up to MOST workers of a run, one after the other. A
# worker that ends within 5 seconds counts against the run's restarts: only older ones are
# killed. It sets made to the kills, 0 where the run does not go on, and text.
kill_workers() {
	local until=$((SECONDS + $1 - 45)) most=$2 pid goes apply
	sed 's/^    epochs .*/    epochs        = '$((most * 30))'/' mnist.tf >killed.tf
	RUN_LIMIT=$(($1 + 60)) run killed killed >killed.log 2>&1 &
	apply=$!
	made=0
	while kill -0 $apply && [ $made -lt "$most" ] && [ $SECONDS -lt $until ]; do
		sleep 1
		for pid in $(workers); do
			[ "$(age "$pid")" -ge 6 ] && kill -9 "$pid" && made=$((made + 1))
		done
	done
	sleep 8
	goes=$(timeout 20 stoke -chdir=run-killed status -json train_experiment.model | sed -n 's/.*"phase": *"\([a-z]*\)".*/\1/p' | head -n 1)
	text="the run is ${goes:-unknown}"
	if [ "$goes" != running ] && [ "$goes" != succeeded ]; then
		made=0
		text="$text: see killed.log"
	fi
	stop $apply killed
}
stop() { # process, name: ends an apply in the background, which ignores SIGINT, and its run
	kill -TERM "$(cat "run-$2/apply.pid")"
	wait "$1"
	timeout 60 stoke -chdir="run-$2" destroy -auto-approve -no-color >/dev/null
}

say "$(stoke-trainer-gpu engines 2>&1 | cut -c1-400)"
works() { stoke-trainer-gpu engines --json | grep -q '"engines":\[[^]]*"xla"'; }
if ! works; then
	search_files
	if works; then
		say "XLA's files were found by a search of the machine, not by the program: $STOKE_XLA_PLUGIN"
		failed=1
	else
		say "The engine xla does not work on this machine: see above."
		machine
		exit 1
	fi
fi

if [ -n "${LONG:-}" ]; then
	# A call of these adds one unit, or sets made to those that it has added.
	every_model() {
		gpu.test -test.run TestEveryModelOnGPU -test.v -test.timeout "${2}s" >models.log 2>&1 && grep -q 'off by' models.log && made=1
		offs models.log
	}
	large() { # one model
		local name=resnet18
		[ "$1" = 0 ] || name=transformer
		PYTHON="${python:-python3}" gpu.test -test.run "TestFullSizeOnGPU/$name\$" -test.v -test.timeout "${2}s" >"float64-$name.log" 2>&1
		local status=$? why
		why=$(sed -n 's/.*skipped: //p' "float64-$name.log" | head -n 1)
		if [ -n "$why" ]; then
			row "$name against float64" skipped: "$why"
			made=1
		elif [ $status = 0 ] && grep -q 'off by' "float64-$name.log"; then
			row "$name against float64" ok "$(offset "float64-$name.log")"
			made=1
		else
			row "$name against float64" FAILED "$(grep -E '_test.go:|^panic' "float64-$name.log" | tail -n 1)"
		fi
	}
	speeds=(
		"mnist-cnn cnn 28x28 64 tf32 1.0 1.0 -" "resnet20 resnet20 32x32x3 128 bf16 0.95 1.0 0.9" "mlp mlp 784 64 tf32 0.95 1.0 -"
		"mnist-cnn cnn 28x28 1024 tf32 1.0 1.0 -" "resnet20 resnet20 32x32x3 128 tf32 0.95 1.0 -"
		"resnet20 resnet20 32x32x3 1024 tf32 0.95 1.0 -" "resnet20 resnet20 32x32x3 1024 bf16 0.95 1.0 0.9"
		"transformer transformer 64 64 tf32 0.9 - 0" "transformer transformer 64 64 bf16 0.9 - 0"
	)
	speed() {
		failed=0
		beside ${speeds[$1]} # words of one comparison
		[ $failed = 0 ] && made=1
	}
	restart() {
		failed=0
		expect "restart to the first step" restarts resnet20 --shape 32x32x3 --batch 128 --compute-type bf16
		[ $failed = 0 ] && made=1
	}
	wholes=("128 all_reduce 0.9" "1024 all_reduce 0.9" "128 parameter_server 0.6" "1024 parameter_server 0.75")
	# whole compares a run of some 40 seconds, its data from disk, with resident records.
	whole() {
		local batch strategy least resident rate name
		read -r batch strategy least <<<"${wholes[$1]}"
		name=speed-$batch-$strategy
		resident=$(bench resnet20 --shape 32x32x3 --batch "$batch" --compute-type bf16 --seconds 0.3)
		sed -e "s/= 128$/= $batch/" -e "s/\"all_reduce\"/\"$strategy\"/" \
			-e "s/max_steps .*/max_steps = $(awk -v r="${resident:-10}" 'BEGIN { printf "%d", 40 * r + 1 }')/" speed.tf >"$name.tf"
		RUN_LIMIT=$(soon 240) run "$name" "$name" >"$name.log" 2>&1
		rate=$(sed -n 's/.*samples_per_second = \([0-9.e+]*\).*/\1/p' "$name.log" | tail -n 1)
		failed=0
		ratio "run from disk, $strategy, batch $batch" "$(awk -v r="${rate:-0}" -v b="$batch" 'BEGIN { if (r > 0) printf "%.1f", r / b }')" "$resident" "$least"
		[ $failed = 0 ] && made=1
	}
	same() {
		failed=0
		expect "deterministic bits" same_bits bits
		[ $failed = 0 ] && made=1
	}
	kills() { # 40 at most, so that a part has its time
		local todo=$((200 - $1))
		kill_workers "$2" $((todo < 40 ? todo : 40))
		row "kills of workers" "$([ $made -gt 0 ] && echo ok || echo FAILED)" "$made more, $text"
	}
	memory() { # 300 seconds of one process of a worker: 60 seconds after its start against its end
		local pid="" first last began apply
		made=0
		sed 's/^    epochs .*/    epochs        = 100000/' mnist.tf >long.tf
		RUN_LIMIT=420 run long long >long.log 2>&1 &
		apply=$!
		for ((began = SECONDS; SECONDS < began + 60; )); do
			pid=$(workers | head -n 1)
			[ -n "$pid" ] && break
			sleep 1
		done
		sleep 60
		first=$(rss "${pid:-0}")
		sleep 240
		last=$(rss "${pid:-0}")
		if ! grows "${first:-0}" "${last:-0}" 3 && [ -n "$last" ]; then made=300; fi
		row "memory of a worker" "$([ $made -gt 0 ] && echo ok || echo FAILED)" "${first:-nothing} KiB after 60 s, ${last:-nothing} KiB after 300 s"
		stop $apply long
	}
	part models 1 300 every_model
	part float64 2 150 large
	part bits 1 100 same
	part speed ${#speeds[@]} 200 speed
	part restart 1 60 restart
	if [ -d data ]; then
		part runs ${#wholes[@]} 240 whole
		part kills 200 120 kills
		part memory-seconds 600 400 memory
	else
		say "The folder has no data: runs, kills and memory are left out."
	fi
	finish
fi

fit=1
if wants health; then
	say "== health"
	expect "stoke-gpu list" timeout 30 stoke-gpu list
	expect "stoke-gpu check, with a product" measured_check
	if [ $failed = 1 ]; then fit=0; fi
fi

tests() { # log, test, seconds, text that its log must have: prints the lines of a failure
	gpu.test -test.run "$2\$" -test.v -test.timeout "$3s" >"$1" 2>&1 && grep -q "$4" "$1" && return 0
	grep -E '_test.go:|^ *--- |^panic|^FAIL' "$1" | tail -n 10
	return 1
}
if wants numbers; then
	say "== numbers: 20 updates against float64"
	numbers() { tests numbers.log TestOnGPU 240 'off by' && echo "3 models, 3 compute types"; }
	expect "parameters against float64" numbers
	offs numbers.log
	too_large() { tests large.log TestTooLargeOnGPU 100 'would fit' && grep 'would fit' large.log | sed 's/.*go:[0-9]*: //' | tail -n 1; }
	expect "too large a micro-batch" too_large
fi

if [ -d data ] && wants runs; then
	say "== runs through the local launcher"
	# A GPU that check calls unfit starts no worker where gpu_health is required.
	[ $fit = 1 ] || sed -i 's/"required"/"reported"/' mnist.tf
	enough 90 "MNIST CNN" && expect "MNIST CNN, accuracy ≥ 0.985" run mnist mnist
	# The same readings through a run, which has gpu_health = "required".
	readings() {
		timeout 30 stoke -chdir=run-mnist metrics -csv train_experiment.model >metrics.csv
		echo "$(grep -c 'coordinator.gpu[0-9]*.utilization_percent' metrics.csv) readings"
		grep -q 'coordinator.gpu[0-9]*.utilization_percent' metrics.csv
	}
	expect "readings of GPUs in the run" readings
	enough 120 "ResNet-20" && expect "ResNet-20 in bf16, accuracy ≥ 0.80" run resnet20 resnet20
fi

if wants speed; then
	say "== speed, steps per second (data resident, forward, backward and update)"
	enough 90 "mnist-cnn" && beside mnist-cnn cnn 28x28 64 tf32 1.0 1.0 - # with dropout, which the twin has not
	enough 90 "resnet20" && beside resnet20 resnet20 32x32x3 128 bf16 0.95 1.0 -
	atLeast() { # name, number, least
		row "$1" "$(awk -v n="${2:-0}" -v least="$3" 'BEGIN { print ((n >= least && n > 0) ? "ok" : "FAILED") }')" "${2:-nothing} micro-batches/s, want $3"
	}
	measured() { bench "$1" --shape 28x28 --batch 64 --mode "$2" --seconds 0.3; }
	enough 60 "leases" && atLeast "mlp 64, lease of 16" "$(measured mlp lease)" 10000
	enough 60 "leases" && atLeast "mnist-cnn 64, lease of 16" "$(measured mnist-cnn lease)" 3000
	# A run with one worker, without its data: against the same network with everything resident.
	if enough 60 "resnet20, one worker"; then
		alone=$(bench resnet20 --shape 32x32x3 --batch 128 --compute-type bf16 --mode worker --seconds 0.3)
		whole=$(bench resnet20 --shape 32x32x3 --batch 128 --compute-type bf16 --seconds 0.3)
		ratio "resnet20, one worker of resident" "$alone" "$whole" 0.9
	fi
	enough 30 "mlp, staged" && atLeast "mlp 64, staged" "$(measured mlp staged)" 1
	enough 60 "restart to the first step" && expect "restart to the first step" restarts resnet20 --shape 32x32x3 --batch 128 --compute-type bf16
	enough 60 "deterministic bits" && expect "deterministic bits" same_bits bits
fi

[ -d data ] || say "The folder has no data: the runs and kills are left out."
if [ -d data ] && wants kills; then
	say "== kills with resume, two runs on one GPU"
	if enough 100 "kills of workers"; then
		kill_workers "$(least 165 "$(left)")" "${KILLS:-10}"
		row "$made of ${KILLS:-10} kills of workers" "$([ "$made" -ge "${KILLS:-10}" ] && echo ok || echo FAILED)" "$text"
	fi
	if enough 60 "two runs on one GPU"; then
		run first mnist >first.log 2>&1 &
		first=$!
		run second mnist >second.log 2>&1 &
		second=$!
		ends=0
		wait $first && ends=$((ends + 1))
		wait $second && ends=$((ends + 1))
		row "two runs on one GPU" "$([ $ends = 2 ] && echo ok || echo FAILED)" "$ends succeeded: first.log, second.log"
	fi
fi
# watch beside a load: a line each second, some of a GPU at work, and the watch's part of a
# core. The load's memory of the host is read 20 and 60 seconds after its start.
watching() {
	local most=${WATCH:-12} load cpu lines busy first last
	stoke-trainer-gpu bench mnist-cnn --engine xla --shape 28x28 --batch 256 --mode worker --seconds 20 >/dev/null &
	load=$!
	sleep 5 # it starts
	TIMEFORMAT='%U s user, %S s system'
	cpu=$({ time timeout "$most" stoke-gpu watch --every 1s >watch.log 2>watch.errors.log; } 2>&1)
	sleep $((15 - most))
	first=$(rss $load)
	sleep 40
	last=$(rss $load)
	kill $load
	wait $load
	lines=$(wc -l <watch.log)
	busy=$(grep -c '"utilization_percent":[1-9]' watch.log)
	echo "$lines lines, $busy of a GPU at work, CPU $cpu; load: ${first:-nothing} KiB after 20 s, ${last:-nothing} after 60 s"
	[ "$lines" -ge $((most * 8 / 10)) ] && [ "$busy" -gt 0 ] && ! grows "${first:-0}" "${last:-0}" 3 && [ -n "$last" ]
}
if wants memory; then
	say "== memory, readings"
	enough 75 "stoke-gpu watch beside a load" && expect "stoke-gpu watch beside a load" watching
	# A process that is killed leaves no memory on the GPU.
	nothing_left() {
		local used
		sleep 2
		used=$(nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader)
		echo "$(nvidia-smi --query-gpu=memory.used --format=csv,noheader | tr '\n' ' ') in use, processes: ${used:-none}"
		[ -z "$used" ]
	}
	command -v nvidia-smi >/dev/null && expect "memory of the GPU after all" nothing_left
fi
exit $failed
