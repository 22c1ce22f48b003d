package nvidia

import (
	"context"
	"errors"
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

// readingsOf returns the readings that nvidia-smi printed. An output that is not its XML
// has no GPUs: other lines of a look say that nvidia-smi fails.
func readingsOf(text string) gpu.Snapshot {
	s, err := gpu.ParseSMI(text)
	if err != nil {
		return gpu.Snapshot{}
	}
	return s
}

// ErrNoReadings is the error of a loaded driver whose nvidia-smi prints no readings.
var ErrNoReadings = errors.New("nvidia-smi prints no readings")

// Readings returns the readings of a machine's GPUs. Without a loaded driver the
// snapshot is empty. Where the driver is loaded, and nvidia-smi is missing, fails or does
// not answer within 30 s, the error is ErrNoReadings with its output.
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
	if s, err = gpu.ParseSMI(text); err == nil {
		return s, nil
	}
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return gpu.Snapshot{}, fmt.Errorf("%w on %s: it is missing, or does not answer within 30 s", ErrNoReadings, m.Name())
	}
	return gpu.Snapshot{}, fmt.Errorf("%w on %s: %.200q", ErrNoReadings, m.Name(), text)
}

// UnfitGPUs warns of each GPU that is unfit.
func UnfitGPUs(have State) (found []Problem) {
	for _, f := range have.Health.Findings {
		if f.Severity == gpu.Unfit {
			found = append(found, Problem{Warning: true, Summary: "A GPU is unfit",
				Detail: fmt.Sprintf("%s (rule %s). stoke still manages its driver. docs/gpu-health.md has the rules.", f, f.Rule)})
		}
	}
	return found
}
