#!/bin/bash
# Checks stoke on a machine with an NVIDIA GPU, in a folder that build.sh made: health, numbers,
# speed beside JAX and PyTorch where they are, runs through the local launcher, kills,
# deterministic bits, two runs on one GPU. It prints a table, and ends with 1 where a line
# of it failed. LONG=1 checks all models, 200 kills, and memory over 10 minutes in place of
# that: in parts of 8 minutes at most. Each call goes on where the last one ended, and ends
# with 3 where there is more to do; RESTART=1 begins again.
set -u
cd "$(dirname "$0")" || exit 1
chmod +x bin/* 2>/dev/null
for packed in bin/*.xz data/cifar10/*.xz; do [ -e "$packed" ] && xz -d -f "$packed"; done
chmod +x bin/*
ln -sf stoke-trainer-gpu bin/stoke-trainer # it does all that stoke-trainer does
rm -rf run-*
. ./parts.sh
[ -z "${RESTART:-}" ] || rm -f "$STATE"
export PATH="$PWD/bin:$PATH" HOME="${HOME:-$PWD}" XLA_PYTHON_CLIENT_PREALLOCATE=false
failed=0
row() { # name, outcome, text
	printf '%-34s %-6s %s\n' "$1" "$2" "$3"
	[ "$2" = FAILED ] && failed=1
	return 0
}
# expect NAME COMMAND… prints the last line of a command's output, and whether it ended well.
expect() {
	name=$1
	shift
	began=$SECONDS
	if out=$("$@" 2>&1); then outcome=ok; else outcome=FAILED; fi
	row "$name" "$outcome" "$(echo "$out" | tail -n 1 | cut -c1-120) ($((SECONDS - began)) s)"
	[ "$outcome" = FAILED ] && echo "$out" | tail -n 20
	return 0
}
measured_check() { # all rates are measured
	stoke-gpu check | tee check.log
	[ "${PIPESTATUS[0]}" = 0 ] && grep -q 'TFLOP/s' check.log
}
steps() { # steps per second of bench, from its JSON
	sed -n 's/.*"steps_per_second":\([0-9.e+]*\).*/\1/p'
}
python=$(command -v python3 || true)
twin() { # framework, model, batch/precision(/mode): steps per second of the twin, or nothing
	[ -n "$python" ] && "$python" "python/$1_ref.py" "$2" "$3" 2>/dev/null | sed -n 's/.* \([0-9.]*\) steps\/s.*/\1/p' | tail -n 1
}
beside() { # model, twin's name, shape, batch, type, twin's precision, least of JAX, least of the graph
	ours=$(stoke-trainer-gpu bench "$1" --engine xla --shape "$3" --batch "$4" --compute-type "$5" --seconds 0.3 | steps)
	jax=$(twin jax "$2" "$4/$6")
	graph=$(twin torch "$2" "$4/$6/graph")
	row "$1 $5, batch $4" "$(awk -v o="${ours:-0}" -v j="${jax:-0}" -v g="${graph:-0}" -v lj="$7" -v lg="$8" 'BEGIN {
			print (o <= 0 || (j > 0 && o / j < lj) || (g > 0 && o / g < lg)) ? "FAILED" : "ok" }')" \
		"$(awk -v o="${ours:-0}" -v j="${jax:-0}" -v g="${graph:-0}" 'BEGIN {
			printf "%.0f steps/s", o
			if (j > 0) printf ", %.2f of JAX", o / j
			if (g > 0) printf ", %.2f of a CUDA graph of PyTorch", o / g }')"
}
run() { # name, configuration: applies it in a folder of its own
	mkdir -p "run-$1"
	cp "$2.tf" "run-$1/main.tf"
	stoke -chdir="run-$1" init -no-color >/dev/null && stoke -chdir="run-$1" apply -auto-approve -no-color && stoke -chdir="run-$1" output -no-color
}
bits() { gpu.test -test.run 'TestBitsOnGPU$' -test.v -test.timeout 100s | sed 's/^ *[a-z_]*.go:[0-9]*: //'; }
# kill_workers SECONDS MOST kills up to MOST workers of a run, one after the other. A
# worker that ends within 5 seconds counts against the run's restarts: only older ones are
# killed. It sets made to the kills, 0 where the run does not go on, and text.
kill_workers() {
	local until=$((SECONDS + $1 - 45)) most=$2 pid age goes apply
	sed 's/^    epochs .*/    epochs        = '$((most * 30))'/' mnist.tf >killed.tf
	run killed killed >killed.log 2>&1 &
	apply=$!
	made=0
	while kill -0 $apply 2>/dev/null && [ $made -lt "$most" ] && [ $SECONDS -lt $until ]; do
		sleep 1
		for pid in $(pgrep -f 'stoke-trainer-gpu worker'); do
			age=$(ps -o etimes= -p "$pid" | tr -d ' ')
			[ "${age:-0}" -ge 6 ] && kill -9 "$pid" 2>/dev/null && made=$((made + 1))
		done
	done
	sleep 8
	goes=$(stoke -chdir=run-killed status -json train_experiment.model 2>/dev/null | sed -n 's/.*"phase": *"\([a-z]*\)".*/\1/p' | head -n 1)
	text="the run is ${goes:-unknown}"
	if [ "$goes" != running ] && [ "$goes" != succeeded ]; then
		made=0
		text="$text: see killed.log"
	fi
	kill -INT $apply 2>/dev/null
	wait $apply
	stoke -chdir=run-killed destroy -auto-approve -no-color >/dev/null 2>&1
}

stoke-trainer-gpu engines || exit 1
if ! stoke-trainer-gpu engines --json | grep -q '"engines":\[[^]]*"xla"'; then
	echo "The engine xla does not work on this machine: see above." >&2
	exit 1
fi

if [ -n "${LONG:-}" ]; then
	# A call of these adds one unit, or sets made to those that it has added.
	every_model() {
		gpu.test -test.run TestEveryModelOnGPU -test.v -test.timeout "${2}s" >models.log 2>&1 && made=1
		grep 'off by' models.log | sed 's/.*go:[0-9]*: /    /'
	}
	speeds=(
		"mnist-cnn cnn 28x28 64 tf32 tf32 1.0 1.0" "resnet20 resnet20 32x32x3 128 bf16 bf16 0.95 1.0" "mlp mlp 784 64 tf32 tf32 0.95 1.0"
		"mnist-cnn cnn 28x28 1024 tf32 tf32 1.0 1.0" "resnet20 resnet20 32x32x3 128 tf32 tf32 0.95 1.0"
		"resnet20 resnet20 32x32x3 1024 tf32 tf32 0.95 1.0" "resnet20 resnet20 32x32x3 1024 bf16 bf16 0.95 1.0"
	)
	speed() {
		failed=0
		beside ${speeds[$1]} # words of one comparison
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
		run long long >long.log 2>&1 &
		apply=$!
		for ((began = SECONDS; SECONDS < began + 60; )); do
			pid=$(pgrep -f 'stoke-trainer-gpu worker' | head -n 1)
			[ -n "$pid" ] && break
			sleep 1
		done
		sleep 60
		first=$(rss "${pid:-0}")
		sleep 240
		last=$(rss "${pid:-0}")
		if ! grows "${first:-0}" "${last:-0}" 3 && [ -n "$last" ]; then made=300; fi
		row "memory of a worker" "$([ $made -gt 0 ] && echo ok || echo FAILED)" "${first:-nothing} KiB after 60 s, ${last:-nothing} KiB after 300 s"
		kill -INT $apply 2>/dev/null
		wait $apply
		stoke -chdir=run-long destroy -auto-approve -no-color >/dev/null 2>&1
	}
	part models 1 300 every_model
	part bits 1 100 same
	part speed ${#speeds[@]} 90 speed
	if [ -d data ]; then
		part kills 200 120 kills
		part memory-seconds 600 400 memory
	else
		echo "The folder has no data: kills and memory are left out."
	fi
	finish
fi

echo; echo "== health"
expect "stoke-gpu list" stoke-gpu list
expect "stoke-gpu check, with a product" measured_check
# watch beside a load: a line each second, some of a GPU at work, and the watch's part of a core.
watching() {
	stoke-trainer-gpu bench mnist-cnn --engine xla --shape 28x28 --batch 1024 --seconds $((${WATCH:-30} / 3 + 1)) >/dev/null 2>&1 &
	load=$!
	sleep 5 # it starts
	TIMEFORMAT='%U s user, %S s system'
	cpu=$({ time timeout "${WATCH:-30}" stoke-gpu watch --every 1s >watch.log; } 2>&1)
	wait $load
	lines=$(wc -l <watch.log)
	busy=$(grep -c '"utilization_percent":[1-9]' watch.log)
	echo "$lines lines, $busy of a GPU at work, CPU $cpu"
	[ "$lines" -ge $((${WATCH:-30} * 9 / 10)) ] && [ "$busy" -gt 0 ]
}
expect "stoke-gpu watch beside a load" watching

echo; echo "== numbers: 20 updates against float64, deterministic bits"
numbers() { gpu.test -test.run 'TestOnGPU$' -test.v -test.timeout 200s >numbers.log 2>&1; }
expect "parameters against float64" numbers
grep 'off by' numbers.log | sed 's/.*go:[0-9]*: /    /'
expect "deterministic bits" same_bits bits

echo; echo "== speed, steps per second (data resident, forward, backward and update)"
beside mnist-cnn cnn 28x28 64 tf32 tf32 1.0 1.0 # with dropout, which the twin has not
beside resnet20 resnet20 32x32x3 128 bf16 bf16 0.95 1.0
atLeast() { # name, number, least
	row "$1" "$(awk -v n="${2:-0}" -v least="$3" 'BEGIN { print ((n >= least && n > 0) ? "ok" : "FAILED") }')" "${2:-nothing} micro-batches/s, want $3"
}
measured() { stoke-trainer-gpu bench "$1" --engine xla --shape 28x28 --batch 64 --mode "$2" --seconds 0.3 | steps; }
atLeast "mlp 64, staged" "$(measured mlp staged)" 1
# A run with one worker, without its data: against the same network with everything resident.
alone=$(stoke-trainer-gpu bench resnet20 --engine xla --shape 32x32x3 --batch 128 --compute-type bf16 --mode worker --seconds 0.3 | steps)
whole=$(stoke-trainer-gpu bench resnet20 --engine xla --shape 32x32x3 --batch 128 --compute-type bf16 --seconds 0.3 | steps)
row "resnet20, one worker of resident" "$(awk -v a="${alone:-0}" -v w="${whole:-0}" 'BEGIN { print a > 0 && a >= 0.9 * w ? "ok" : "FAILED" }')" \
	"${alone:-nothing} of ${whole:-nothing} steps/s, want 0.9"
atLeast "mlp 64, lease of 16" "$(measured mlp lease)" 10000
atLeast "mnist-cnn 64, lease of 16" "$(measured mnist-cnn lease)" 3000

if [ ! -d data ]; then
	echo "The folder has no data: the runs are left out."
	exit $failed
fi
echo; echo "== runs through the local launcher"
expect "MNIST CNN, accuracy ≥ 0.985" run mnist mnist
# The same readings through a run, which has gpu_health = "required".
readings() {
	stoke -chdir=run-mnist metrics -csv train_experiment.model >metrics.csv
	stoke -chdir=run-mnist output -no-color | grep gpu_health
	grep -c 'coordinator.gpu[0-9]*.utilization_percent' metrics.csv
}
expect "readings of GPUs in the run" readings
expect "ResNet-20 in bf16, accuracy ≥ 0.80" run resnet20 resnet20

echo; echo "== kills with resume, two runs on one GPU"
kill_workers 165 "${KILLS:-10}"
if [ "$made" -ge "${KILLS:-10}" ]; then row "$made kills of workers" ok "$text"; else row "$made of ${KILLS:-10} kills of workers" FAILED "$text"; fi
run first mnist >first.log 2>&1 &
first=$!
run second mnist >second.log 2>&1 &
second=$!
if wait $first && wait $second; then row "two runs on one GPU" ok "both succeeded"; else row "two runs on one GPU" FAILED "see first.log, second.log"; fi
if command -v nvidia-smi >/dev/null; then
	row "memory of the GPU after all" ok "$(nvidia-smi --query-gpu=memory.used --format=csv,noheader | tr '\n' ' ')"
fi
exit $failed
