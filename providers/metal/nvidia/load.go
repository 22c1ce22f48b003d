package nvidia

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// unload takes the driver's modules out of the kernel, those that need others
// first. It says which one stays, and writes down which were there.
const unload = `# unload the driver
export LC_ALL=C
for m in nvidia_drm nvidia_modeset nvidia_uvm nvidia_peermem nv_peer_mem nvidia_fs gdrdrv nvidia; do
	[ -d /sys/module/$m ] || continue
	echo $m >> /run/stoke-gpu-modules
	modprobe -r $m || rmmod $m || { echo "$m is in use" >&2; exit 1; }
done`

// insert loads the driver and the modules that depended on it: RDMA has no GPUs
// otherwise. Modules that no longer exist are left out.
const insert = `# load the driver
export LC_ALL=C
modprobe nvidia && modprobe nvidia-uvm || exit 1
[ ! -r /run/stoke-gpu-modules ] || sort -u /run/stoke-gpu-modules | while read -r m; do modprobe -q -- "$m" || :; done
rm -f /run/stoke-gpu-modules`

const dropNouveau = `modprobe -r nouveau`

// load brings the installed module into the kernel, by a reboot where nothing
// else helps and one is allowed.
func (a *applier) load(ctx context.Context) error {
	if a.have.Loaded != "" && !a.have.exchanges(a.want) {
		return nil
	}
	if k := a.have.kernel(a.have.Kernel.Running); k.Version != a.have.Installed() {
		return a.reboot(ctx, fmt.Errorf("the kernel that runs, %s, has no module of driver %s", a.have.Kernel.Running, a.have.Installed()))
	}
	if a.have.Nouveau {
		if _, err := host.Script(ctx, a.m, dropNouveau); err != nil {
			return a.reboot(ctx, fmt.Errorf("nouveau cannot be unloaded: %w", err))
		}
	}
	if a.have.Loaded != "" {
		if err := a.freeGPUs(ctx); err != nil { // again: packages start services, and only now may it be known that it has to go
			return err
		}
		if _, err := host.Script(ctx, a.m, unload); err != nil {
			return a.reboot(ctx, fmt.Errorf("driver %s cannot be unloaded: %w", a.have.Loaded, err))
		}
	}
	if _, err := host.Script(ctx, a.m, insert); err != nil {
		return a.reboot(ctx, a.diagnose(ctx, fmt.Sprintf("driver %s cannot be loaded: %v", a.have.Installed(), err)))
	}
	return a.look(ctx)
}

// reboot restarts the machine where that is allowed; otherwise it returns why it
// would.
func (a *applier) reboot(ctx context.Context, why error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var lost *ssh.LostError
	if errors.As(why, &lost) {
		return why
	}
	if a.hooks.Reboot == nil || a.want.Reboot != IfNeeded {
		return fmt.Errorf("%w; a reboot would help and is not allowed: set reboot = \"if-needed\", or reboot %s by hand and apply again", why, a.m.Name())
	}
	if err := a.drain(ctx); err != nil {
		return err
	}
	if err := a.hooks.Reboot(ctx); err != nil {
		return err
	}
	if err := a.look(ctx); err != nil {
		return err
	}
	if a.have.Loaded != "" {
		return nil
	}
	if _, err := host.Script(ctx, a.m, insert); err != nil { // nothing on the machine wants the module yet
		return a.diagnose(ctx, fmt.Sprintf("driver %s cannot be loaded, after a reboot as well: %v", a.have.Installed(), err))
	}
	return a.look(ctx)
}

// enable starts a unit now and at every boot, without the daemon-reload that
// systemctl enable does otherwise: running containers may lose their GPUs by it.
const enable = `# enable and start a unit
systemctl --no-reload enable -- "$1" 2>/dev/null || :
systemctl restart -- "$1"`

const disable = `# disable and stop a unit
systemctl --no-reload disable -- "$1" 2>/dev/null || :
systemctl stop -- "$1"`

// start brings the fabric manager up, before anything asks for the GPUs that it
// joins, and the persistence daemon.
func (a *applier) start(ctx context.Context) error {
	if a.have.fabricManager(a.want) && !a.have.Units[fabricmanager].runs() {
		if _, err := host.Script(ctx, a.m, enable, fabricmanager); err != nil {
			return err
		}
	}
	script := ""
	switch u := a.have.Units[persistenced]; {
	case a.want.Persistence && !u.runs():
		script = enable
	case !a.want.Persistence && u.Active:
		script = disable
	}
	if script != "" {
		if _, err := host.Script(ctx, a.m, script, persistenced); err != nil {
			return err
		}
	}
	return a.look(ctx)
}

// NotWorkingError says that the driver is installed and does not work.
type NotWorkingError struct {
	Host string
	Why  string
	// Said is what kernel log and dkms say about it, line by line.
	Said []string
}

func (e *NotWorkingError) Error() string {
	s := fmt.Sprintf("%s: the driver is installed but does not work: %s", e.Host, e.Why)
	if len(e.Said) > 0 {
		s += "\n  " + strings.Join(e.Said, "\n  ")
	}
	return s
}

// verify asks the driver itself. One that does not answer as it should gets one
// reboot, where that is allowed.
func (a *applier) verify(ctx context.Context) error {
	why := a.notWorking()
	if why == "" {
		return nil
	}
	err := a.diagnose(ctx, why)
	if a.hooks.Reboot == nil || a.want.Reboot != IfNeeded {
		return err
	}
	if err := a.reboot(ctx, err); err != nil {
		return err
	}
	if err := a.start(ctx); err != nil {
		return err
	}
	if why := a.notWorking(); why != "" {
		return a.diagnose(ctx, why+", after a reboot as well")
	}
	return nil
}

func (a *applier) notWorking() string {
	s, n := a.have, len(a.have.Devices)
	switch {
	case !a.want.satisfied(s.Installed()):
		return fmt.Sprintf("driver %s is installed, not %s", cmp.Or(s.Installed(), "none"), a.want.versionText())
	case s.Loaded == "":
		return "its module is not in the kernel"
	case s.Loaded != s.Installed():
		return fmt.Sprintf("the kernel has version %s, the libraries are %s", s.Loaded, s.Installed())
	case s.LoadedOpen != (a.want.Modules == Open):
		return fmt.Sprintf("the kernel has the %s modules, not the %s ones", flavour(s.LoadedOpen), a.want.Modules)
	case s.Smi != "":
		return "nvidia-smi: " + s.Smi
	case len(s.GPUs) != n:
		return fmt.Sprintf("nvidia-smi lists %d of the %d GPUs on the PCI bus%s", len(s.GPUs), n, missing(s))
	}
	for _, g := range s.GPUs {
		if g.Driver != s.Loaded {
			return fmt.Sprintf("GPU %d answers with driver %s, the kernel has %s", g.Index, g.Driver, s.Loaded)
		}
	}
	return ""
}

func missing(s State) string {
	listed := map[string]bool{}
	for _, g := range s.GPUs {
		listed[g.Bus] = true
	}
	var names []string
	for _, d := range s.Devices {
		if !listed[d.Address] {
			names = append(names, d.Name()+" at "+d.Address)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ": missing " + strings.Join(names, ", ")
}

const said = `# read what the kernel says of the driver
export LC_ALL=C
dmesg 2>/dev/null | grep -iE 'nvrm|nvidia|nouveau|nvswitch' | tail -n 12 | cut -c 1-300 | sed 's/^/kernel: /'
command -v dkms >/dev/null && dkms status 2>/dev/null | grep -i nvidia | head -n 6 | cut -c 1-200 | sed 's/^/dkms: /'
systemctl is-failed -q nvidia-fabricmanager.service 2>/dev/null && journalctl -u nvidia-fabricmanager.service -n 5 --no-pager -o cat 2>/dev/null | cut -c 1-300 | sed 's/^/fabric manager: /'
:`

func (a *applier) diagnose(ctx context.Context, why string) error {
	e := &NotWorkingError{Host: a.m.Name(), Why: why}
	if out, err := host.Script(ctx, a.m, said); err == nil {
		for line := range strings.Lines(strings.ToValidUTF8(string(out), "?")) {
			e.Said = append(e.Said, strings.TrimSpace(line))
		}
	}
	return e
}
