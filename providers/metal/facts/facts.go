package facts

// Facts are what a machine is. Sizes are bytes, lists are sorted unless said
// otherwise, and what the machine does not tell is "", 0 or empty.
type Facts struct {
	Hostname    string `json:"hostname" tfsdk:"hostname"`
	MachineID   string `json:"machine_id" tfsdk:"machine_id"`     // /etc/machine-id
	BootID      string `json:"boot_id" tfsdk:"boot_id"`           // another one after each boot
	ProductUUID string `json:"product_uuid" tfsdk:"product_uuid"` // of the firmware; root alone can read it

	OS           OS     `json:"os" tfsdk:"os"`
	Kernel       Kernel `json:"kernel" tfsdk:"kernel"`
	Architecture string `json:"architecture" tfsdk:"architecture"` // as Debian and Go call it, such as amd64
	Init         string `json:"init" tfsdk:"init"`                 // name of process 1, such as systemd
	Systemd      int    `json:"systemd" tfsdk:"systemd"`           // version of systemd, 0 where it does not run
	Sudo         Sudo   `json:"sudo" tfsdk:"sudo"`

	CPUs     int    `json:"cpus" tfsdk:"cpus"` // that processes may use
	CPUModel string `json:"cpu_model" tfsdk:"cpu_model"`
	Memory   int64  `json:"memory" tfsdk:"memory"`
	Swap     []Swap `json:"swap" tfsdk:"swap"` // in use
	Vendor   string `json:"vendor" tfsdk:"vendor"`
	Product  string `json:"product" tfsdk:"product"`
	// Virtualization and Container are systemd's names such as kvm and
	// systemd-nspawn; "none" where there is none.
	Virtualization string   `json:"virtualization" tfsdk:"virtualization"`
	Container      string   `json:"container" tfsdk:"container"`
	Firmware       Firmware `json:"firmware" tfsdk:"firmware"`

	Disks       []Disk       `json:"disks" tfsdk:"disks"`
	Filesystems []Filesystem `json:"filesystems" tfsdk:"filesystems"`
	Space       []Space      `json:"space" tfsdk:"space"` // where Kubernetes, containers and packages need it

	CgroupVersion     int      `json:"cgroup_version" tfsdk:"cgroup_version"` // 1 also where both are mounted
	CgroupControllers []string `json:"cgroup_controllers" tfsdk:"cgroup_controllers"`

	NICs   []NIC   `json:"nics" tfsdk:"nics"`
	Routes []Route `json:"routes" tfsdk:"routes"`
	DNS    DNS     `json:"dns" tfsdk:"dns"`
	// Proxy holds what is set for everybody: http_proxy and the like from
	// /etc/environment and the login's environment, and apt's as "apt http".
	// User names and passwords in them are left out.
	Proxy     map[string]string `json:"proxy" tfsdk:"proxy"`
	Listeners []Listener        `json:"listeners" tfsdk:"listeners"`

	GPUs         []GPU  `json:"gpus" tfsdk:"gpus"`
	NVSwitch     bool   `json:"nvswitch" tfsdk:"nvswitch"`           // the GPUs hang on a switch, which needs the fabric manager
	NVIDIADriver string `json:"nvidia_driver" tfsdk:"nvidia_driver"` // version of the loaded module

	Clock Clock `json:"clock" tfsdk:"clock"`

	Modules  []string           `json:"modules" tfsdk:"modules"`   // loaded
	Features map[string]Feature `json:"features" tfsdk:"features"` // of the kernel, by the names in FeatureNames

	Runtimes []Runtime `json:"runtimes" tfsdk:"runtimes"`
	Node     Node      `json:"node" tfsdk:"node"`
	Packages Packages  `json:"packages" tfsdk:"packages"`

	// Unread lists what the machine said that was not understood.
	Unread []string `json:"unread" tfsdk:"unread"`
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
	// DecidedBy says how Next was found: "grub" (its configuration and what it
	// remembers), "link" (/vmlinuz or /boot/vmlinuz), "newest" (in /boot) or
	// "running" (there is no kernel in /boot, as in a container).
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
