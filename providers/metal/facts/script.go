package facts

// script prints everything that Gather wants to know, section by section. A
// section begins with a line "#name"; each line of its content has a space in
// front, so that nothing that a machine says can pass for a heading. It is all
// one command for the shell, which reads none of it as it goes, and whose
// programs get no standard input. Nothing in it may wait for longer than t
// allows, or ask. It needs sh, coreutils, sed, grep, awk, procfs and sysfs;
// whatever else it calls may be missing.
//
// It goes in by standard input: as an argument, sudo would write all of it into
// the machine's log each time.
const script = `{
export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
exec 2>/dev/null
echo '#stoke-facts 1'
t() { timeout -k 1 10 "$@"; }
s() { printf '#%s\n' "$1"; head -c "${2:-65536}" | sed 's/^/ /'; echo; }
one() { v=; [ -r "$1" ] && IFS= read -r v <"$1"; :; }
has() { command -v "$1" >/dev/null; }
date +%s.%N | s begin 64
` + machineScript + storageScript + networkScript + kernelScript + softwareScript + `
date +%s.%N | s end 64
exit 0
} </dev/null
`

const machineScript = `
uname -n | s hostname 1024
for f in /etc/os-release /usr/lib/os-release; do [ -r $f ] && { cat $f; break; }; done | s os
{
echo "uid=$(id -u)"; echo "user=${SUDO_USER:-$(id -un)}"
echo "kernel=$(uname -r)"; echo "arch=$(uname -m)"; echo "cpus=$(nproc)"
for f in boot_id=/proc/sys/kernel/random/boot_id machine_id=/etc/machine-id product_uuid=/sys/class/dmi/id/product_uuid \
  vendor=/sys/class/dmi/id/sys_vendor product=/sys/class/dmi/id/product_name init=/proc/1/comm; do
  one "${f#*=}"; printf '%s=%s\n' "${f%%=*}" "$v"
done
echo "cpu_model=$(grep -m1 '^model name' /proc/cpuinfo | sed 's/^[^:]*: *//')"
[ -d /run/systemd/system ] && { has systemctl && echo "systemd=$(t systemctl --version | head -n 1)"; }
if has systemd-detect-virt; then
  echo "virtualization=$(t systemd-detect-virt --vm)"; echo "container=$(t systemd-detect-virt --container)"
fi
echo "cgroup=$(stat -fc %T /sys/fs/cgroup)"
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
} | s machine
grep -E '^(MemTotal|SwapTotal):' /proc/meminfo | s memory
cat /proc/swaps | s swaps
`

const storageScript = `
for d in /sys/block/*; do
  [ -e "$d/device" ] || continue
  one "$d/size"; size=$v; one "$d/queue/rotational"; rot=$v; one "$d/removable"; rem=$v; one "$d/device/type"; kind=$v
  one "$d/device/model"
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "${d##*/}" "$size" "$rot" "$rem" "$kind" "$v"
done | s disks
t df -lB1 --output=fstype,size,avail,target | s filesystems
for p in / /boot /tmp /var/cache/apt/archives /var/lib/containerd /var/lib/docker /var/lib/etcd /var/lib/kubelet; do
  q=$p; while [ ! -d "$q" ]; do q=${q%/*}; q=${q:-/}; done
  printf '%s\t%s\t%s\n' "$p" "$(t stat -f -c '%S %b %a %d' "$q")" "$(stat -c %m "$q")"
done | s space
`

const networkScript = `
for d in /sys/class/net/*; do
  [ -e "$d/address" ] || continue
  kind=; [ -e "$d/device" ] && kind=physical
  while IFS= read -r l; do case $l in DEVTYPE=*) [ -n "$kind" ] || kind=${l#DEVTYPE=};; esac; done <"$d/uevent"
  [ -d "$d/bonding" ] && kind=bond; [ -d "$d/bridge" ] && kind=bridge
  one "$d/type"; type=$v; one "$d/address"; mac=$v; one "$d/mtu"; mtu=$v; one "$d/operstate"; state=$v; one "$d/speed"; speed=$v
  drv=$(readlink "$d/device/driver"); up=$(readlink "$d/master")
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "${d##*/}" "$kind" "$type" "$mac" "$mtu" "$state" "$speed" "${drv##*/}" "${up##*/}"
done | s nics
if has ip; then
  t ip -o addr show | s addresses 262144
  { t ip -4 -o route show table all; t ip -6 -o route show table all; } | grep -vE '^(local|broadcast|multicast|anycast) ' | s routes 262144
else
  cat /proc/net/fib_trie | s fib_trie; cat /proc/net/if_inet6 | s if_inet6; cat /proc/net/route | s proc_routes
fi
if has ss; then t ss -Hlntup | s sockets
else for f in tcp tcp6 udp udp6; do sed "s/^/$f /" /proc/net/$f; done | grep -E '^(tcp6? +[0-9]+: [^ ]+ [^ ]+ 0A|udp6? +[0-9]+: [^ ]+ [^ ]+ 07)' | s proc_sockets; fi
cat /etc/resolv.conf | s resolv
{ env | grep -iE '^(https?|ftp|all|no)_proxy='; cat /etc/environment; } | s environment
{ has apt-config && t apt-config dump; } | grep -iE '^(Acquire::(https?|ftp)::Proxy|APT::Periodic::Unattended-Upgrade) ' | s apt
`

const kernelScript = `
ls -1 /boot | grep -E '^vmlinu[xz]-' | s kernels
{ for l in /vmlinuz /boot/vmlinuz; do [ -L "$l" ] && readlink "$l"; done; } | s links
for f in /boot/grub/grub.cfg /boot/grub2/grub.cfg; do
  [ -r "$f" ] && grep -E '\{[[:space:]]*$|^[[:space:]]*(\}|linux(16|efi)?[[:space:]]|set default=)' "$f"
done | s grub 262144
for f in /boot/grub/grubenv /boot/grub2/grubenv; do [ -r "$f" ] && cat "$f"; done | s grubenv 4096
cut -d' ' -f1 /proc/modules | s modules
syms=$(grep -oE ' (nf_tables_newtable|vxlan_xmit|nf_conntrack_in|br_nf_pre_routing|ovl_fill_super|wg_xmit)$' /proc/kallsyms | sort -u | tr -d '\n')
for f in br_netfilter:br_nf_pre_routing nf_conntrack:nf_conntrack_in nf_tables:nf_tables_newtable overlay:ovl_fill_super vxlan:vxlan_xmit wireguard:wg_xmit; do
  m=${f%%:*}; is=
  case " $syms " in *" ${f#*:} "*) is=present;; esac
  [ -d "/sys/module/$m" ] && is=present
  case $m in
  overlay) grep -qw overlay /proc/filesystems && is=present;;
  br_netfilter) [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ] && is=present;;
  nf_conntrack) [ -e /proc/sys/net/netfilter/nf_conntrack_max ] && is=present;;
  esac
  if [ -z "$is" ]; then
    if how=$(t modprobe -n -v -q "$m"); then case $how in install*) is=blocked;; *) is=loadable;; esac; else is=missing; fi
  fi
  echo "$m=$is"
done | s features
gpu=; ids=
for d in /sys/bus/pci/devices/*; do
  one "$d/class"; class=$v; one "$d/vendor"; vendor=$v
  case $class/$vendor in 0x03*/*|0x12*/*|0x0680*/0x10de) ;; *) continue;; esac
  one "$d/device"; device=$v; one "$d/numa_node"; numa=$v; one "$d/mem_info_vram_total"; vram=$v
  drv=$(readlink "$d/driver")
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "${d##*/}" "$class" "$vendor" "$device" "${drv##*/}" "$numa" "$vram"
done | s pci
for d in /sys/bus/pci/devices/*; do
  one "$d/class"; class=$v; one "$d/vendor"; vendor=$v
  case $class/$vendor in 0x03*/0x10de|0x03*/0x1002|0x12*/0x1002) one "$d/device"; ids="$ids ${vendor#0x}:${v#0x}"; [ $vendor = 0x10de ] && gpu=1;; esac
done
for f in /usr/share/misc/pci.ids /usr/share/hwdata/pci.ids; do
  [ -n "$ids" ] && [ -r "$f" ] && { awk -v want="$ids " '/^[0-9a-f]/ {v = $1} /^\t[0-9a-f]/ {d = $1; if (index(want, " " v ":" d " ")) {sub(/^\t[0-9a-f]+ +/, ""); print v ":" d " " $0}}' "$f"; break; }
done | s pci_names
one /sys/module/nvidia/version; echo "$v" | s nvidia_version
for f in /proc/driver/nvidia/gpus/*/information; do [ -r "$f" ] && cat "$f"; done | s nvidia_gpus
# Without the module nvidia-smi would load it. A driver in trouble lets it hang so that nothing ends it: it is left behind then.
if [ -e /proc/driver/nvidia/version ] && has nvidia-smi && f=$(mktemp); then
  nvidia-smi --query-gpu=pci.bus_id,memory.total,uuid,name --format=csv,noheader,nounits >"$f" & p=$!
  n=0; while [ $n -lt 200 ] && kill -0 $p; do sleep 0.1; n=$((n + 1)); done
  kill -9 $p; cat "$f"; rm -f "$f"
fi | s nvidia_smi
# From the fourth generation on an NVSwitch is no PCI device: it is managed through a ConnectX whose product data says SW_MNG.
for d in /sys/bus/pci/devices/*; do
  [ -n "$gpu" ] || break
  one "$d/class"; class=$v; one "$d/vendor"
  case $class/$v in 0x0207*/0x15b3) t head -c 4096 "$d/vpd" | grep -qa SW_MNG && { echo "${d##*/}"; break; };; esac
done | s nvswitch_management
`

const softwareScript = `
if [ -d /run/systemd/system ]; then
  t systemctl show -p Id,LoadState,ActiveState,UnitFileState systemd-timesyncd.service chrony.service chronyd.service ntp.service ntpsec.service ntpd.service openntpd.service
fi | s units
{ [ -d /run/systemd/system ] && has timedatectl && t timedatectl show -p NTPSynchronized; } | s time
grep -hxF -e kubelet -e containerd -e dockerd -e crio -e k3s -e k3s-server -e k3s-agent -e rke2 -e k0s -e kubelite /proc/[0-9]*/comm | sort -u | s processes
{ has dpkg-query && dpkg-query -W -f '${db:Status-Abbrev}\t${Package}\t${Version}\n' containerd containerd.io docker.io docker-ce moby-engine cri-o podman kubelet kubeadm needrestart unattended-upgrades; } | s packages
for c in containerd dockerd crio podman; do
  has $c && { printf '%s\t' $c; t $c --version | head -n 1; }
done | s runtimes
`
