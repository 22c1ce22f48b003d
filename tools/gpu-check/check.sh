#!/bin/bash
# Checks stoke on a machine with an NVIDIA GPU, in a folder that build.sh made: health, numbers,
# speed beside JAX and PyTorch where they are, runs through the local launcher, kills,
# deterministic bits, two runs on one GPU. It prints a table, and ends with 1 where a line
# of it failed. LONG=1 measures more models and kills more often.
set -u
cd "$(dirname "$0")" || exit 1
chmod +x bin/* 2>/dev/null
for packed in bin/*.xz data/cifar10/*.xz; do [ -e "$packed" ] && xz -d -f "$packed"; done
chmod +x bin/*
ln -sf stoke-trainer-gpu bin/stoke-trainer # it does all that stoke-trainer does
rm -rf run-*
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

stoke-trainer-gpu engines || exit 1
if ! stoke-trainer-gpu engines --json | grep -q '"engines":\[[^]]*"xla"'; then
	echo "The engine xla does not work on this machine: see above." >&2
	exit 1
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
numbers() { gpu.test -test.run TestOnGPU -test.v -test.timeout 200s >numbers.log 2>&1; }
expect "parameters against float64" numbers
grep 'off by' numbers.log | sed 's/.*go:[0-9]*: /    /'

echo; echo "== speed, steps per second (data resident, forward, backward and update)"
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
beside mnist-cnn cnn 28x28 64 tf32 tf32 1.0 1.0 # with dropout, which the twin has not
beside resnet20 resnet20 32x32x3 128 bf16 bf16 0.95 1.0
if [ -n "${LONG:-}" ]; then
	beside mlp mlp 784 64 tf32 tf32 0.95 1.0
	beside mnist-cnn cnn 28x28 1024 tf32 tf32 1.0 1.0
	beside resnet20 resnet20 32x32x3 128 tf32 tf32 0.95 1.0
	beside resnet20 resnet20 32x32x3 1024 tf32 tf32 0.95 1.0
	beside resnet20 resnet20 32x32x3 1024 bf16 bf16 0.95 1.0
fi
atLeast() { # name, number, least
	row "$1" "$(awk -v n="${2:-0}" -v least="$3" 'BEGIN { print ((n >= least && n > 0) ? "ok" : "FAILED") }')" "${2:-nothing} micro-batches/s, want $3"
}
measured() { stoke-trainer-gpu bench "$1" --engine xla --shape 28x28 --batch 64 --mode "$2" --seconds 0.3 | steps; }
atLeast "mlp 64, staged" "$(measured mlp staged)" 1
atLeast "mlp 64, lease of 16" "$(measured mlp lease)" 10000
atLeast "mnist-cnn 64, lease of 16" "$(measured mnist-cnn lease)" 3000

if [ ! -d data ]; then
	echo "The folder has no data: the runs are left out."
	exit $failed
fi
echo; echo "== runs through the local launcher"
run() { # name, configuration: applies it in a folder of its own
	mkdir -p "run-$1"
	cp "$2.tf" "run-$1/main.tf"
	stoke -chdir="run-$1" init -no-color >/dev/null && stoke -chdir="run-$1" apply -auto-approve -no-color && stoke -chdir="run-$1" output -no-color
}
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
# A worker that ends within 5 seconds counts against the run's restarts: only older ones
# are killed. The run has enough epochs for all kills.
want=${KILLS:-$([ -n "${LONG:-}" ] && echo 200 || echo 10)}
sed 's/^    epochs .*/    epochs        = '$((want * 30))'/' mnist.tf >killed.tf
run killed killed >killed.log 2>&1 &
apply=$!
kills=0
while kill -0 $apply 2>/dev/null && [ $kills -lt "$want" ]; do
	sleep 1
	for pid in $(pgrep -f 'stoke-trainer-gpu worker'); do
		age=$(ps -o etimes= -p "$pid" | tr -d ' ')
		[ "${age:-0}" -ge 6 ] && kill -9 "$pid" 2>/dev/null && kills=$((kills + 1))
	done
done
sleep 8
goes=$(stoke -chdir=run-killed status -json train_experiment.model 2>/dev/null | sed -n 's/.*"phase": *"\([a-z]*\)".*/\1/p' | head -n 1)
if [ $kills -ge "$want" ] && { [ "$goes" = running ] || [ "$goes" = succeeded ]; }; then
	row "$kills kills of workers" ok "the run is $goes"
else
	row "$kills of $want kills of workers" FAILED "the run is ${goes:-unknown}: see killed.log"
fi
kill -INT $apply 2>/dev/null
wait $apply
stoke -chdir=run-killed destroy -auto-approve -no-color >/dev/null 2>&1
run first mnist >first.log 2>&1 &
first=$!
run second mnist >second.log 2>&1 &
second=$!
if wait $first && wait $second; then row "two runs on one GPU" ok "both succeeded"; else row "two runs on one GPU" FAILED "see first.log, second.log"; fi
if command -v nvidia-smi >/dev/null; then
	row "memory of the GPU after all" ok "$(nvidia-smi --query-gpu=memory.used --format=csv,noheader | tr '\n' ' ')"
fi
exit $failed
