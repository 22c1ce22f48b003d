//go:build cgo && linux

package main

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/stokehq/stoke/runtime/gpu"
)

// mostEvents bounds the events of one reading.
const mostEvents = 64

// watch registers all GPUs for XID events. Without success, readings have none.
func (n *nvidia) watch() {
	set, ret := n.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return
	}
	for _, d := range n.devices {
		if d.ask("events", func() nvml.Return { return d.RegisterEvents(nvml.EventTypeXidCriticalError, set) }) {
			n.events = set
		}
	}
}

// collect takes the events since the last call.
func (n *nvidia) collect() {
	for range mostEvents {
		if n.events == nil {
			return
		}
		e, ret := n.events.Wait(0)
		if ret != nvml.SUCCESS { // none is left
			return
		}
		for _, d := range n.devices {
			if d.handle == e.Device && d.card != nil && !slices.Contains(d.xids, e.EventData) && len(d.xids) < mostEvents {
				d.xids = append(d.xids, e.EventData)
			}
		}
	}
}

func (n *nvidia) snapshot() gpu.Snapshot {
	n.collect()
	s := gpu.Snapshot{Driver: n.driver, CUDA: n.cuda, GPUs: []gpu.Reading{}}
	if len(n.devices) == 0 {
		s.Absent = "the driver has found none"
	}
	for _, d := range n.devices {
		s.GPUs = append(s.GPUs, d.read(n.eventReasons))
	}
	return s
}

// read takes the readings of a GPU. A lost GPU has none.
func (d *device) read(eventReasons bool) gpu.Reading {
	r := gpu.Reading{Index: d.index, UUID: d.uuid, Name: d.name, Values: make(map[string]float64), XIDs: slices.Clone(d.xids)}
	d.readWork(r.Values)
	d.readPower(r.Values)
	d.readMemory(r.Values)
	d.ask("throttle reasons", func() nvml.Return {
		call := d.GetCurrentClocksThrottleReasons
		if eventReasons {
			call = d.GetCurrentClocksEventReasons
		}
		bits, ret := call()
		if ret == nvml.SUCCESS {
			r.Throttle = gpu.ReasonNames(bits)
		}
		return ret
	})
	d.ask("processes", func() nvml.Return {
		all, ret := d.GetComputeRunningProcesses()
		for _, p := range all {
			of := gpu.Process{PID: int(p.Pid)}
			if p.UsedGpuMemory < 1<<62 { // NVML_VALUE_NOT_AVAILABLE is all ones
				of.Memory = int64(p.UsedGpuMemory)
			}
			r.Processes = append(r.Processes, of)
		}
		return ret
	})
	r.Fault, r.Detail = d.fault, d.detail
	if d.fault != "" {
		r.Values = nil // some may be of before
	}
	return r
}

func (d *device) readWork(values map[string]float64) {
	d.ask("utilisation", func() nvml.Return {
		u, ret := d.GetUtilizationRates()
		if ret == nvml.SUCCESS {
			values[gpu.Utilization], values[gpu.MemoryTraffic] = float64(u.Gpu), float64(u.Memory)
		}
		return ret
	})
	d.ask("memory", func() nvml.Return {
		m, ret := d.GetMemoryInfo()
		if ret == nvml.SUCCESS {
			values[gpu.MemoryUsed], values[gpu.MemoryTotal] = float64(m.Used), float64(m.Total)
		}
		return ret
	})
	for _, c := range []struct {
		key   string
		clock nvml.ClockType
	}{{gpu.SMClock, nvml.CLOCK_SM}, {gpu.MemoryClock, nvml.CLOCK_MEM}} {
		d.number(values, c.key, 1, func() (uint32, nvml.Return) { return d.GetClockInfo(c.clock) })
	}
}

func (d *device) readPower(values map[string]float64) {
	const milli = 0.001
	d.number(values, gpu.Temperature, 1, func() (uint32, nvml.Return) { return d.GetTemperature(nvml.TEMPERATURE_GPU) })
	d.number(values, gpu.Power, milli, func() (uint32, nvml.Return) { return d.GetPowerUsage() })
	d.number(values, gpu.PowerLimit, milli, func() (uint32, nvml.Return) { return d.GetEnforcedPowerLimit() })
}

// number reads one number.
func (d *device) number(values map[string]float64, key string, factor float64, read func() (uint32, nvml.Return)) {
	d.ask(key, func() nvml.Return {
		v, ret := read()
		if ret == nvml.SUCCESS {
			values[key] = float64(v) * factor
		}
		return ret
	})
}

func (d *device) readMemory(values map[string]float64) {
	for key, kind := range map[string]nvml.MemoryErrorType{
		gpu.Corrected: nvml.MEMORY_ERROR_TYPE_CORRECTED, gpu.Uncorrected: nvml.MEMORY_ERROR_TYPE_UNCORRECTED,
	} {
		d.ask(key, func() nvml.Return {
			v, ret := d.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
			if ret == nvml.SUCCESS {
				values[key] = float64(v)
			}
			return ret
		})
	}
	d.ask("remapped rows", func() nvml.Return {
		soft, hard, pending, failed, ret := d.GetRemappedRows()
		if ret == nvml.SUCCESS {
			values[gpu.RemappedSoft], values[gpu.RemappedHard] = float64(soft), float64(hard)
			values[gpu.RemapPending], values[gpu.RemapFailed] = bit(pending), bit(failed)
		}
		return ret
	})
}

func bit(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
