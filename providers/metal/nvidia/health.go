package nvidia

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/gpu"
)

// healthLook prints what nvidia-smi says of all GPUs. It is a part of look.
const healthLook = `if [ -r /proc/driver/nvidia/version ] && command -v nvidia-smi >/dev/null; then
	printf 'health\t%s\n' "$(timeout -k 5 30 nvidia-smi -q -x 2>&1 | head -c 1048576 | base64 -w0)"
fi
`

// loadedLook says that the driver is loaded.
const loadedLook = `if [ -r /proc/driver/nvidia/version ]; then echo loaded; fi
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
// snapshot is empty. Where the driver is loaded, and nvidia-smi is missing, fails or does
// not answer within 30 s, the error has its output.
func Readings(ctx context.Context, m host.Machine) (s gpu.Snapshot, err error) {
	var text string
	isLoaded := false
	lines := host.Lines{
		"loaded": host.Fields(0, func([]string) error { isLoaded = true; return nil }),
		"health": host.Data(1, func(f []string) error { text = f[0]; return nil }),
	}
	script := "# observe the health of GPUs\nexport LC_ALL=C\n" + loadedLook + healthLook + "echo end"
	err = host.Look(ctx, m, "the health of the GPUs", script, lines)
	if err != nil || !isLoaded {
		return gpu.Snapshot{}, err
	}
	s, err = gpu.ParseSMI(text)
	if err != nil {
		detail := cmp.Or(strings.Join(strings.Fields(text), " "), "it is missing, or does not answer within 30 s")
		return gpu.Snapshot{}, fmt.Errorf("nvidia-smi of %s prints no readings: %.200s: %w", m.Name(), detail, err)
	}
	return s, nil
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
