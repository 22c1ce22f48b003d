package nvidia

import (
	"cmp"
	"context"
	"fmt"

	"github.com/stokehq/stoke/providers/metal/host"
)

const generate = `# describe the GPUs for containers
set -e
mkdir -p -- "$(dirname -- "$1")"
nvidia-ctk cdi generate --output="$1.stoke-new.yaml" >/dev/null
mv -f -- "$1.stoke-new.yaml" "$1"`

// refresh has the toolkit write it, now and whenever driver or toolkit change.
const refresh = `# start the refresh of the CDI file
systemctl --no-reload enable -- "$2" "$1" 2>/dev/null || :
systemctl start -- "$2" && systemctl restart -- "$1"`

func (a *applier) containers(ctx context.Context) error {
	if a.want.Toolkit == "" {
		return nil
	}
	if file := a.want.cdiFile(); a.have.CDI[file] != a.have.Loaded {
		if err := a.cdi(ctx, file); err != nil {
			return err
		}
		if err := a.look(ctx); err != nil {
			return err
		}
		if v := a.have.CDI[file]; v != a.have.Loaded {
			return fmt.Errorf("%s: %s is of driver %s, not of %s, although it has just been written: look at journalctl -u %s", a.m.Name(), file, cmp.Or(v, "none"), a.have.Loaded, cdiRefresh)
		}
	}
	if a.have.Files[RuntimeFile] != Runtime {
		if err := noteRestart(ctx, a.m, a.have); err != nil {
			return err
		}
		a.have.Unread = true
		if _, err := a.put(ctx, RuntimeFile, Runtime); err != nil {
			return err
		}
	}
	if !a.have.Unread || !a.have.Units[containerd].Active {
		return nil
	}
	a.have.Unread = false
	return reread(ctx, a.m)
}

// noteRestart notes, before RuntimeFile changes, that containerd is to be restarted, which
// a run that is cut off leaves to the next.
func noteRestart(ctx context.Context, m host.Machine, have State) error {
	if !have.Units[containerd].Active {
		return nil
	}
	_, err := host.Run(ctx, m, "touch", unreadFile)
	return err
}

const restartContainerd = `# have containerd read what runtimes there are
systemctl restart containerd.service && rm -f /run/stoke-gpu-containerd`

func reread(ctx context.Context, m host.Machine) error {
	_, err := host.Script(ctx, m, restartContainerd)
	return err
}

func (a *applier) cdi(ctx context.Context, file string) error {
	if a.want.refreshes() {
		if _, stale := a.have.CDI[oldCDIFile]; stale { // of an older toolkit: two specifications of one device contradict each other
			if err := a.rec.KeepFile(ctx, oldCDIFile); err != nil {
				return err
			}
			if err := host.Remove(ctx, a.m, oldCDIFile); err != nil {
				return err
			}
		}
		_, err := host.Script(ctx, a.m, refresh, cdiRefresh, cdiRefreshPath)
		return err
	}
	if err := a.rec.KeepFile(ctx, file); err != nil {
		return err
	}
	_, err := host.Script(ctx, a.m, generate, file)
	return err
}

// again starts units that a change had stopped, the kubelet last.
const again = `# start again what used the GPUs
set -e
for u in "$@"; do [ "$(systemctl show -p LoadState --value -- "$u")" != loaded ] || systemctl start -- "$u"; done
rm -f /run/stoke-gpu-stopped`

// resume starts what freeGPUs stopped and nothing has started since.
func (a *applier) resume(ctx context.Context) error {
	if len(a.have.Stopped) == 0 {
		return nil
	}
	var units []string
	for _, u := range []string{fabricmanager, persistenced, hostengine, kubelet} {
		for _, s := range a.have.Stopped {
			if s == u && !(u == persistenced && !a.want.Persistence) && !(u == fabricmanager && !a.have.fabricManager(a.want)) {
				units = append(units, u)
			}
		}
	}
	if _, err := host.Script(ctx, a.m, again, units...); err != nil {
		return err
	}
	return a.look(ctx)
}
