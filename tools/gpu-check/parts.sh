# Parts of a long check, for bash: each call of the script does as much as fits into LIMIT
# seconds, and the next call goes on behind it. The file STATE has what is done.
#
#   part NAME UNITS NEEDS COMMAND…
#
# does the units of a part that are not done yet. COMMAND gets the units that are done and
# the seconds that are left, and sets made to the units that it has added; with 0 the part
# has failed and is not tried again. Units with a row "skipped:" are done, and
# counted as skipped. A call of COMMAND needs NEEDS seconds at least. PARTS names some of the parts.
# finish prints the parts and ends the script: 0 all are done, 1 one has failed, 3 there is
# more to do.
LIMIT=${LIMIT:-460}
STATE=${STATE:-long.state}
unfinished=0
left() { echo $((LIMIT - SECONDS)); }
# done_of prints the units of a part that are done, or "failed".
done_of() {
	[ -e "$STATE" ] || : >"$STATE"
	awk -v name="$1" '$1 == name { n = $2 } END { print n == "" ? 0 : n }' "$STATE"
}
skips_of() { awk -v name="$1" '$1 == name { n = $4 } END { print n + 0 }' "$STATE"; }
# note replaces the line of a part. A call that is killed leaves the old file or the new one.
note() { # name, units that are done, units, units of these that were skipped
	[ -e "$STATE" ] || : >"$STATE"
	awk -v name="$1" '$1 != name' "$STATE" >"$STATE.new"
	echo "$1 $2 $3 ${4:-0}" >>"$STATE.new"
	mv "$STATE.new" "$STATE"
}
part() { # name, units, seconds, command
	local name=$1 units=$2 needs=$3 at skips
	wants "$name" || return 0
	shift 3
	at=$(done_of "$name")
	skips=$(skips_of "$name")
	while [ "$at" != failed ] && [ "$at" -lt "$units" ]; do
		if [ $unfinished = 1 ] || [ "$(left)" -lt "$needs" ]; then
			unfinished=1 # the parts behind it wait, too
			note "$name" "$at" "$units" "$skips"
			return 0
		fi
		made=0
		skipped=0
		"$@" "$at" "$(left)"
		skips=$((skips + skipped))
		if [ "${made:-0}" -gt 0 ]; then at=$((at + made)); else at=failed; fi
		note "$name" "$at" "$units" "$skips"
	done
	return 0
}
finish() {
	if [ ! -e "$STATE" ]; then
		echo "PARTS names no part of this check: $PARTS"
		exit 1
	fi
	echo
	awk '{ printf "%-34s %s\n", $1, ($2 == "failed" ? "FAILED" : $2 " of " $3) ($4 > 0 ? ", " $4 " skipped" : "") }' "$STATE"
	if grep -q ' failed ' "$STATE"; then exit 1; fi
	if [ $unfinished = 1 ]; then
		echo "There is more to do: run the same command again."
		exit 3
	fi
	exit 0
}

failed=0
skipped=0 # rows of the unit at work
dumped=0 # failures whose output was printed
say() { echo "$*" | tee -a table.txt; }
row() { # name, outcome, text
	printf '%-34s %-6s %s\n' "$1" "$2" "$(echo "$3" | cut -c1-200)" | tee -a table.txt
	[ "$2" = FAILED ] && failed=1
	if [ "$2" = skipped: ]; then skipped=$((skipped + 1)); fi
	return 0
}
# expect NAME COMMAND… prints the last line of a command's output, and whether it ended well.
# The whole table has at most 12,000 characters: only some failures print more lines.
expect() {
	local name=$1 began=$SECONDS out outcome
	shift
	if out=$("$@" 2>&1); then outcome=ok; else outcome=FAILED; fi
	printf '== %s\n%s\n' "$name" "$out" >>outputs.log
	row "$name" "$outcome" "$(echo "$out" | grep -v '^ *$' | tail -n 1 | cut -c1-120) ($((SECONDS - began)) s)"
	if [ "$outcome" = FAILED ] && [ $dumped -lt 5 ]; then
		dumped=$((dumped + 1))
		echo "$out" | tail -n 10 | cut -c1-150 | sed 's/^/    /'
	fi
	return 0
}
# offs prints the lines of a test's log that have a distance of parameters.
offs() { grep 'off by' "$1" | sed 's/.*go:[0-9]*: /    /' | cut -c1-120 | tee -a table.txt; }
offset() { grep 'off by' "$1" | tail -n 1 | sed 's/.*go:[0-9]*: //'; }
# wants PART reports whether PARTS names a part; without PARTS all are wanted.
wants() { case " ${PARTS:-$1} " in *" $1 "*) return 0 ;; esac; return 1; }
least() { echo $(($1 < $2 ? $1 : $2)); }
# enough SECONDS NAME reports whether so much time is left, and a row where it is not.
enough() {
	[ "$(left)" -ge "$1" ] && return 0
	row "$2" "left out" "$(left) of $LIMIT seconds are left"
	return 1
}

# unpack FILE… replaces files packed by xz, by Python where xz is missing.
unpack() {
	local packed pids="" pid ok=0
	for packed in "$@"; do
		[ -e "$packed" ] || continue
		if command -v xz >/dev/null; then
			xz -d -f "$packed" &
		elif command -v python3 >/dev/null; then
			python3 -c 'import lzma, os, shutil, sys
with lzma.open(sys.argv[1]) as f, open(sys.argv[1][:-3], "wb") as t: shutil.copyfileobj(f, t, 1 << 20)
os.remove(sys.argv[1])' "$packed" &
		else
			say "The files are packed, and this machine has neither xz nor python3."
			return 1
		fi
		pids="$pids $!"
	done
	for pid in $pids; do
		if ! wait "$pid"; then ok=1; fi
	done
	[ $ok = 0 ] || say "Files cannot be unpacked: $(tail -n 1 errors.log 2>/dev/null)"
	return $ok
}
# find_python sets python, and the environment of Python whose packages XLA's files are in.
find_python() {
	python=$(command -v python3 || true)
	[ -z "$python" ] || [ -n "${VIRTUAL_ENV:-}" ] || VIRTUAL_ENV=$("$python" -c 'import sys; print(sys.prefix)') && export VIRTUAL_ENV
	return 0
}
# search_files names XLA's files to the trainer, wherever they are.
search_files() {
	local file site
	find / -xdev \( -name xla_cuda_plugin.so -o -name ptxas -o -name libdevice.10.bc -o -name 'libcudart.so.1[0-9]' -o -name libcudnn.so.9 \
		-o -name 'libcublas.so.1[0-9]' \) -not -path '/proc/*' >found.log
	file=$(grep -m 1 xla_cuda_plugin.so found.log) && export STOKE_XLA_PLUGIN=$file
	site=${file%/jax_plugins/*}
	STOKE_CUDA_LIBRARIES=$(grep '/lib[a-zA-Z]*\.so' found.log | sed 's/\/[^/]*$//' | sort -u | tr '\n' ':')
	export STOKE_CUDA_LIBRARIES="$site:$STOKE_CUDA_LIBRARIES"
	file=$(grep -m 1 'bin/ptxas$' found.log) && export STOKE_PTXAS=$file
	file=$(grep -m 1 'libdevice.10.bc$' found.log) && export STOKE_LIBDEVICE=$file
	return 0
}
# machine prints what a machine has of a GPU.
machine() {
	say "python3: ${python:-none}, environment ${VIRTUAL_ENV:-none}; nvidia-smi: $(nvidia-smi -L 2>&1 | head -n 1 | cut -c1-120)"
	say "driver: $(ls -d /proc/driver/nvidia/version /proc/driver/nvidia/gpus/*/information /dev/nvidia* 2>&1 | tr '\n' ' ' | cut -c1-500)"
	say "files: $(tr '\n' ' ' <found.log | cut -c1-1500)"
}
# save copies the table and all logs to RESULTS.
save() {
	if [ -n "${RESULTS:-}" ] && [ -d "$RESULTS" ]; then
		cp table.txt "$RESULTS"
		tar czf "$RESULTS/logs.tgz" ./*.log run-*/*.log metrics.csv 2>/dev/null
	fi
	return 0
}

# workers prints the processes of the workers of runs.
workers() {
	local file words
	for file in /proc/[0-9]*/cmdline; do
		mapfile -d '' -t words 2>/dev/null <"$file" || continue # in this order, bash is silent about a process that has ended
		case "${words[*]:-}" in *"stoke-trainer-gpu worker"*)
			file=${file#/proc/}
			echo "${file%/cmdline}"
			;;
		esac
	done
}
# age prints the seconds since a process has started, 0 where it has ended.
age() {
	local stat up
	read -r up _ </proc/uptime
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || { echo 0; return 0; }
	set -- ${stat##*) }
	echo $((${up%.*} - ${20} / 100))
}

# rss prints the resident memory of a process in KiB.
rss() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status" 2>/dev/null; }
# grows reports whether the second number is more than the first by more percent.
grows() { awk -v a="$1" -v b="$2" -v most="$3" 'BEGIN { exit !(a <= 0 || b > a * (1 + most / 100)) }'; }
# steps prints the steps per second of bench, from its JSON.
steps() { sed -n 's/.*"steps_per_second":\([0-9.e+]*\).*/\1/p'; }
first_step() { sed -n 's/.*"first_step_seconds":\([0-9.e+-]*\).*/\1/p'; } # of bench
# same_bits NAME COMMAND… runs a command twice, and fails where the lines of its output that
# begin with "bits " differ or are missing.
same_bits() {
	local one two
	one=$("$@" | grep '^bits ')
	two=$("$@" | grep '^bits ')
	[ -n "$one" ] && [ "$one" = "$two" ] && echo "$(echo "$one" | wc -l) models have the same bits in two processes"
}
