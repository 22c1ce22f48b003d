//go:build e2e && linux

package lab

// light is what keeps a machine's boots and logins cheap, as files to write and
// links to make, by their paths: hundreds of them are what tests spend their time
// on. None of it is something that stoke looks at or changes.
func light() (files, links map[string]string) {
	files, links = map[string]string{}, map[string]string{}
	// A sandbox of its own for each of these costs more than all that they do.
	for _, name := range []string{"journald", "logind", "hostnamed", "timedated", "localed"} {
		files["/usr/lib/systemd/system/systemd-"+name+".service.d/lab.conf"] = noSandbox
	}
	// All generators run again whenever systemd reloads. What they would find is
	// not there; that of fstab stays.
	for _, name := range []string{
		"cryptsetup", "debug", "getty", "gpt-auto", "hibernate-resume", "integritysetup", "rc-local", "run", "system-update", "sysv", "veritysetup",
	} {
		links["/etc/systemd/system-generators/systemd-"+name+"-generator"] = "/dev/null"
	}
	// There are no sessions that need a systemd of their own; file systems are not
	// scrubbed, and systemd loads no modules.
	for _, name := range []string{"user@.service", "e2scrub_reap.service", "e2scrub_all.timer", "modprobe@.service", "systemd-update-utmp-runlevel.service"} {
		links["/etc/systemd/system/"+name] = "/dev/null"
	}
	// What is done once after an update of /usr is done.
	for _, name := range []string{"/etc/.updated", "/var/.updated"} {
		files[name] = ""
	}
	return files, links
}

const noSandbox = `[Service]
PrivateDevices=no
PrivateNetwork=no
PrivateTmp=no
ProtectClock=no
ProtectControlGroups=no
ProtectHome=no
ProtectHostname=no
ProtectKernelLogs=no
ProtectKernelModules=no
ProtectKernelTunables=no
ProtectProc=default
ProtectSystem=no
ReadWritePaths=
LockPersonality=no
MemoryDenyWriteExecute=no
RestrictAddressFamilies=
RestrictNamespaces=no
RestrictRealtime=no
RestrictSUIDSGID=no
SystemCallArchitectures=
SystemCallFilter=
IPAddressDeny=
`
