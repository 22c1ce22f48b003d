package session

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestExposition checks each line of a page against the grammar of the text format
// 0.0.4: a family has its help and its type once, before its samples, which are together.
func TestExposition(t *testing.T) {
	s := &spec.Status{
		Run: "run-1\"\\\n\xff", Trainer: "1.2", Phase: spec.Running, Step: 7, Loss: spec.Number(math.NaN()), Started: time.Unix(100, 0), Updated: time.Unix(200, 5e8),
		Metrics: map[string]float64{"accuracy": 0.93, "a\"}\n# TYPE x": math.Inf(1)},
		Usage: map[string]spec.Usage{
			"coordinator": {CPU: 0.1},
			"worker-0": {CPU: 1.5, Memory: 1 << 30, Sent: spec.Flow{Bytes: 12}, Work: spec.Work{Compute: 0.75, Data: 0.125},
				GPUs: gpu.Snapshot{GPUs: []gpu.Reading{{Index: 3, UUID: "GPU-1", Values: map[string]float64{"power_watts": 312.5}}}}},
		},
	}
	text := exposition(s)
	sample := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)\{([a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"(?:,[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*")*)\} (\S+)$`)
	kinds := make(map[string]string)
	now, seen := "", make(map[string]bool)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			now, _, _ = strings.Cut(rest, " ")
			if kinds[now] != "" {
				t.Errorf("%s comes twice", now)
			}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			if kinds[name] = kind; name != now || kind != gauge && kind != counter || kind == counter != strings.HasSuffix(name, "_total") {
				t.Errorf("type of %s: %s", now, line)
			}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil || m[1] != now || seen[m[1]+m[2]] || !strings.HasPrefix(m[1], "stoke_") {
			t.Errorf("line %q within %s", line, now)
			continue
		}
		seen[m[1]+m[2]] = true
		if _, err := strconv.ParseFloat(m[3], 64); err != nil {
			t.Error(err)
		}
	}
	run := `run="run-1\"\\\n` + "\uFFFD" + `"`
	for _, want := range []string{
		`stoke_run_phase{` + run + `,phase="running"} 1`, `stoke_run_phase{` + run + `,phase="lost"} 0`, `stoke_run_loss{` + run + `} NaN`,
		`stoke_run_metric{` + run + `,name="accuracy"} 0.93`, `stoke_run_metric{` + run + `,name="a\"}\n# TYPE x"} +Inf`,
		`stoke_role_cpu_processors{` + run + `,role="worker-0"} 1.5`, `stoke_role_sent_bytes_total{` + run + `,role="worker-0"} 12`,
		`stoke_role_work_ratio{` + run + `,role="worker-0",kind="compute"} 0.75`, `stoke_run_status_time_seconds{` + run + `} 200.5`,
		`stoke_gpu_power_watts{` + run + `,role="worker-0",gpu="3",uuid="GPU-1"} 312.5`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
}
