package facts

// script prints everything that Gather wants to know, section by section. A
// section begins with a line "#name"; each line of its content has a space in
// front, so that nothing that a machine says can pass for a heading. It is all
// one command for the shell, which reads none of it as it goes, and whose
// programs get no standard input. Nothing in it may wait for longer than t
// allows, or ask. It needs sh, coreutils, sed, grep, awk, procfs and sysfs;
// whatever else it calls may be missing.
//
// Most of what a look costs a machine is starting programs. So what is short is
// read by the shell itself, and one awk at the end makes sections of it all: s
// begins one by a line that nobody can know, with how many bytes of it are read.
//
// It goes in by standard input: as an argument, sudo would write all of it into
// the machine's log each time.
const script = `# observe facts
{
export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
exec 2>/dev/null
echo '#stoke-facts 1'
t() { timeout -k 1 10 "$@"; }
s() { printf '\n%s %s %s\n' "$HEADING" "$1" "${2:-65536}"; }
one() { v=; [ -r "$1" ] && IFS= read -r v <"$1"; :; }
all() { [ -r "$1" ] && head -c 65536 "$1"; }
end() { if [ ! -L "$1" ]; then v=; elif cd -P "$1"; then v=${PWD##*/}; cd /; else v=$(readlink "$1"); v=${v##*/}; fi; } # of a link
has() { command -v "$1" >/dev/null; }
one /proc/sys/kernel/random/uuid; export HEADING="#$v"
cd /
{
s begin 64; date +%s.%N
` + machineScript + storageScript + networkScript + kernelScript + softwareScript + `
s end 64; date +%s.%N
} | awk 'BEGIN { h = ENVIRON["HEADING"]; if (length(h) < 30) exit }
index($0, h " ") == 1 { print "#" $2; left = $3; blank = 0; next }
blank { print " "; blank = 0 } # one before a heading is ours
$0 == "" { blank = 1; next }
left > 0 { print " " substr($0, 1, left); left -= length($0) + 1 }'
exit 0
} </dev/null
`

const machineScript = `
s hostname 1024; one /proc/sys/kernel/hostname; echo "$v"
s os
for f in /etc/os-release /usr/lib/os-release; do [ -r $f ] && { all $f; break; }; done
s machine
[ "${SUDO_USER-}" ] && echo "user=$SUDO_USER" || echo "user=$(id -un)"
echo "uid=$(id -u)"; kernel=$(uname -rm); echo "arch=${kernel##* }"; kernel=${kernel% *}; echo "kernel=$kernel"; echo "cpus=$(nproc)"
for f in boot_id=/proc/sys/kernel/random/boot_id machine_id=/etc/machine-id product_uuid=/sys/class/dmi/id/product_uuid \
  vendor=/sys/class/dmi/id/sys_vendor product=/sys/class/dmi/id/product_name init=/proc/1/comm; do
  one "${f#*=}"; printf '%s=%s\n' "${f%%=*}" "$v"
done
v=$(grep -m1 '^model name' /proc/cpuinfo); v=${v#*:}; echo "cpu_model=${v# }"
v=; [ -d /run/systemd/system ] && has systemctl && { v=$(systemctl --version); echo "systemd=${v%%)*})"; }
if has systemd-detect-virt; then
  echo "virtualization=$(systemd-detect-virt --vm)"
  # systemd has written down what it found out about itself, and nothing where it is in no container.
  one /run/systemd/container; [ "$v" ] || { [ -d /run/systemd/system ] && v=none; } || v=$(systemd-detect-virt --container)
  echo "container=$v"
fi
[ -e /sys/fs/cgroup/cgroup.controllers ] && echo cgroup=cgroup2fs
one /sys/fs/cgroup/cgroup.controllers; echo "cgroup_controllers=$v"
[ -d /sys/firmware/efi ] && echo uefi=1
for f in /sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c; do
  [ -r "$f" ] && echo "secure_boot=$(od -An -v -t u1 "$f" | tr -s ' \n' ' ')"
done
one /sys/kernel/security/lockdown; echo "lockdown=$v"
[ -e /etc/kubernetes/kubelet.conf ] && echo joined=1
[ -e /etc/kubernetes/manifests/kube-apiserver.yaml ] && echo control_plane=1
[ -e /run/reboot-required ] && echo reboot_required=1
for c in apt-get dpkg-query needrestart; do has $c && echo "has_$c=1"; done
[ -e /run/systemd/resolve/resolv.conf ] && echo resolved=1
s memory
while IFS= read -r v; do case $v in MemTotal:*) echo "$v"; break;; esac; done </proc/meminfo
s swaps; all /proc/swaps
`

const storageScript = `
s disks
for d in /sys/block/*; do
  [ -e "$d/device" ] || continue
  one "$d/size"; size=$v; one "$d/queue/rotational"; rot=$v; one "$d/removable"; rem=$v; one "$d/device/type"; kind=$v
  one "$d/device/model"
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "${d##*/}" "$size" "$rot" "$rem" "$kind" "$v"
done
s filesystems; t df -lB1 --output=fstype,size,avail,target
s space
there() { q=$1; while [ ! -d "$q" ]; do q=${q%/*}; q=${q:-/}; done; }
paths='/ /boot /tmp /var/cache/apt/archives /var/lib/containerd /var/lib/docker /var/lib/etcd /var/lib/kubelet'
set --; for p in $paths; do there $p; set -- "$@" "$q"; done
nl='
'
if sizes=$(t stat -f -c '%S %b %a %d' "$@") && mounts=$(t stat -c %m "$@"); then # a line for each
  for p in $paths; do
    printf '%s\t%s\t%s\n' "$p" "${sizes%%"$nl"*}" "${mounts%%"$nl"*}"
    sizes=${sizes#*"$nl"} mounts=${mounts#*"$nl"}
  done
else
  for p in $paths; do there $p; printf '%s\t%s\t%s\n' "$p" "$(t stat -f -c '%S %b %a %d' "$q")" "$(t stat -c %m "$q")"; done
fi
`

const networkScript = `
s nics
for d in /sys/class/net/*; do
  [ -e "$d/address" ] || continue
  kind=; [ -e "$d/device" ] && kind=physical
  while IFS= read -r l; do case $l in DEVTYPE=*) [ -n "$kind" ] || kind=${l#DEVTYPE=};; esac; done <"$d/uevent"
  [ -d "$d/bonding" ] && kind=bond; [ -d "$d/bridge" ] && kind=bridge
  one "$d/type"; type=$v; one "$d/address"; mac=$v; one "$d/mtu"; mtu=$v; one "$d/operstate"; state=$v; one "$d/speed"; speed=$v
  end "$d/device/driver"; drv=$v; end "$d/master"
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "${d##*/}" "$kind" "$type" "$mac" "$mtu" "$state" "$speed" "$drv" "$v"
done
if has ip; then
  s addresses 262144; t ip -o addr show
  s routes 262144; { t ip -4 -o route show table all; t ip -6 -o route show table all; } | grep -vE '^(local|broadcast|multicast|anycast) '
fi
has ss && { s sockets; t ss -Hlntup; }
s resolv; all /etc/resolv.conf
s environment
for n in http https ftp all no HTTP HTTPS FTP ALL NO; do
  case $n in [a-z]*) n=${n}_proxy;; *) n=${n}_PROXY;; esac
  eval "v=\${$n-}"; [ -n "$v" ] && printf '%s=%s\n' "$n" "$v"
done
all /etc/environment
s apt; has apt-config && t apt-config dump | grep -iE '^(Acquire::(https?|ftp)::Proxy|APT::Periodic::Unattended-Upgrade) '
`

// oldestFirst sorts names of kernels: a release comes after its own candidates.
const oldestFirst = "sed 's/-rc/~rc/' | sort -t - -k 2 -V | sed 's/~rc/-rc/'"

const kernelScript = `
s kernels; for f in /boot/vmlinu[xz]-*; do [ -e "$f" ] && echo "${f##*/}"; done | ` + oldestFirst + `
s links; for l in /vmlinuz /boot/vmlinuz; do [ -L "$l" ] && readlink "$l"; done
s grub 262144
for f in /boot/grub/grub.cfg /boot/grub2/grub.cfg; do
  [ -r "$f" ] && grep -E '\{[[:space:]]*$|^[[:space:]]*(\}|linux(16|efi)?[[:space:]]|set default=)' "$f"
done
s grubenv 4096; for f in /boot/grub/grubenv /boot/grub2/grubenv; do all "$f"; done
s modules; cut -d' ' -f1 /proc/modules
s features
` + featureScript + `
gpu=; ids=
s pci
for d in /sys/bus/pci/devices/*; do
  one "$d/class"; class=$v; one "$d/vendor"; vendor=$v
  case $class/$vendor in 0x03*/*|0x12*/*|0x0680*/0x10de) ;; *) continue;; esac
  one "$d/device"; device=$v; one "$d/numa_node"; numa=$v; one "$d/mem_info_vram_total"; vram=$v
  end "$d/driver"
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "${d##*/}" "$class" "$vendor" "$device" "$v" "$numa" "$vram"
  case $class/$vendor in 0x03*/0x10de|0x03*/0x1002|0x12*/0x1002) ids="$ids ${vendor#0x}:${device#0x}"; [ $vendor = 0x10de ] && gpu=1;; esac
done
s pci_names
for f in /usr/share/misc/pci.ids /usr/share/hwdata/pci.ids; do
  [ -n "$ids" ] && [ -r "$f" ] && { awk -v want="$ids " '/^[0-9a-f]/ {v = $1} /^\t[0-9a-f]/ {d = $1; if (index(want, " " v ":" d " ")) {sub(/^\t[0-9a-f]+ +/, ""); print v ":" d " " $0}}' "$f"; break; }
done
s nvidia_version; one /sys/module/nvidia/version; echo "$v"
s nvidia_gpus; for f in /proc/driver/nvidia/gpus/*/information; do all "$f"; done
s nvidia_smi
# Without the module nvidia-smi would load it. A driver in trouble lets it hang so that nothing ends it: it is left behind then.
if [ -e /proc/driver/nvidia/version ] && has nvidia-smi && f=$(mktemp); then
  nvidia-smi --query-gpu=pci.bus_id,memory.total,uuid,name --format=csv,noheader,nounits >"$f" & p=$!
  n=0; while [ $n -lt 200 ] && kill -0 $p; do sleep 0.1; n=$((n + 1)); done
  kill -9 $p; cat "$f"; rm -f "$f"
fi
s nvswitch_management
# From the fourth generation on an NVSwitch is no PCI device: it is managed through a ConnectX whose product data says SW_MNG.
for d in /sys/bus/pci/devices/*; do
  [ -n "$gpu" ] || break
  one "$d/class"; class=$v; one "$d/vendor"
  case $class/$v in 0x0207*/0x15b3) t head -c 4096 "$d/vpd" | grep -qa SW_MNG && { echo "${d##*/}"; break; };; esac
done
`

// featureScript looks for what a kernel has without a module of its own where it
// is to be seen; all its symbols are read only where that does not settle it.
const featureScript = `
fs=' '; while IFS= read -r v; do fs="$fs${v##*	} "; done </proc/filesystems
unseen=
for m in br_netfilter nf_conntrack nf_tables overlay vxlan wireguard; do
  is=
  [ -d "/sys/module/$m" ] && is=present
  case $m in
  overlay) case $fs in *' overlay '*) is=present;; esac;;
  br_netfilter) [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ] && is=present;;
  nf_conntrack) [ -e /proc/sys/net/netfilter/nf_conntrack_max ] && is=present;;
  esac
  if [ -n "$is" ]; then echo "$m=$is"; else unseen="$unseen $m"; fi
done
builtin=/lib/modules/$kernel/modules.builtin
syms=; [ -z "$unseen" ] || [ -r "$builtin" ] || syms=$(grep -oE ' (nf_tables_newtable|vxlan_xmit|nf_conntrack_in|br_nf_pre_routing|ovl_fill_super|wg_xmit)$' /proc/kallsyms)
for m in $unseen; do
  case $m in
  br_netfilter) f=br_nf_pre_routing;; nf_conntrack) f=nf_conntrack_in;; nf_tables) f=nf_tables_newtable;;
  overlay) f=ovl_fill_super;; vxlan) f=vxlan_xmit;; wireguard) f=wg_xmit;;
  esac
  case "$syms " in *" $f"[!a-z_]*) echo "$m=present"; continue;; esac
  if [ -r "$builtin" ] && grep -q "/$m\.ko" "$builtin"; then echo "$m=present"; continue; fi
  if how=$(t modprobe -n -v -q "$m"); then case $how in install*) echo "$m=blocked";; *) echo "$m=loadable";; esac
  elif [ $m = nf_tables ] && t nft list tables >/dev/null; then echo "$m=present" # modprobe may have another kernel's modules
  else echo "$m=missing"; fi
done
`

const softwareScript = `
s units
if [ -d /run/systemd/system ]; then
  t systemctl show -p Id,LoadState,ActiveState,UnitFileState systemd-timesyncd.service chrony.service chronyd.service ntp.service ntpsec.service ntpd.service openntpd.service
fi
s time # timesyncd notes it down; timedatectl starts a service to find it out
if [ -e /run/systemd/timesync/synchronized ] && t systemctl -q is-active systemd-timesyncd; then echo NTPSynchronized=yes
elif [ -d /run/systemd/system ] && has timedatectl; then t timedatectl show -p NTPSynchronized; fi
s processes; grep -hxF -e kubelet -e containerd -e dockerd -e crio -e k3s -e k3s-server -e k3s-agent -e rke2 -e k0s -e kubelite /proc/[0-9]*/comm
s packages; has dpkg-query && dpkg-query -W -f '${db:Status-Abbrev}\t${Package}\t${Version}\n' containerd containerd.io docker.io docker-ce moby-engine cri-o podman kubelet kubeadm needrestart unattended-upgrades
s runtimes
for c in containerd dockerd crio podman; do
  has $c && { v=$(t $c --version); printf '%s\t%s\n' $c "${v%%"$nl"*}"; }
done
`
