package system

import (
	"context"
	"fmt"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// look prints what is asked for by its arguments, one line for each thing, its
// fields separated by tabs and everything that others wrote in base64.
const look = `# observe the system
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
b64() { head -c 1048576 | base64 -w0; }
conf() { # every file NAME.conf that systemd would read from folder $1, and $2 beside them
	printf '%s\t' "$1"
	for f in /etc/$1/*.conf /run/$1/*.conf /usr/local/lib/$1/*.conf /usr/lib/$1/*.conf /lib/$1/*.conf $2; do
		if [ -f "$f" ]; then printf '%s\0' "$f"; grep -v '^[[:space:]]*[#;]' <"$f" | tr -d '\000'; printf '\0'
		elif [ -L "$f" ] || [ -e "$f" ]; then printf '%s\0\0' "$f"; fi
	done | b64
	echo
}
units() { # what systemctl show calls UnitFileState may be from before the last enable
	systemctl show -p Id -p LoadState -p ActiveState -- "$@" 2>/dev/null
	for u in "$@"; do printf '\nId=%s\nUnitFileState=%s\n' "$u" "$(systemctl is-enabled -- "$u" 2>/dev/null)"; done
}
while [ $# -gt 0 ]; do
	case $1 in
	hostname)
		printf 'hostname\t%s\t%s\t' "$(cat /proc/sys/kernel/hostname)" "$(grep -v '^#' /etc/hostname 2>/dev/null | head -n 1 | tr -d '\t\000')"
		[ -d /etc/cloud/cloud.cfg.d ] && { [ -e "$2" ] && printf keeps || printf sets; }
		printf '\t'; b64 </etc/hosts; echo
		shift ;;
	swap)
		printf 'swaps\t'; b64 </proc/swaps; echo
		printf 'fstab\t'; [ -f /etc/fstab ] && b64 </etc/fstab; echo
		printf 'swapunits\t'; systemctl list-unit-files --no-legend --no-pager "*.swap" 2>/dev/null | b64; echo
		printf 'swapservices\t'; units $2 | b64; echo
		shift ;;
	module)
		n=$(printf %s "$2" | tr - _); s=
		if grep -q "^$n " /proc/modules 2>/dev/null; then s=loaded
		elif tr - _ 2>/dev/null <"/lib/modules/$(uname -r)/modules.builtin" | grep -q "/$n\.ko"; then s=builtin
		elif [ -d "/sys/module/$n" ]; then s=feature
		elif grep -Eq "(^|[[:space:]])$n\$" /proc/filesystems; then s=feature
		else
			case $n in
			br_netfilter) f=/proc/sys/net/bridge ;;
			nf_conntrack) f=/proc/sys/net/netfilter/nf_conntrack_max ;;
			nf_tables) f=/proc/net/netfilter ;;
			ip_tables) f=/proc/net/ip_tables_names ;;
			ip6_tables) f=/proc/net/ip6_tables_names ;;
			ip_vs) f=/proc/net/ip_vs ;;
			tun) f=/sys/class/misc/tun ;;
			kvm) f=/sys/class/misc/kvm ;;
			*) f= ;;
			esac
			if [ "$f" ] && [ -e "$f" ]; then s=feature
			elif modprobe -n -q -- "$2" 2>/dev/null; then s=absent
			else s=unknown; fi
		fi
		printf 'module\t%s\t%s\n' "$2" "$s"; shift ;;
	modules) conf modules-load.d /etc/modules ;;
	sysctl)
		v= s=missing
		if [ -e "$3" ]; then
			s=unreadable
			if v=$(cat -- "$3" 2>/dev/null); then s=value; fi
			[ $s = value ] && [ ! -w "$3" ] && s=readonly
		fi
		printf 'sysctl\t%s\t%s\t%s\n' "$2" "$s" "$(printf %s "$v" | b64)"; shift 2 ;;
	forwarding)
		for f in "$2"/*/forwarding "$2"/all/accept_redirects; do
			[ ! -r "$f" ] || printf 'beside\t%s\t%s\n' "$f" "$(cat -- "$f")"
		done
		shift ;;
	docker) printf 'docker\t%s\n' "$(systemctl is-enabled docker.service 2>/dev/null)" ;;
	sysctls)
		u=; grep -q '^ENABLED=yes' /etc/ufw/ufw.conf 2>/dev/null && u=$(sed -n 's/^IPT_SYSCTL=//p' /etc/default/ufw 2>/dev/null)
		conf sysctl.d "$u" ;;
	time)
		printf 'timeservices\t'; units $2 | b64; echo
		for f in "$3" "$4"; do
			printf 'timefile\t%s\t' "$f"; [ -f "$f" ] && b64 <"$f"; echo
		done
		shift 3 ;;
	timezone)
		printf 'timezone\t%s\n' "$(readlink /etc/localtime 2>/dev/null)"
		[ -f "/usr/share/zoneinfo/$2" ] || printf 'unknown\ttime zone\t%s\n' "$2"
		shift ;;
	passwd) getent passwd "$2" >/dev/null || printf 'unknown\tuser\t%s\n' "$2"; shift ;;
	group) getent group "$2" >/dev/null || printf 'unknown\tgroup\t%s\n' "$2"; shift ;;
	file)
		d=${2%/*} up=
		while [ "$d" ] && [ ! -e "$d" ] && [ ! -L "$d" ]; do up=$d; d=${d%/*}; done
		s=$(stat -c '%F	%a	%u	%U	%g	%G	%s' -- "$2" 2>/dev/null) || s=absent
		[ "$s" = absent ] && [ "$d" ] && [ ! -d "$d" ] && s=blocked
		h= c=
		case $s in
		regular*)
			h=$({ printf %s "$3"; cat -- "$2"; } | sha256sum); h=${h%% *}
			if [ "$5" = open ] && [ "$h" != "$4" ] && [ "$(stat -c %s -- "$2")" -le 65536 ]; then c=$(b64 <"$2"); fi ;;
		esac
		printf 'file\t%s\t%s\t%s\t%s\t%s\n' "$2" "$up" "$h" "$c" "$s"
		[ "$h" = "$4" ] || [ "$s" = blocked ] || for f in "$2" "${d:-/}"; do
			a=$(lsattr -d "$f" 2>/dev/null)
			case ${a%% *} in *i*) printf 'fixed\t%s\t%s\n' "$2" "$f"; break ;; esac
		done
		shift 4 ;;
	*) echo "unknown fact $1" >&2; exit 2 ;;
	esac
	shift
done
echo end`

// Observe looks at everything that want declares. Of a file it needs no
// content: the digest and the salt will do.
func Observe(ctx context.Context, m host.Machine, want Spec) (Facts, error) {
	args := questions(want)
	if len(args) == 0 {
		return Facts{}, nil
	}
	p := newParser()
	if err := host.Look(ctx, m, "the operating system", look, p.lines(), args...); err != nil {
		return Facts{}, err
	}
	p.settle()
	if err := p.f.answers(want); err != nil {
		return Facts{}, fmt.Errorf("look at the operating system of %s: %w", m.Name(), err)
	}
	return *p.f, nil
}

func questions(want Spec) []string {
	var args []string
	if want.Hostname != "" {
		args = append(args, "hostname", cloudFile)
	}
	if want.SwapOff {
		args = append(args, "swap", strings.Join(swapServices, " "))
	}
	for _, name := range want.Modules {
		args = append(args, "module", name)
	}
	if len(want.Modules) > 0 {
		args = append(args, "modules")
	}
	for _, k := range keys(want.Sysctl) {
		p, err := sysctlPath(k)
		if err == nil { // Validate says what is wrong
			args = append(args, "sysctl", k, p)
			if dir := forwarding[p]; dir != "" {
				args = append(args, "forwarding", dir, "docker")
			}
		}
	}
	if len(want.Sysctl) > 0 {
		args = append(args, "sysctls")
	}
	if want.Time != nil {
		args = append(args, "time", strings.Join(timeUnits(), " "), timesyncdFile, chronyFile)
	}
	if want.Timezone != "" {
		args = append(args, "timezone", want.Timezone)
	}
	for _, q := range want.owners() {
		args = append(args, q[0], q[1])
	}
	for _, name := range keys(want.Files) {
		f := want.Files[name]
		shown := "open"
		if f.Sensitive {
			shown = "sealed"
		}
		args = append(args, "file", name, f.Salt, f.Digest, shown)
	}
	return args
}
