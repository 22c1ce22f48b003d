// Package lab makes real Debian machines for tests: with systemd, sshd, sudo,
// apt, nftables and a network of their own, up in a second or two, that can be
// rebooted, lose power, and be compared as a whole before and after. They are
// containers (systemd-nspawn) on overlayfs; they share this machine's kernel,
// whose modules they cannot change, and everything else is theirs: sysctls,
// rules, packages, control groups.
//
// Its entry point is New. All of it has the build tag e2e and is for Linux, so a
// test that uses it begins with
//
//	//go:build e2e && linux
//
//	func TestHost(t *testing.T) {
//		l := lab.New(t)                      // skips where there cannot be one; ends with the test
//		m := l.Machine("node-1")             // up, sshd answers; l.Machines("a", "b", "c") makes several at once
//		before := m.Snapshot()
//		err := packages.Apply(ctx, m.Remote(), …) // *host.Remote, as the user ops with docs/sudoers.d-stoke
//		m.Exec("apt-get", "-y", "purge", "jq")    // as root and past SSH: drift made by hand
//		m.Script(`echo "$1" > /etc/motd`, "hand")
//		m.Reboot()                           // returns when users can log in again; so does PowerOn
//		m.Crash()                            // power cut, also from another goroutine in the middle of an apply
//		m.PowerOn()
//		m.Reinstall()                        // an empty disk, and another host key
//		if diff := lab.Diff(before, m.Snapshot(), "content /etc/motd"); len(diff) > 0 {
//			t.Error(strings.Join(diff, "\n"))
//		}
//	}
//
// Packages that tests need and Debian does not have are made and signed here:
//
//	r := l.Repository(lab.Package{Name: "stoke-demo", Version: "1.0-1", Files: …, Scripts: …})
//	r.URL, r.KeyURL, r.Key, r.Fingerprint        // what a repository block declares: suite "/", or "bookworm" and "main"
//	r.Publish(…); r.Withdraw(…); r.NewKey()      // and what may become of one
//	r.AddTo(m)                                   // told to apt by hand
//
// DemoPackage, RivalPackage, l.ContainerdPackage, l.CUDAPackage and the stand-ins
// for NVIDIA's (l.DriverPackages, l.UbuntuDriverPackages, l.ToolkitPackages) and
// for kernels (l.KernelPackages) are there already. For the latter a machine gets
// hardware that this one need not have:
//
//	m := l.Machine("gpu", lab.PCI(lab.H100, lab.H100), lab.Kernel("6.1.0-40-amd64", true))
//
// nouveau has its GPUs until the initramfs says otherwise, dkms builds for every
// kernel that has headers, modprobe and rmmod refuse what they do, the newest
// kernel boots, and nvidia-smi lists the GPUs when module and library are of one
// version. Echo a message into /run/machine/gpu-failure, and it fails with that;
// lab.SecureBoot, lab.NouveauConsole and lab.Ubuntu make such machines.
//
// A configuration for a machine needs m.Address, m.HostKey, and the user ops
// with the private key l.Key. m.AdminTarget is the user admin, who logs in with
// lab.AdminPassword and gives it to sudo, too.
//
// lab.Of(t, lab.Trixie) is a lab of Debian 13, which starts on control groups of
// version 2 that have no controllers: no kubelet there.
//
// lab.Pods() is for machines that run containerd and the kubelet, and
// lab.Folder(here, there) shows them programs that were built here.
// l.KubernetesPackages and l.RealContainerdPackage package these programs, for
// l.RepositoryAt("core:/stable:/v1.37/deb/", …), and l.Programs finds Debian
// programs for images.
//
// lab.NoMirror makes apt several times as quick, for tests that need only such
// repositories; lab.Disk("300M") is for full disks, lab.Private() for a second
// network.
//
// Machines reach each other and this machine (their gateway), and Debian's
// mirror through a caching proxy that apt is configured for. They have no other
// network and no DNS. The first installation of a package from the mirror takes
// its time; later ones come from the cache in STOKE_LAB_CACHE (default:
// stoke-lab in the user's cache folder), which also has the root file system,
// built once in about a minute.
//
// l.VM makes a virtual machine instead, with a kernel of its own, for tests that
// have the build tag e2evm as well (make e2e-vm runs those called …Virtual…).
//
// The machines differ from real ones: systemd-timesyncd does not run in
// containers; vm.*, fs.* and most of kernel.* are plain files that are new at
// every boot and take any value; modprobe has only a handful of built-in modules;
// a power cut loses no file that was written, however late; services of systemd's
// run without their sandbox, and sessions without a systemd of their own (light
// has all of that).
//
// Several labs may be there at once, in one process or in several. The next lab
// removes leftovers of a killed process.
package lab
