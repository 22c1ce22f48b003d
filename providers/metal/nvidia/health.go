package nvidia

import (
	"context"
	"fmt"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/gpu"
)

// healthLook prints the readings of all GPUs. It is a part of look.
const healthLook = `if [ -r /proc/driver/nvidia/version ] && command -v nvidia-smi >/dev/null; then
	printf 'health\t%s\n' "$(timeout -k 5 30 nvidia-smi -q -x 2>&1 | head -c 1048576 | base64 -w0)"
fi
`

// readingsOf returns what nvidia-smi printed. An output that is not its XML has no GPUs:
// other lines of a look say that nvidia-smi fails.
func readingsOf(text string) gpu.Snapshot {
	s, err := gpu.ParseSMI(text)
	if err != nil {
		return gpu.Snapshot{}
	}
	return s
}

// Readings returns the readings of a machine's GPUs. Without a loaded driver the
// snapshot is empty: other checks report that.
func Readings(ctx context.Context, m host.Machine) (s gpu.Snapshot, err error) {
	lines := host.Lines{"health": host.Data(1, func(f []string) error { s = readingsOf(f[0]); return nil })}
	err = host.Look(ctx, m, "the health of the GPUs", "# observe the health of GPUs\nexport LC_ALL=C\n"+healthLook+"echo end", lines)
	return s, err
}

// UnfitGPUs warns of each GPU that is unfit.
func UnfitGPUs(have State) (found []Problem) {
	for _, f := range have.Health.Findings {
		if f.Severity == gpu.Unfit {
			found = append(found, Problem{Warning: true, Summary: "A GPU is unfit",
				Detail: fmt.Sprintf("%s (rule %s). Its driver is managed all the same; docs/gpu-health.md has the rules.", f, f.Rule)})
		}
	}
	return found
}
