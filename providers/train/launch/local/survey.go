package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/slot"
)

var _ launch.Surveyor = (*Launcher)(nil)

// Survey returns this machine: its processors, its memory, and its GPUs with the processes
// that have their slots. A GPU may have users without a slot: programs, and processes that
// are not stoke's.
func (l *Launcher) Survey(context.Context) (providers.RunSurvey, error) {
	return survey("/proc", slot.Folder()), nil
}

// survey reads the machine from a folder with the files of /proc.
func survey(proc, slots string) providers.RunSurvey {
	host, _ := os.Hostname() // "": it has none
	n := providers.RunNode{Name: host, Phase: "ready", CPU: float64(runtime.NumCPU()), Memory: memory(filepath.Join(proc, "meminfo"))}
	out := providers.RunSurvey{Place: "this machine", ID: "this machine", IsHere: true}
	all, err := nvidia(proc)
	if err != nil {
		out.Partly = "The GPUs are not known: " + err.Error() + "."
	}
	holders, err := slot.Holders(slots)
	if err != nil && len(all) > 0 {
		out.Partly = "The users of the GPUs are not known: " + err.Error() + "."
	}
	for i, g := range all {
		n.GPUs++
		n.GPUModel = g.model
		h := providers.RunHolder{GPU: fmt.Sprintf("GPU %d, %s", i, g.model), By: holders[g.uuid]}
		if h.By == "" && (g.uuid == "" || strings.Contains(g.uuid, "?")) {
			h.By = "not known: the driver does not tell the UUID"
		}
		n.Holders = append(n.Holders, h)
	}
	out.Nodes = []providers.RunNode{n}
	return out
}

// memory returns the memory of the machine in bytes; 0: it is not known.
func memory(name string) int64 {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if of, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(of), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// nvidiaGPU is what the driver tells of a GPU.
type nvidiaGPU struct{ bus, model, uuid string }

// nvidia returns the GPUs that NVIDIA's driver has, by their places on the bus, which is the
// order of their indices.
func nvidia(proc string) (all []nvidiaGPU, err error) {
	names, err := filepath.Glob(filepath.Join(proc, "driver/nvidia/gpus/*/information"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		g := nvidiaGPU{bus: filepath.Base(filepath.Dir(name))}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
			case "Model":
				g.model = value
			case "GPU UUID":
				g.uuid = value
			}
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b nvidiaGPU) int { return cmp.Compare(a.bus, b.bus) })
	return all, nil
}
