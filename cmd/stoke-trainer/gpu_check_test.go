package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkParts runs a script of parts in a folder, as gpu-check does with LONG=1, and returns
// its output and exit status.
func checkParts(t *testing.T, folder, script string) (string, int) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	parts, err := filepath.Abs("../../tools/gpu-check/parts.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, "-c", "set -u\n. "+parts+"\n"+script)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), asTrainer+"=1", "TRAINER="+os.Args[0])
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A long check goes on where its last call ended, does no unit twice, and does not repeat a
// part that has failed. The script's clock is set by hand.
func TestLongCheckGoesOn(t *testing.T) {
	folder := t.TempDir()
	const script = `
		LIMIT=100
		unit() { echo "$1 $2 of $3" >>done; SECONDS=$((SECONDS + 40)); made=1; }
		bulk() { echo "bulk $1 of $2" >>done; SECONDS=$((SECONDS + 90)); made=$((200 - $1 < 90 ? 200 - $1 : 90)); }
		broken() { echo "broken" >>done; }
		unset SECONDS # it is a plain number from then on
		SECONDS=0
		part models 3 40 unit models
		part kills 200 80 bulk
		part bad 1 10 broken
		part last 1 10 unit last
		finish`
	for i, want := range []struct {
		code int
		done string // by this call
		says string
	}{
		{3, "models 0 of 100\nmodels 1 of 60\n", "models                             2 of 3"},
		{3, "models 2 of 100\n", "kills                              0 of 200"},
		{3, "bulk 0 of 100\n", "kills                              90 of 200"},
		{3, "bulk 90 of 100\n", "run the same command again"},
		{1, "bulk 180 of 100\nbroken\nlast 0 of 10\n", "bad                                FAILED"},
		{1, "", "kills                              200 of 200"},
	} {
		os.Remove(filepath.Join(folder, "done")) //nolint:errcheck // the first call finds none
		out, code := checkParts(t, folder, script)
		done, _ := os.ReadFile(filepath.Join(folder, "done"))
		if code != want.code || string(done) != want.done || !strings.Contains(out, want.says) {
			t.Errorf("call %d: status %d, want %d; done\n%swant\n%s\n%s", i, code, want.code, done, want.done, out)
		}
	}
}

// The helpers of gpu-check read what the trainer and the machine print.
func TestCheckHelpers(t *testing.T) {
	out, code := checkParts(t, t.TempDir(), `
		n=$("$TRAINER" bench mlp --engine cpu --shape 4x4 --batch 4 --mode lease --seconds 0.01 | steps)
		awk -v n="$n" 'BEGIN { exit !(n > 0) }' || echo "steps: $n"
		[ "$(rss $$)" -gt 500 ] || echo "rss: $(rss $$)"
		[ -z "$(rss 0)" ] || echo "rss of no process"
		grows 1000 1030 3 && echo "3 % are not more than 3 %"
		grows 1000 1031 3 || echo "3.1 % are more"
		grows 0 5 3 || echo "no first number"
		same() { echo "bits mlp 1f"; echo "took $RANDOM"; }
		other() { echo "bits mlp $RANDOM$RANDOM"; }
		same_bits same || echo "the same bits"
		same_bits other && echo "other bits"
		same_bits true && echo "no bits"
		unset SECONDS; STATE=x; LIMIT=10; SECONDS=0
		half() { exit 9; }
		note a 1 2
		(part a 2 5 half)
		without() { row "$1" skipped: "no python3" >/dev/null; made=1; }
		part b 2 5 without
		(PARTS="a c"; part b 3 5 half)
		[ "$(grep '^b ' x)" = "b 2 2 2" ] || echo "skipped: $(cat x)"
		(finish) | grep -qE '^b +2 of 2, 2 skipped$' || echo "finish: $(finish)"
		(STATE=y; PARTS=none; part a 1 5 half; finish) | grep -q 'names no part' || echo "no part"
		first=$(echo '{"build_seconds":3,"first_step_seconds":1.25e+00,"x":1}' | first_step)
		[ "$first" = 1.25e+00 ] || echo "first step: $first"
		[ "$(done_of a)" = 1 ] || echo "killed: $(cat x)"
		true`)
	if out = strings.TrimSpace(out); code != 0 || out != "1 models have the same bits in two processes" {
		t.Errorf("status %d: %s", code, out)
	}
}

// double is in place of all programs that check.sh runs. MODE says how they do: good, bad
// (each fails, with much output), none (no engine of GPUs), lost (XLA's files are found by
// a search only), alone (without JAX and PyTorch), slow (behind JAX and PyTorch).
const double = `#!/bin/bash
name=${0##*/}
echo "noise of $name" >&2
case "$name $*" in
"sleep "*) exit 0 ;;
"find "*) echo /x/jax_plugins/xla_cuda13/xla_cuda_plugin.so; echo /x/nvidia/cu13/lib/libcudart.so.13; echo /u/bin/ptxas; exit ;;
"stoke-trainer-gpu engines --json"*)
	if [ $MODE = none ] || [ $MODE = lost -a -z "${STOKE_XLA_PLUGIN:-}" ]; then echo '{"engines":["cpu"]}'; else echo '{"engines":["cpu","xla"]}'; fi
	exit ;;
"stoke-trainer-gpu engines"*) echo "xla     works  0 NVIDIA H200"; exit ;;
esac
if [ $MODE = bad ]; then
	for i in {1..200}; do printf 'line %d of an error %0200d\n' $i 0; done
	exit 1
fi
case "$MODE $name $*" in
"alone python3 -c"*find_spec*) exit 1 ;;
[ags]*" python3 -c"*find_spec*) exit ;;
"alone gpu.test "*FullSize*) echo "    gpu_test.go:7: skipped: python3 has no PyTorch: exit status 1"; exit ;;
"slow python3 python/"*) echo "jax cnn 64 900100.5 steps/s 11 samples/s"; exit ;;
"slow stoke-trainer-gpu bench"*) echo '{"first_step_seconds":2.5,"steps_per_second":20000.5,"x":1}'; exit ;;
"slow stoke "*output*) echo "samples_per_second = 12.5"; exit ;;
esac
case "$name $*" in
"stoke-trainer-gpu bench"*"--seconds 20"*) exec tail -f /dev/null ;;
"stoke-trainer-gpu bench"*) echo '{"first_step_seconds":1.5,"steps_per_second":20000.5,"x":1}' ;;
"stoke-gpu check"*) echo "fit, 790 TFLOP/s" ;;
"stoke-gpu watch"*) for i in {1..12}; do echo '{"utilization_percent":50}'; done ;;
"gpu.test "*Bits*) echo "    gpu_test.go:12: bits mlp 12ab" ;;
"gpu.test "*TooLarge*) echo "    gpu_test.go:9: about 77 would fit" ;;
"gpu.test "*) echo "    gpu_test.go:12: mlp f32: parameters are off by 1e-7 after 20 updates" ;;
"stoke "*status*) echo '{"phase": "running"}' ;;
"stoke "*metrics*) echo "coordinator.gpu0.utilization_percent" ;;
"stoke "*output*) echo "accuracy = 0.99"; echo "samples_per_second = 3e+07" ;;
"nvidia-smi "*apps*) ;;
"python3 -c"*) echo /opt/x ;;
"python3 python/"*) echo "jax cnn 64 100.5 steps/s 11 samples/s" ;;
*) echo "$name" ;;
esac
`

// checkWith runs check.sh with doubles of the programs, and returns its output and exit status.
func checkWith(t *testing.T, mode string, environ ...string) (string, int) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	folder := t.TempDir()
	for _, dir := range []string{"bin", "data/cifar10"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"check.sh", "parts.sh", "mnist.tf", "resnet20.tf", "speed.tf"} {
		data, err := os.ReadFile(filepath.Join("../../tools/gpu-check", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"stoke", "stoke-trainer-gpu", "stoke-gpu", "gpu.test", "nvidia-smi", "python3", "find", "sleep"} {
		if err := os.WriteFile(filepath.Join(folder, "bin", name), []byte(double), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(bash, filepath.Join(folder, "check.sh"))
	cmd.Env = append(os.Environ(), "MODE="+mode, "KILLS=0", "LONG=", "LIMIT=5000", "VIRTUAL_ENV=", "RESULTS="+folder,
		"PATH="+filepath.Join(folder, "bin")+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, environ...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for _, name := range []string{"table.txt", "logs.tgz"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// check.sh prints a row for each part, also where parts before it have failed, in little
// room; only rows that failed make it fail.
func TestCheckPrintsEachPart(t *testing.T) {
	rows := []string{
		"stoke-gpu list", "stoke-gpu check, with a product", "parameters against float64", "too large a micro-batch",
		"MNIST CNN, accuracy ≥ 0.985", "readings of GPUs in the run", "ResNet-20 in bf16, accuracy ≥ 0.80",
		"mnist-cnn tf32, batch 64", "resnet20 bf16, batch 128", "mlp 64, lease of 16", "mnist-cnn 64, lease of 16",
		"resnet20, one worker of resident", "mlp 64, staged", "restart to the first step", "deterministic bits", "two runs on one GPU",
		"stoke-gpu watch beside a load", "memory of the GPU after all",
	}
	for mode, want := range map[string]string{"good": "ok", "bad": "FAILED"} {
		out, code := checkWith(t, mode)
		if failed := code != 0; failed != (mode == "bad") {
			t.Errorf("%s: status %d", mode, code)
		}
		for _, row := range rows {
			if got := outcomeOf(out, row); got != want {
				t.Errorf("%s: row %q is %q, want %q", mode, row, got, want)
			}
		}
		if len(out) > 12_000 {
			t.Errorf("%s: %d characters", mode, len(out))
		}
		if t.Failed() {
			t.Logf("%s:\n%s", mode, out)
		}
	}
}

// outcomeOf returns the outcome of a row: ok, FAILED, skipped:, or "" where it is missing.
func outcomeOf(out, row string) string {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, row+" "); ok {
			return strings.Fields(rest + " .")[0]
		}
	}
	return ""
}

// The long check has a row for each comparison, which is "skipped:" and never "ok" where
// the machine lacks what it compares with, and fails where a ratio is too small.
func TestLongCheckPrintsEachComparison(t *testing.T) {
	twins := []string{
		"mnist-cnn tf32, batch 64", "resnet20 bf16, batch 128", "resnet20 bf16, batch 1024", "resnet20 tf32, batch 128",
		"resnet20 tf32, batch 1024", "mlp tf32, batch 64", "transformer tf32, batch 64", "transformer bf16, batch 64",
	}
	large := []string{"resnet18 against float64", "transformer against float64"}
	own := []string{
		"run from disk, all_reduce, batch 128", "run from disk, all_reduce, batch 1024", "restart to the first step",
		"run from disk, parameter_server, batch 128", "run from disk, parameter_server, batch 1024",
	}
	for mode, want := range map[string]struct {
		twin, large, own string
		code             int
		says             []string
	}{
		"good": {"ok", "ok", "ok", 0, []string{"float64                            2 of 2\n", "199.01 of torch.compile", "speed                              9 of 9\n"}},
		"alone": {"skipped:", "skipped:", "ok", 0, []string{
			"float64                            2 of 2, 2 skipped\n", "speed                              9 of 9, 9 skipped\n",
			"skipped: JAX: no jax, a CUDA graph of PyTorch: no torch, torch.compile: no torch; 20000 steps/s", "torch.compile skipped: no torch",
		}},
		"slow": {"FAILED", "ok", "FAILED", 1, []string{"0.02 of JAX (want 1.0)", "want 2"}},
		"bad":  {"FAILED", "FAILED", "FAILED", 1, nil},
	} {
		out, code := checkWith(t, mode, "LONG=1", "PARTS=models float64 bits speed restart runs")
		if code != want.code {
			t.Errorf("%s: status %d, want %d", mode, code, want.code)
		}
		// A part ends with its first failure: rows behind that are missing.
		for rows, outcome := range map[*[]string]string{&twins: want.twin, &large: want.large, &own: want.own} {
			for i, row := range *rows {
				if got := outcomeOf(out, row); got != outcome && (outcome != "FAILED" || i == 0 || got != "") {
					t.Errorf("%s: row %q is %q, want %q", mode, row, got, outcome)
				}
			}
		}
		for _, text := range want.says {
			if !strings.Contains(out, text) {
				t.Errorf("%s: without %q", mode, text)
			}
		}
		if strings.Contains(out, "kills") || len(out) > 12_000 {
			t.Errorf("%s: %d characters, or a part that PARTS does not name", mode, len(out))
		}
		if t.Failed() {
			t.Logf("%s:\n%s", mode, out)
		}
	}
}

// A machine on which the engine does not work gets a list of what it has; files that only a
// search of the machine finds are used.
func TestCheckWithoutAnEngine(t *testing.T) {
	out, code := checkWith(t, "none")
	for _, want := range []string{"does not work on this machine", "/x/jax_plugins/xla_cuda13/xla_cuda_plugin.so", "environment /opt/x"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("status %d, without %q:\n%s", code, want, out)
		}
	}
	out, code = checkWith(t, "lost")
	if want := fmt.Sprintf("not by the program: %s", "/x/jax_plugins/xla_cuda13/xla_cuda_plugin.so"); code != 1 || !strings.Contains(out, want) ||
		!strings.Contains(out, "memory of the GPU after all") {
		t.Errorf("status %d, without %q:\n%s", code, want, out)
	}
}

// The processes of workers are found, with their ages, and packed files are unpacked.
func TestCheckKnowsWorkers(t *testing.T) {
	out, code := checkParts(t, t.TempDir(), `
		bash -c 'exec -a "stoke-trainer-gpu worker" sleep 100' &
		one=$!
		for ((i = 0; i < 3000; i++)); do
			[ -n "$(workers)" ] && break
			sleep 0.1
		done
		workers | grep -qx $one || echo "workers: $(workers)"
		[ "$(age $one)" -ge 0 ] && [ "$(age $one)" -lt 1000 ] || echo "age: $(age $one)"
		[ "$(age $$)" -ge "$(age $one)" ] || echo "ages: $(age $$) $(age $one)"
		kill $one
		wait $one 2>/dev/null
		[ "$(age $one)" = 0 ] || echo "age after its end: $(age $one)"
		command -v xz >/dev/null || exit 0
		echo text >a; echo more >b
		xz a b
		unpack a.xz b.xz missing.xz || echo "not unpacked"
		[ "$(cat a b | tr '\n' ' ')" = "text more " ] || echo "unpacked: $(ls)"
		echo broken >c.xz
		unpack c.xz 2>/dev/null && echo "a damaged file was unpacked"
		true`)
	if out = strings.TrimSpace(out); code != 0 || !strings.HasPrefix(out, "Files cannot be unpacked") || strings.Contains(out, "\n") {
		t.Errorf("status %d: %s", code, out)
	}
}
