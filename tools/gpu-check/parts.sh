# Parts of a long check, for bash: each call of the script does as much as fits into LIMIT
# seconds, and the next call goes on behind it. The file STATE has what is done.
#
#   part NAME UNITS NEEDS COMMAND…
#
# does the units of a part that are not done yet. COMMAND gets the units that are done and
# the seconds that are left, and sets made to the units that it has added; with 0 the part
# has failed and is not tried again. A call of COMMAND needs NEEDS seconds at least.
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
# note replaces the line of a part. A call that is killed leaves the old file or the new one.
note() {
	[ -e "$STATE" ] || : >"$STATE"
	awk -v name="$1" '$1 != name' "$STATE" >"$STATE.new"
	echo "$1 $2 $3" >>"$STATE.new"
	mv "$STATE.new" "$STATE"
}
part() { # name, units, seconds, command
	local name=$1 units=$2 needs=$3 at
	shift 3
	at=$(done_of "$name")
	while [ "$at" != failed ] && [ "$at" -lt "$units" ]; do
		if [ $unfinished = 1 ] || [ "$(left)" -lt "$needs" ]; then
			unfinished=1 # the parts behind it wait, too
			note "$name" "$at" "$units"
			return 0
		fi
		made=0
		"$@" "$at" "$(left)"
		if [ "${made:-0}" -gt 0 ]; then at=$((at + made)); else at=failed; fi
		note "$name" "$at" "$units"
	done
	return 0
}
finish() {
	echo
	awk '{ printf "%-34s %s\n", $1, $2 == "failed" ? "FAILED" : $2 " of " $3 }' "$STATE"
	if grep -q ' failed ' "$STATE"; then exit 1; fi
	if [ $unfinished = 1 ]; then
		echo "There is more to do: run the same command again."
		exit 3
	fi
	exit 0
}

# rss prints the resident memory of a process in KiB.
rss() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status" 2>/dev/null; }
# grows reports whether the second number is more than the first by more percent.
grows() { awk -v a="$1" -v b="$2" -v most="$3" 'BEGIN { exit !(a <= 0 || b > a * (1 + most / 100)) }'; }
# steps prints the steps per second of bench, from its JSON.
steps() { sed -n 's/.*"steps_per_second":\([0-9.e+]*\).*/\1/p'; }
# same_bits NAME COMMAND… runs a command twice, and fails where the lines of its output that
# begin with "bits " differ or are missing.
same_bits() {
	local one two
	one=$("$@" | grep '^bits ')
	two=$("$@" | grep '^bits ')
	[ -n "$one" ] && [ "$one" = "$two" ] && echo "$(echo "$one" | wc -l) models have the same bits in two processes"
}
