#= true
:
#= sync lsattr udevadm
:
#= hostnamectl
exit 1
#= systemd-run
# What is waited for runs; a timer does not, as the machine's own time does not pass.
case "$*" in *--wait*) ;; *) exit 0 ;; esac
while [ $# -gt 0 ]; do
	case $1 in
	-*) shift ;;
	*) exec env -i PATH="$PATH" "$@" ;;
	esac
done
#= systemctl journalctl
# A unit is a file with its state: ACTIVE ENABLED.
case "$*" in --version) echo "systemd 252 (252.36-1~deb12u1)"; exit 0 ;; esac
verb=; props=; value=; units=; quiet=
while [ $# -gt 0 ]; do
	case $1 in
	-p) props="$props $2"; shift ;;
	--value) value=1 ;;
	--quiet | -q) quiet=1 ;;
	-*) ;;
	*) if [ "$verb" ]; then units="$units $1"; else verb=$1; fi ;;
	esac
	shift
done
say() { [ "$quiet" ] || echo "$1"; }
done=0
case $verb in daemon-reload) echo "$verb" >>"$ROOT/run/did"; exit 0 ;; esac
for u in $units; do
	case $u in *.*) ;; *) u=$u.service ;; esac
	f="$ROOT/run/units/$u"; active=inactive; enabled=; load=not-found
	if [ -f "$ROOT/etc/systemd/system/$u" ]; then load=loaded enabled=disabled; fi
	if [ -f "$f" ]; then read -r active enabled <"$f"; load=loaded; fi
	case $verb in
	start | stop | restart | try-restart | enable | disable) [ $load = loaded ] || { echo "there is no $u" >&2; exit 5; } ;;
	esac
	case $verb in
	is-active) say "$active"; [ "$active" = active ] || done=3 ;;
	is-enabled) say "$enabled"; [ "$enabled" = enabled ] || done=1 ;;
	show)
		for p in $props; do
			v=
			case $p in Id) v=$u ;; LoadState) v=$load ;; ActiveState) v=$active ;; NeedDaemonReload) v=no ;; esac
			if [ "$value" ]; then echo "$v"; else echo "$p=$v"; fi
		done
		echo ;;
	start) [ "$active" = active ] || echo "start $u" >>"$ROOT/run/did"; echo "active $enabled" >"$f" ;;
	restart) [ "$active" != active ] || echo "restart $u" >>"$ROOT/run/did"; echo "active $enabled" >"$f" ;;
	try-restart) [ "$active" != active ] || echo "restart $u" >>"$ROOT/run/did" ;;
	stop) [ "$active" != active ] || echo "stop $u" >>"$ROOT/run/did"; echo "inactive $enabled" >"$f" ;;
	enable) echo "$active enabled" >"$f" ;;
	disable) echo "$active disabled" >"$f" ;;
	esac
done
exit $done
#= swapoff
head -n 1 "$ROOT/proc/swaps" >"$ROOT/proc/swaps.new" && mv "$ROOT/proc/swaps.new" "$ROOT/proc/swaps"
#= swapon
for d; do [ "$d" = -- ] || printf '%s file 1 0 -2\n' "$d" >>"$ROOT/proc/swaps"; done
#= modprobe
dry=
for n; do
	case $n in
	-n) dry=1 ;;
	-*) ;;
	*)
		grep -q "^$n\$" "$ROOT/lib/modules/all" || exit 1
		[ "$dry" ] || echo "$n 0 0" >>"$ROOT/proc/modules"
		;;
	esac
done
#= containerd
case "$*" in --version) echo "containerd github.com/containerd/containerd 1.7.28 b98a3aace656320842a23f4a392a33f46af97866" ;; esac
#= ctr
f="$ROOT/run/images"; touch "$f"
[ "$1" != version ] || exit 0
shift 2 # -n k8s.io
case "$1 $2" in
"images ls")
	[ "$3" != -q ] || { cut -d ' ' -f 1 "$f"; exit 0; }
	echo "REF TYPE DIGEST SIZE PLATFORMS LABELS"
	case "$3" in name==*) awk -v r="${3#name==}" '$1 == r' "$f" ;; *) cat "$f" ;; esac
	;;
"images import") cat >/dev/null; echo "docker.io/library/a:1 x sha256:cd 1 KiB linux/amd64 -" >"$f" ;;
"images label")
	r=$3; shift 3
	l=$(IFS=,; echo "$*")
	awk -v r="$r" -v l="$l" '$1 == r { $NF = l } { print }' "$f" >"$f.new" && mv "$f.new" "$f"
	;;
"images rm") awk -v r="$3" '$1 != r' "$f" >"$f.new" && mv "$f.new" "$f" ;;
esac
