package facts

// Facts are what a machine is. Sizes are bytes, lists are sorted unless said
// otherwise, and what the machine does not tell is "", 0 or empty. What a fact
// is, its tag says to users, too.
type Facts struct {
	Hostname    string `json:"hostname" tfsdk:"hostname" is:"Host name."`
	MachineID   string `json:"machine_id" tfsdk:"machine_id" is:"/etc/machine-id."`
	BootID      string `json:"boot_id" tfsdk:"boot_id" is:"Another one after each boot."`
	ProductUUID string `json:"product_uuid" tfsdk:"product_uuid" is:"The firmware's UUID of the machine; root alone can read it."`

	OS           OS     `json:"os" tfsdk:"os" is:"Operating system: id, version, codename, name, and whether stoke works on it (supported)."`
	Kernel       Kernel `json:"kernel" tfsdk:"kernel" is:"Kernel that runs, the one that boots next, how that was found (grub, link, newest, running), and those installed, oldest first."`
	Architecture string `json:"architecture" tfsdk:"architecture" is:"As Debian calls it: amd64, arm64."`
	Init         string `json:"init" tfsdk:"init" is:"Name of process 1."`
	Systemd      int    `json:"systemd" tfsdk:"systemd" is:"Version of systemd; 0 where it does not run."`
	Sudo         Sudo   `json:"sudo" tfsdk:"sudo" is:"Whether the user becomes root, and why not."`

	CPUs           int      `json:"cpus" tfsdk:"cpus" is:"Processors that may be used."`
	CPUModel       string   `json:"cpu_model" tfsdk:"cpu_model" is:"Processor's name."`
	Memory         int64    `json:"memory" tfsdk:"memory" is:"Memory without what the kernel took at boot."`
	Swap           []Swap   `json:"swap" tfsdk:"swap" is:"What is swapped to."`
	Vendor         string   `json:"vendor" tfsdk:"vendor" is:"Who made the machine."`
	Product        string   `json:"product" tfsdk:"product" is:"What the maker calls it."`
	Virtualization string   `json:"virtualization" tfsdk:"virtualization" is:"systemd's name of the virtual machine, such as kvm; none where it is none."`
	Container      string   `json:"container" tfsdk:"container" is:"systemd's name of the container; none where it is none."`
	Firmware       Firmware `json:"firmware" tfsdk:"firmware" is:"Whether it boots by UEFI, whether Secure Boot is on, and the kernel's lockdown."`

	Disks       []Disk       `json:"disks" tfsdk:"disks" is:"Block devices that are no partitions and no layers over others."`
	Filesystems []Filesystem `json:"filesystems" tfsdk:"filesystems" is:"Local filesystems that are mounted, with what is free for users."`
	Space       []Space      `json:"space" tfsdk:"space" is:"What is free where packages, containers and Kubernetes need it."`

	CgroupVersion     int      `json:"cgroup_version" tfsdk:"cgroup_version" is:"2, or 1 also where both are mounted."`
	CgroupControllers []string `json:"cgroup_controllers" tfsdk:"cgroup_controllers" is:"Controllers of version 2."`

	NICs      []NIC             `json:"nics" tfsdk:"nics" is:"Network interfaces without the loopback and those that container networks make. Speed is in Mbit/s."`
	Routes    []Route           `json:"routes" tfsdk:"routes" is:"Routes of all tables without those that container networks make."`
	DNS       DNS               `json:"dns" tfsdk:"dns" is:"Name servers, search domains, and the resolv.conf that holds for pods too."`
	Proxy     map[string]string `json:"proxy" tfsdk:"proxy" is:"The proxy of all users (/etc/environment) and of apt, without user names and passwords."`
	Listeners []Listener        `json:"listeners" tfsdk:"listeners" is:"Sockets that wait for others."`

	GPUs         []GPU  `json:"gpus" tfsdk:"gpus" is:"GPUs by NVIDIA, AMD and Intel: PCI address and ids, name, bound driver, and memory where the driver tells."`
	NVSwitch     bool   `json:"nvswitch" tfsdk:"nvswitch" is:"Whether NVIDIA's GPUs hang on a switch, which needs the fabric manager."`
	NVIDIADriver string `json:"nvidia_driver" tfsdk:"nvidia_driver" is:"Version of the loaded NVIDIA module."`

	Clock Clock `json:"clock" tfsdk:"clock" is:"Seconds that the clock is ahead of the one here (offset), how wrong that can be (resolution), whether it is synchronised and by what."`

	Modules  []string           `json:"modules" tfsdk:"modules" is:"Loaded kernel modules."`
	Features map[string]Feature `json:"features" tfsdk:"features" is:"What the running kernel can do: present, loadable, blocked or missing."`

	Runtimes []Runtime `json:"runtimes" tfsdk:"runtimes" is:"Container runtimes that are installed."`
	Node     Node      `json:"node" tfsdk:"node" is:"What of Kubernetes is there."`
	Packages Packages  `json:"packages" tfsdk:"packages" is:"What changes packages: apt, needrestart, unattended upgrades; and whether a reboot is due."`

	Unread []string `json:"unread" tfsdk:"unread" is:"What the machine said that was not understood."`
}

// OS is /etc/os-release.
type OS struct {
	ID        string `json:"id" tfsdk:"id"`             // such as ubuntu
	Version   string `json:"version" tfsdk:"version"`   // such as 24.04
	Codename  string `json:"codename" tfsdk:"codename"` // such as noble
	Name      string `json:"name" tfsdk:"name"`         // for people
	Supported bool   `json:"supported" tfsdk:"supported"`
}

// Kernel says which kernel runs and which one boots next.
type Kernel struct {
	Running string `json:"running" tfsdk:"running"`
	Next    string `json:"next" tfsdk:"next"`
	// DecidedBy is the source of Next: "grub" (its configuration and environment),
	// "link" (/vmlinuz or /boot/vmlinuz), "newest" (in /boot) or "running" (/boot
	// has no kernel, as in a container).
	DecidedBy string   `json:"decided_by" tfsdk:"decided_by"`
	Installed []string `json:"installed" tfsdk:"installed"` // oldest first
}

// Sudo says whether root could be had.
type Sudo struct {
	Works bool   `json:"works" tfsdk:"works"`
	User  string `json:"user" tfsdk:"user"`   // who logged in, as far as it is known
	Error string `json:"error" tfsdk:"error"` // why not
}

// Firmware is how the machine boots.
type Firmware struct {
	UEFI       bool   `json:"uefi" tfsdk:"uefi"`
	SecureBoot bool   `json:"secure_boot" tfsdk:"secure_boot"`
	Lockdown   string `json:"lockdown" tfsdk:"lockdown"` // of the kernel: none, integrity, confidentiality
}

// Swap is a device or file that is swapped to.
type Swap struct {
	Name string `json:"name" tfsdk:"name"`
	Type string `json:"type" tfsdk:"type"` // partition or file
	Size int64  `json:"size" tfsdk:"size"`
}

// Disk is a block device that is no partition and no layer over others.
type Disk struct {
	Name       string `json:"name" tfsdk:"name"` // without /dev
	Size       int64  `json:"size" tfsdk:"size"`
	Model      string `json:"model" tfsdk:"model"`
	Rotational bool   `json:"rotational" tfsdk:"rotational"`
	Removable  bool   `json:"removable" tfsdk:"removable"`
}

// Filesystem is one that is mounted and local.
type Filesystem struct {
	Mount string `json:"mount" tfsdk:"mount"`
	Type  string `json:"type" tfsdk:"type"`
	Size  int64  `json:"size" tfsdk:"size"`
	Free  int64  `json:"free" tfsdk:"free"` // for whoever is not root
}

// Space is what is free where a folder is, or would be.
type Space struct {
	Path       string `json:"path" tfsdk:"path"`
	Mount      string `json:"mount" tfsdk:"mount"`
	Size       int64  `json:"size" tfsdk:"size"`
	Free       int64  `json:"free" tfsdk:"free"`
	FreeInodes int64  `json:"free_inodes" tfsdk:"free_inodes"` // 0 where the filesystem does not count them
}

// NIC is a network interface: those of the machine itself, without the loopback
// and without what container networks make.
type NIC struct {
	Name      string   `json:"name" tfsdk:"name"`
	MAC       string   `json:"mac" tfsdk:"mac"`
	MTU       int      `json:"mtu" tfsdk:"mtu"`
	State     string   `json:"state" tfsdk:"state"`         // up, down, unknown …
	Kind      string   `json:"kind" tfsdk:"kind"`           // physical, bond, bridge, vlan, … or virtual
	Addresses []string `json:"addresses" tfsdk:"addresses"` // with the prefix length; link-local ones are left out
	Speed     int64    `json:"speed" tfsdk:"speed"`         // Mbit/s; 0 when it is not known
	Driver    string   `json:"driver" tfsdk:"driver"`
	Master    string   `json:"master" tfsdk:"master"` // the bond or bridge that it belongs to
}

// Route is a route of any table, without those that container networks make.
type Route struct {
	To    string `json:"to" tfsdk:"to"` // a network in CIDR form; 0.0.0.0/0 and ::/0 are the default routes
	Via   string `json:"via" tfsdk:"via"`
	Dev   string `json:"dev" tfsdk:"dev"`
	Table string `json:"table" tfsdk:"table"` // main, or a policy's
}

// DNS is how the machine resolves names.
type DNS struct {
	Servers []string `json:"servers" tfsdk:"servers"`
	Search  []string `json:"search" tfsdk:"search"`
	// File is the resolv.conf that holds for pods too: systemd-resolved's own
	// where /etc/resolv.conf names only its stub on 127.0.0.53.
	File string `json:"file" tfsdk:"file"`
}

// Listener is a socket that waits for others.
type Listener struct {
	Protocol string `json:"protocol" tfsdk:"protocol"` // tcp or udp
	Address  string `json:"address" tfsdk:"address"`   // 0.0.0.0 and :: are all
	Port     int    `json:"port" tfsdk:"port"`
	Process  string `json:"process" tfsdk:"process"` // "" when it is not known
}

// GPU is a graphics processor by NVIDIA, AMD or Intel.
type GPU struct {
	Address string `json:"address" tfsdk:"address"` // on the PCI bus, such as 0000:17:00.0
	ID      string `json:"id" tfsdk:"id"`           // vendor:device, such as 10de:2330
	Vendor  string `json:"vendor" tfsdk:"vendor"`   // nvidia, amd, intel
	Name    string `json:"name" tfsdk:"name"`
	Driver  string `json:"driver" tfsdk:"driver"` // that is bound to it: nvidia, nouveau, vfio-pci …
	Memory  int64  `json:"memory" tfsdk:"memory"` // where the driver tells
	UUID    string `json:"uuid" tfsdk:"uuid"`     // where the driver tells
	NUMA    int    `json:"numa" tfsdk:"numa"`     // node; -1 where there is none
}

// Clock is the machine's clock beside ours.
type Clock struct {
	// Offset is how many seconds it is ahead, in tenths; 0 when that is less
	// than half a second or less than Resolution.
	Offset float64 `json:"offset" tfsdk:"offset"`
	// Resolution is how wrong Offset can be, in seconds.
	Resolution   float64 `json:"resolution" tfsdk:"resolution"`
	Synchronized bool    `json:"synchronized" tfsdk:"synchronized"`
	Service      string  `json:"service" tfsdk:"service"` // that keeps it, such as chrony; "" for none
}

// Feature says whether the running kernel can do something.
type Feature string

const (
	Present  Feature = "present"  // it works now: built in or loaded
	Loadable Feature = "loadable" // a module of it is there
	Blocked  Feature = "blocked"  // modprobe is told not to load it
	Missing  Feature = "missing"
)

// FeatureNames are the features that are looked at.
func FeatureNames() []string {
	return []string{"br_netfilter", "nf_conntrack", "nf_tables", "overlay", "vxlan", "wireguard"}
}

// Runtime is a container runtime that is installed.
type Runtime struct {
	Name    string `json:"name" tfsdk:"name"` // containerd, dockerd, crio, podman
	Version string `json:"version" tfsdk:"version"`
	Package string `json:"package" tfsdk:"package"` // that it came with, such as containerd.io; "" for none
	Running bool   `json:"running" tfsdk:"running"`
}

// Node says what of Kubernetes is on the machine.
type Node struct {
	Joined       bool   `json:"joined" tfsdk:"joined"`               // kubeadm has joined it: there is a kubelet.conf
	ControlPlane bool   `json:"control_plane" tfsdk:"control_plane"` // there is an API server's manifest
	Kubelet      bool   `json:"kubelet" tfsdk:"kubelet"`             // it runs
	Other        string `json:"other" tfsdk:"other"`                 // another distribution that runs: k3s, rke2, k0s, microk8s
}

// Packages is what changes packages.
type Packages struct {
	APT            bool `json:"apt" tfsdk:"apt"`
	Needrestart    bool `json:"needrestart" tfsdk:"needrestart"`
	Unattended     bool `json:"unattended_upgrades" tfsdk:"unattended_upgrades"` // installed and switched on
	RebootRequired bool `json:"reboot_required" tfsdk:"reboot_required"`         // as /run/reboot-required says
}
