package session

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/runtime/spec"
)

// getPrometheus answers with the status as a page of Prometheus, in the text exposition
// format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/).
func (s server) getPrometheus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write([]byte(exposition(s.status.Load()))) //nolint:errcheck // the client has left
}

// page is a page of Prometheus under construction: families with their samples.
type page struct {
	b   strings.Builder
	run string
}

// Types of families.
const (
	gauge   = "gauge"
	counter = "counter"
)

// family begins a family.
func (p *page) family(name, kind, help string) {
	fmt.Fprintf(&p.b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample adds a sample with labels: names and values in turn.
func (p *page) sample(name string, value float64, labels ...string) {
	fmt.Fprintf(&p.b, `%s{run="%s"`, name, escape(p.run))
	for i := 0; i+1 < len(labels); i += 2 {
		fmt.Fprintf(&p.b, `,%s="%s"`, labels[i], escape(labels[i+1]))
	}
	p.b.WriteString("} " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// escape returns the value of a label.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// single adds a family of one sample.
func (p *page) single(name, kind, help string, value float64) {
	p.family(name, kind, help)
	p.sample(name, value)
}

// phases are all phases of a status.
var phases = [...]spec.Phase{spec.Pending, spec.Running, spec.Succeeded, spec.Failed, spec.Stopped, spec.Lost}

// exposition returns a status as text for Prometheus.
func exposition(s *spec.Status) string {
	p := &page{run: s.Run}
	p.family("stoke_run_info", gauge, "Always 1, with the version of the trainer.")
	p.sample("stoke_run_info", 1, "version", s.Trainer)
	p.family("stoke_run_phase", gauge, "1 for the phase of the run, 0 for the others.")
	for _, phase := range phases {
		is := 0.0
		if s.Phase == phase {
			is = 1
		}
		p.sample("stoke_run_phase", is, "phase", string(phase))
	}
	p.single("stoke_run_step", gauge, "Committed updates. A return to a checkpoint lowers it.", float64(s.Step))
	p.single("stoke_run_steps", gauge, "Updates that the whole run has, as known now.", float64(s.Steps))
	p.single("stoke_run_epoch", gauge, "Epoch, counted from 0.", float64(s.Epoch))
	p.single("stoke_run_epochs", gauge, "Epochs of the run.", float64(s.Epochs))
	p.single("stoke_run_records", gauge, "Committed records over all epochs.", float64(s.Records))
	p.single("stoke_run_skipped_updates", gauge, "Updates without finite gradients.", float64(s.Skipped))
	p.single("stoke_run_loss", gauge, "Mean loss of the records of the last update.", float64(s.Loss))
	p.single("stoke_run_checkpoint_step", gauge, "Step of the newest checkpoint, 0 for none.", float64(s.Saved))
	p.single("stoke_run_steps_back_total", counter, "Times that the run went back to a checkpoint or its start.", float64(s.Resumed))
	p.single("stoke_run_workers", gauge, "Workers that work.", float64(s.Workers))
	p.single("stoke_run_workers_wanted", gauge, "Declared workers.", float64(s.Wanted))
	p.single("stoke_run_generation", gauge, "Number of the membership.", float64(s.Generation))
	p.single("stoke_run_active_seconds_total", counter, "Seconds with at least min_replicas workers.", s.Ran)
	p.single("stoke_run_start_time_seconds", gauge, "Start of the run, seconds since 1970.", float64(s.Started.UnixMilli())/1000)
	p.single("stoke_run_status_time_seconds", gauge, "Time of this status, seconds since 1970.", float64(s.Updated.UnixMilli())/1000)
	p.family("stoke_run_metric", gauge, "Newest value of each metric of the run, by name.")
	for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
		p.sample("stoke_run_metric", s.Metrics[name], "name", name)
	}
	p.roles(s.Usage)
	p.gpus(s.Usage)
	return p.b.String()
}

// roles adds the usage of each role.
func (p *page) roles(usage map[string]spec.Usage) {
	roles := slices.Sorted(maps.Keys(usage))
	each := func(name, kind, help string, value func(u *spec.Usage) float64) {
		p.family(name, kind, help)
		for _, role := range roles {
			u := usage[role]
			p.sample(name, value(&u), "role", role)
		}
	}
	each("stoke_role_cpu_processors", gauge, "Mean number of busy processors.", func(u *spec.Usage) float64 { return u.CPU })
	each("stoke_role_memory_bytes", gauge, "Resident memory.", func(u *spec.Usage) float64 { return float64(u.Memory) })
	each("stoke_role_memory_limit_bytes", gauge, "Limit of the memory, 0 for none.",
		func(u *spec.Usage) float64 { return float64(u.Limit) })
	each("stoke_role_processes", gauge, "Processes.", func(u *spec.Usage) float64 { return float64(u.Processes) })
	each("stoke_role_received_bytes_total", counter, "Bytes from the network.",
		func(u *spec.Usage) float64 { return float64(u.Received.Bytes) })
	each("stoke_role_sent_bytes_total", counter, "Bytes to the network.", func(u *spec.Usage) float64 { return float64(u.Sent.Bytes) })
	each("stoke_role_read_bytes_total", counter, "Bytes from disks.", func(u *spec.Usage) float64 { return float64(u.Read.Bytes) })
	each("stoke_role_written_bytes_total", counter, "Bytes to disks.", func(u *spec.Usage) float64 { return float64(u.Written.Bytes) })
	const work = "stoke_role_work_ratio"
	p.family(work, gauge, "Shares of a worker's time: compute, communication, data. The rest of it, the worker waits.")
	for _, role := range roles {
		if of := usage[role].Work; of != (spec.Work{}) {
			p.sample(work, of.Communicate, "role", role, "kind", "communication")
			p.sample(work, of.Compute, "role", role, "kind", "compute")
			p.sample(work, of.Data, "role", role, "kind", "data")
		}
	}
}

// gpus adds the readings of each GPU, under the names of docs/gpu-health.md.
func (p *page) gpus(usage map[string]spec.Usage) {
	names := make(map[string]bool)
	for _, u := range usage {
		for _, r := range u.GPUs.GPUs {
			for name := range r.Values {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		family := "stoke_gpu_" + name
		p.family(family, gauge, "Reading of a GPU of the role's machine.")
		for _, role := range slices.Sorted(maps.Keys(usage)) {
			for _, r := range usage[role].GPUs.GPUs {
				if v, ok := r.Values[name]; ok {
					p.sample(family, v, "role", role, "gpu", strconv.Itoa(r.Index), "uuid", r.UUID)
				}
			}
		}
	}
}
