package nvidia

import (
	"context"

	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// Files that are this package's own.
const (
	NouveauFile  = "/etc/modprobe.d/blacklist-nouveau.conf"
	UpgradesFile = "/etc/apt/apt.conf.d/52stoke-nvidia"
	RuntimeFile  = "/etc/containerd/conf.d/99-nvidia.toml"
	stoppedFile  = "/run/stoke-gpu-stopped"    // units that are stopped for a change; a reboot clears it
	unreadFile   = "/run/stoke-gpu-containerd" // containerd has not read RuntimeFile as it is; a reboot clears it
	modulesFile  = "/run/stoke-gpu-modules"    // modules that were taken out with the driver's, to come back with it
	oldCDIFile   = "/etc/cdi/nvidia.yaml"      // written by us, for toolkits before 1.18
	newCDIFile   = "/var/run/cdi/nvidia.yaml"  // written by nvidia-cdi-refresh.service
)

// look prints what there is to know, a line per thing that begins with what it
// is. Nothing in it changes the machine: nvidia-smi would load the module, so
// it is only asked where that is loaded. "$@" are the files to show.
const look = `# observe the driver
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
T=$(printf '\t')
b64() { base64 -w0; }
for k in $(ls -1 /lib/modules 2>/dev/null; ls -1 /boot 2>/dev/null | sed -n 's/^vmlinuz-//p'; uname -r); do echo "$k"; done |
sort -u -V | tail -n 40 | while read -r k; do
	b=n; [ -e "/boot/vmlinuz-$k" ] && b=y
	h=n; [ -e "/lib/modules/$k/build" ] && h=y
	m=n; [ -d "/lib/modules/$k" ] && m=y
	n=nvidia; v=$(modinfo -k "$k" -F version nvidia 2>/dev/null | head -n 1)
	[ -n "$v" ] || { n=nvidia-current; v=$(modinfo -k "$k" -F version nvidia-current 2>/dev/null | head -n 1); }
	l=; [ -z "$v" ] || l=$(modinfo -k "$k" -F license "$n" | head -n 1)
	printf 'kernel\t%s\t%s\t%s\t%s\t%s\t%s\n' "$k" $b $m $h "$v" "$l"
done
[ ! -r /proc/driver/nvidia/version ] || echo "loaded$T$(head -n 1 /proc/driver/nvidia/version)"
[ ! -r /sys/module/nvidia/version ] || echo "module$T$(cat /sys/module/nvidia/version)"
for h in /sys/module/nvidia*/holders/*; do [ ! -e "$h" ] || echo "holder$T${h##*/}"; done
[ ! -r /sys/module/nvidia_drm/refcnt ] || echo "drm$T$(cat /sys/module/nvidia_drm/refcnt)"
[ ! -d /sys/module/nouveau ] || echo "nouveau${T}loaded $(cat /sys/module/nouveau/refcnt 2>/dev/null)"
! grep -qsE '^[[:space:]]*blacklist[[:space:]]+nouveau' /etc/modprobe.d/*.conf /lib/modprobe.d/*.conf /run/modprobe.d/*.conf || echo "nouveau${T}blacklisted"
if [ -r /proc/driver/nvidia/version ] && command -v nvidia-smi >/dev/null; then
	o=$(timeout 120 nvidia-smi --query-gpu=index,pci.bus_id,name,uuid,memory.total,driver_version,mig.mode.current --format=csv,noheader,nounits 2>&1); echo "smirc$T$?"
	printf '%s\n' "$o" | head -n 64 | cut -c 1-400 | tr '\t' ' ' | sed 's/^/smi\t/'
fi
` + healthLook + `dpkg-query -W -f 'pkg\t${Package}\t${Version}\t${db:Status-Abbrev}\n' '*nvidia*' 'cuda-drivers*' 'libcuda1' 'nvlsm' 'linux-image-*' 'linux-headers-*' dkms 2>/dev/null
apt-mark showhold 2>/dev/null | sed 's/^/hold\t/'
for f in /etc/apt/preferences /etc/apt/preferences.d/*; do
	[ -f "$f" ] && ! grep -qs 'Written by stoke' "$f" || continue
	o=$(dpkg -S "$f" 2>/dev/null | head -n 1 | cut -d : -f 1)
	grep -iE '^Package:.*(nvidia|cuda)' "$f" | head -n 5 | cut -c 1-200 | while read -r l; do printf 'pin\t%s\t%s\t%s\n' "$f" "$o" "$l"; done
done
for f in /usr/bin/nvidia-uninstall /usr/bin/nvidia-installer; do
	if [ -e "$f" ] && ! dpkg -S "$f" >/dev/null 2>&1; then echo "runfile$T$f"; fi
done
for f in /run/nvidia/driver/usr/bin/nvidia-smi /run/nvidia/validations/.driver-ctr-ready; do [ ! -e $f ] || { echo "rival${T}operator$T$f"; break; }; done
for f in /usr/bin/nvidia-vgpu-mgr /usr/bin/nvidia-vgpud; do [ ! -e $f ] || { echo "rival${T}vgpu-host$T$f"; break; }; done
for f in /usr/bin/nvidia-gridd /etc/nvidia/gridd.conf; do [ ! -e $f ] || { echo "rival${T}vgpu-guest$T$f"; break; }; done
for f in /etc/nv_tegra_release /sys/module/nvgpu; do [ ! -e $f ] || { echo "rival${T}tegra$T$f"; break; }; done
for f in /var/lib/dkms/mok.pub /var/lib/shim-signed/mok/MOK.der; do
	[ ! -r $f ] || ! command -v mokutil >/dev/null || mokutil --test-key $f 2>/dev/null | sed -n 's/.*already enrolled.*/mok\tenrolled/p'
done
for d in /usr /boot /var; do echo "free$T$d$T$(df -Pk $d 2>/dev/null | awk 'NR==2{print $4}')"; done
find /proc/[0-9]*/fd -maxdepth 1 -lname '/dev/nvidia*' -printf '%p %l\n' 2>/dev/null | sort -u -t / -k 3,3 | head -n 200 | while read -r p l; do
	p=${p#/proc/}; p=${p%%/*}
	printf 'user\t%s\t%s\t%s\t%s\n' "$p" "$(tr -d '\n\t' < /proc/"$p"/comm 2>/dev/null)" "$l" "$(sed -n 's/.*kubepods.*[-\/:]\([0-9a-f]\{64\}\)\(\.scope\)\{0,1\}$/\1/p' /proc/"$p"/cgroup 2>/dev/null | head -n 1)"
done
echo "units$T$({ systemctl show -p Id,LoadState,ActiveState nvidia-persistenced.service nvidia-fabricmanager.service nvidia-cdi-refresh.service nvidia-cdi-refresh.path nvidia-dcgm.service kubelet.service containerd.service 2>/dev/null
	for u in nvidia-persistenced.service nvidia-fabricmanager.service nvidia-cdi-refresh.service nvidia-cdi-refresh.path; do # what systemctl show says is from the last reload
		printf '\nId=%s\nUnitFileState=%s\n' "$u" "$(systemctl is-enabled $u 2>/dev/null)"
	done; } | b64)"
for f in /etc/cdi/nvidia.yaml /var/run/cdi/nvidia.yaml; do
	[ ! -r $f ] || echo "cdi$T$f$T$(grep -oE 'libcuda\.so\.[0-9]+\.[0-9.]+' $f | head -n 1)"
done
[ ! -r /etc/containerd/config.toml ] || sed -n 's/^[[:space:]]*version[[:space:]]*=[[:space:]]*\([0-9]*\).*/ctdversion\t\1/p; s/.*\(\/etc\/containerd\/conf\.d\/\).*/ctdimports\t\1/p' /etc/containerd/config.toml | head -n 10
for i in /boot/initrd.img-*; do [ ! -e "$i" ] || [ ! "$1" -nt "$i" ] || echo "oldinitrd$T$i"; done
[ ! -r /run/stoke-gpu-stopped ] || head -n 10 /run/stoke-gpu-stopped | sed 's/^/stopped\t/'
[ ! -e /run/stoke-gpu-containerd ] || echo "unread${T}due"
for f in "$@"; do
	[ ! -f "$f" ] || echo "file$T$f$T$(head -c 65536 -- "$f" | b64)"
done
echo end`

// Observe looks at the machine: its facts, what there is of a driver, and what
// apt could install of what want means here.
func Observe(ctx context.Context, m host.Machine, want Spec) (State, error) {
	f, err := facts.Gather(ctx, m)
	if err != nil {
		return State{}, err
	}
	r := newReader()
	if err := host.Look(ctx, m, "the GPU driver", look, r.lines(), NouveauFile, UpgradesFile, RuntimeFile); err != nil {
		return State{}, err
	}
	have := r.finish()
	have.OS, have.Release, have.Codename, have.Arch = f.OS.ID, f.OS.Version, f.OS.Codename, f.Architecture
	have.Kernel, have.Devices, have.NVSwitch, have.SecureBoot = f.Kernel, devices(f.GPUs), f.NVSwitch, f.Firmware.SecureBoot
	have.offers, err = packages.Offers(ctx, m, have.asks(want))
	return have, err
}
