package facts

// Facts are what a machine is. Sizes are bytes, lists are sorted unless said
// otherwise, and what the machine does not tell is "", 0 or empty.
type Facts struct {
	Hostname    string `json:"hostname"`
	MachineID   string `json:"machine_id"`   // /etc/machine-id
	BootID      string `json:"boot_id"`      // another one after each boot
	ProductUUID string `json:"product_uuid"` // of the firmware; root alone can read it

	OS           OS     `json:"os"`
	Kernel       Kernel `json:"kernel"`
	Architecture string `json:"architecture"` // as Debian and Go call it, such as amd64
	Init         string `json:"init"`         // name of process 1, such as systemd
	Systemd      int    `json:"systemd"`      // version of systemd, 0 where it does not run
	Sudo         Sudo   `json:"sudo"`

	CPUs     int    `json:"cpus"` // that processes may use
	CPUModel string `json:"cpu_model"`
	Memory   int64  `json:"memory"`
	Swap     []Swap `json:"swap"` // in use
	Vendor   string `json:"vendor"`
	Product  string `json:"product"`
	// Virtualization and Container are systemd's names such as kvm and
	// systemd-nspawn; "none" where there is none.
	Virtualization string   `json:"virtualization"`
	Container      string   `json:"container"`
	Firmware       Firmware `json:"firmware"`

	Disks       []Disk       `json:"disks"`
	Filesystems []Filesystem `json:"filesystems"`
	Space       []Space      `json:"space"` // where Kubernetes, containers and packages need it

	CgroupVersion     int      `json:"cgroup_version"` // 1 also where both are mounted
	CgroupControllers []string `json:"cgroup_controllers"`

	NICs   []NIC   `json:"nics"`
	Routes []Route `json:"routes"`
	DNS    DNS     `json:"dns"`
	// Proxy holds what is set for everybody: http_proxy and the like from
	// /etc/environment and the login's environment, and apt's as "apt http".
	// User names and passwords in them are left out.
	Proxy     map[string]string `json:"proxy"`
	Listeners []Listener        `json:"listeners"`

	GPUs         []GPU  `json:"gpus"`
	NVSwitch     bool   `json:"nvswitch"`      // the GPUs hang on a switch, which needs the fabric manager
	NVIDIADriver string `json:"nvidia_driver"` // version of the loaded module

	Clock Clock `json:"clock"`

	Modules  []string           `json:"modules"`  // loaded
	Features map[string]Feature `json:"features"` // of the kernel, by the names in FeatureNames

	Runtimes []Runtime `json:"runtimes"`
	Node     Node      `json:"node"`
	Packages Packages  `json:"packages"`

	// Unread lists what the machine said that was not understood.
	Unread []string `json:"unread"`
}

// OS is /etc/os-release.
type OS struct {
	ID        string `json:"id"`       // such as ubuntu
	Version   string `json:"version"`  // such as 24.04
	Codename  string `json:"codename"` // such as noble
	Name      string `json:"name"`     // for people
	Supported bool   `json:"supported"`
}

// Kernel says which kernel runs and which one boots next.
type Kernel struct {
	Running string `json:"running"`
	Next    string `json:"next"`
	// DecidedBy says how Next was found: "grub" (its configuration and what it
	// remembers), "link" (/vmlinuz or /boot/vmlinuz), "newest" (in /boot) or
	// "running" (there is no kernel in /boot, as in a container).
	DecidedBy string   `json:"decided_by"`
	Installed []string `json:"installed"` // oldest first
}

// Sudo says whether root could be had.
type Sudo struct {
	Works bool   `json:"works"`
	User  string `json:"user"`  // who logged in, as far as it is known
	Error string `json:"error"` // why not
}

// Firmware is how the machine boots.
type Firmware struct {
	UEFI       bool   `json:"uefi"`
	SecureBoot bool   `json:"secure_boot"`
	Lockdown   string `json:"lockdown"` // of the kernel: none, integrity, confidentiality
}

// Swap is a device or file that is swapped to.
type Swap struct {
	Name string `json:"name"`
	Type string `json:"type"` // partition or file
	Size int64  `json:"size"`
}

// Disk is a block device that is no partition and no layer over others.
type Disk struct {
	Name       string `json:"name"` // without /dev
	Size       int64  `json:"size"`
	Model      string `json:"model"`
	Rotational bool   `json:"rotational"`
	Removable  bool   `json:"removable"`
}

// Filesystem is one that is mounted and local.
type Filesystem struct {
	Mount string `json:"mount"`
	Type  string `json:"type"`
	Size  int64  `json:"size"`
	Free  int64  `json:"free"` // for whoever is not root
}

// Space is what is free where a folder is, or would be.
type Space struct {
	Path       string `json:"path"`
	Mount      string `json:"mount"`
	Size       int64  `json:"size"`
	Free       int64  `json:"free"`
	FreeInodes int64  `json:"free_inodes"` // 0 where the filesystem does not count them
}

// NIC is a network interface: those of the machine itself, without the loopback
// and without what container networks make.
type NIC struct {
	Name      string   `json:"name"`
	MAC       string   `json:"mac"`
	MTU       int      `json:"mtu"`
	State     string   `json:"state"`     // up, down, unknown …
	Kind      string   `json:"kind"`      // physical, bond, bridge, vlan, … or virtual
	Addresses []string `json:"addresses"` // with the prefix length; link-local ones are left out
	Speed     int64    `json:"speed"`     // Mbit/s; 0 when it is not known
	Driver    string   `json:"driver"`
	Master    string   `json:"master"` // the bond or bridge that it belongs to
}

// Route is a route of any table, without those that container networks make.
type Route struct {
	To    string `json:"to"` // a network in CIDR form; 0.0.0.0/0 and ::/0 are the default routes
	Via   string `json:"via"`
	Dev   string `json:"dev"`
	Table string `json:"table"` // main, or a policy's
}

// DNS is how the machine resolves names.
type DNS struct {
	Servers []string `json:"servers"`
	Search  []string `json:"search"`
	// File is the resolv.conf that holds for pods too: systemd-resolved's own
	// where /etc/resolv.conf names only its stub on 127.0.0.53.
	File string `json:"file"`
}

// Listener is a socket that waits for others.
type Listener struct {
	Protocol string `json:"protocol"` // tcp or udp
	Address  string `json:"address"`  // 0.0.0.0 and :: are all
	Port     int    `json:"port"`
	Process  string `json:"process"` // "" when it is not known
}

// GPU is a graphics processor by NVIDIA, AMD or Intel.
type GPU struct {
	Address string `json:"address"` // on the PCI bus, such as 0000:17:00.0
	ID      string `json:"id"`      // vendor:device, such as 10de:2330
	Vendor  string `json:"vendor"`  // nvidia, amd, intel
	Name    string `json:"name"`
	Driver  string `json:"driver"` // that is bound to it: nvidia, nouveau, vfio-pci …
	Memory  int64  `json:"memory"` // where the driver tells
	UUID    string `json:"uuid"`   // where the driver tells
	NUMA    int    `json:"numa"`   // node; -1 where there is none
}

// Clock is the machine's clock beside ours.
type Clock struct {
	// Offset is how many seconds it is ahead, in tenths; 0 when that is less
	// than half a second or less than Resolution.
	Offset float64 `json:"offset"`
	// Resolution is how wrong Offset can be, in seconds.
	Resolution   float64 `json:"resolution"`
	Synchronized bool    `json:"synchronized"`
	Service      string  `json:"service"` // that keeps it, such as chrony; "" for none
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
	Name    string `json:"name"` // containerd, dockerd, crio, podman
	Version string `json:"version"`
	Package string `json:"package"` // that it came with, such as containerd.io; "" for none
	Running bool   `json:"running"`
}

// Node says what of Kubernetes is on the machine.
type Node struct {
	Joined       bool   `json:"joined"`        // kubeadm has joined it: there is a kubelet.conf
	ControlPlane bool   `json:"control_plane"` // there is an API server's manifest
	Kubelet      bool   `json:"kubelet"`       // it runs
	Other        string `json:"other"`         // another distribution that runs: k3s, rke2, k0s, microk8s
}

// Packages is what changes packages.
type Packages struct {
	APT            bool `json:"apt"`
	Needrestart    bool `json:"needrestart"`
	Unattended     bool `json:"unattended_upgrades"` // installed and switched on
	RebootRequired bool `json:"reboot_required"`     // as /run/reboot-required says
}
