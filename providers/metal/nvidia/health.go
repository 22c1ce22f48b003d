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

// healthOf judges what nvidia-smi printed. An output that is not its XML gives no
// verdict: other lines of a look say that nvidia-smi fails.
func healthOf(text string) gpu.Health {
	s, err := gpu.ParseSMI(text)
	if err != nil {
		return gpu.Health{Verdict: gpu.Fit}
	}
	return gpu.Judge(s, gpu.Expectation{})
}

// Health judges the GPUs of a machine by the rules of docs/gpu-health.md. Without a
// loaded driver all are fit: other checks report that.
func Health(ctx context.Context, m host.Machine) (gpu.Health, error) {
	h := gpu.Health{Verdict: gpu.Fit}
	lines := host.Lines{"health": host.Data(1, func(f []string) error { h = healthOf(f[0]); return nil })}
	err := host.Look(ctx, m, "the health of the GPUs", "export LC_ALL=C\n"+healthLook+"echo end", lines)
	return h, err
}

// health warns of each GPU that is unfit.
func (c *checker) health() {
	for _, f := range c.have.Health.Findings {
		if f.Severity == gpu.Unfit {
			c.found = append(c.found, Problem{Warning: true, Summary: "A GPU is unfit",
				Detail: fmt.Sprintf("%s (rule %s). The driver is installed all the same; docs/gpu-health.md has the rules.", f, f.Rule)})
		}
	}
}
