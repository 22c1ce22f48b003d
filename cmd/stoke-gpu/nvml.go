//go:build cgo && linux

package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/stokehq/stoke/runtime/gpu"
)

// library is the part of NVML that this program calls.
type library interface {
	Init() nvml.Return
	Shutdown() nvml.Return
	ErrorString(nvml.Return) string
	SystemGetDriverVersion() (string, nvml.Return)
	SystemGetCudaDriverVersion() (int, nvml.Return)
	DeviceGetCount() (int, nvml.Return)
	DeviceGetHandleByIndex(int) (nvml.Device, nvml.Return)
	EventSetCreate() (nvml.EventSet, nvml.Return)
	Extensions() nvml.ExtendedInterface
}

// card is the part of NVML about one GPU that this program calls.
type card interface {
	GetName() (string, nvml.Return)
	GetUUID() (string, nvml.Return)
	GetIndex() (int, nvml.Return)
	GetPciInfo() (nvml.PciInfo, nvml.Return)
	GetMemoryInfo() (nvml.Memory, nvml.Return)
	GetCudaComputeCapability() (int, int, nvml.Return)
	GetMigMode() (int, int, nvml.Return)
	GetMaxMigDeviceCount() (int, nvml.Return)
	GetMigDeviceHandleByIndex(int) (nvml.Device, nvml.Return)
	GetNvLinkState(int) (nvml.EnableState, nvml.Return)
	GetUtilizationRates() (nvml.Utilization, nvml.Return)
	GetTemperature(nvml.TemperatureSensors) (uint32, nvml.Return)
	GetPowerUsage() (uint32, nvml.Return)
	GetEnforcedPowerLimit() (uint32, nvml.Return)
	GetClockInfo(nvml.ClockType) (uint32, nvml.Return)
	GetCurrentClocksEventReasons() (uint64, nvml.Return)
	GetCurrentClocksThrottleReasons() (uint64, nvml.Return)
	GetTotalEccErrors(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return)
	GetRemappedRows() (int, int, bool, bool, nvml.Return)
	GetComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
	RegisterEvents(uint64, nvml.EventSet) nvml.Return
}

// device is a GPU that answered when the driver was opened.
type device struct {
	card
	handle nvml.Device // as events name it
	index  int
	name   string
	uuid   string
	fault  gpu.Fault
	detail string
	lacks  map[string]bool // calls that the GPU does not support
	xids   []uint64        // since watch
}

// nvidia is the driver through NVML.
type nvidia struct {
	lib          library
	driver, cuda string
	devices      []*device
	events       nvml.EventSet // nil: none are reported
	eventReasons bool          // the library has the newer name of that call
}

// openDriver loads NVIDIA's library and finds the GPUs.
func openDriver() (driver, gpu.Snapshot) { return openLibrary(nvml.New()) }

func openLibrary(lib library) (driver, gpu.Snapshot) {
	none := gpu.Snapshot{GPUs: []gpu.Reading{}}
	switch ret := lib.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		none.Absent = "NVIDIA's driver is not installed: libnvidia-ml.so.1 is not found"
		return nil, none
	case nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_NO_PERMISSION:
		none.Absent = "NVIDIA's driver cannot be reached: " + lib.ErrorString(ret)
		return nil, none
	default:
		none.Fault, none.Detail = cmp.Or(faultOf(ret), gpu.FaultRefused), lib.ErrorString(ret)
		return nil, none
	}
	n := &nvidia{lib: lib, eventReasons: lib.Extensions().LookupSymbol("nvmlDeviceGetCurrentClocksEventReasons") == nil}
	n.driver, _ = lib.SystemGetDriverVersion()
	if v, ret := lib.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
		n.cuda = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	count, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		none.Fault, none.Detail = cmp.Or(faultOf(ret), gpu.FaultRefused), lib.ErrorString(ret)
		n.close()
		return nil, none
	}
	for i := range count {
		n.devices = append(n.devices, n.find(i))
	}
	return n, gpu.Snapshot{}
}

// find returns a GPU by its index. A call that an older library lacks would end the
// process: its symbol is looked up first.
func (n *nvidia) find(index int) *device {
	d := &device{index: index, lacks: make(map[string]bool)}
	handle, ret := n.lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		d.fault, d.detail = cmp.Or(faultOf(ret), gpu.FaultRefused), n.lib.ErrorString(ret)
		return d
	}
	d.card, d.handle = handle, handle
	for call, symbol := range map[string]string{"remapped rows": "nvmlDeviceGetRemappedRows", "MIG": "nvmlDeviceGetMigMode"} {
		d.lacks[call] = n.lib.Extensions().LookupSymbol(symbol) != nil
	}
	d.ask("name", func() (ret nvml.Return) { d.name, ret = d.GetName(); return ret })
	d.ask("uuid", func() (ret nvml.Return) { d.uuid, ret = d.GetUUID(); return ret })
	return d
}

// faultOf returns the fault that an answer proves; "": none.
func faultOf(ret nvml.Return) gpu.Fault {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		return gpu.FaultLost
	case nvml.ERROR_RESET_REQUIRED:
		return gpu.FaultReset
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return gpu.FaultMismatch
	}
	return ""
}

// ask calls the driver, unless the GPU has a fault or does not support the call, and
// reports success. Other errors pass: the next reading asks again.
func (d *device) ask(call string, f func() nvml.Return) bool {
	if d.fault != "" || d.lacks[call] {
		return false
	}
	switch ret := f(); ret {
	case nvml.SUCCESS:
		return true
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_FUNCTION_NOT_FOUND,
		nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_DEPRECATED:
		d.lacks[call] = true
	default:
		if d.fault = faultOf(ret); d.fault == "" && call == basicCall {
			d.fault, d.detail = gpu.FaultRefused, fmt.Sprintf("%s: %v", call, ret)
		}
	}
	return false
}

// basicCall is answered by each GPU that works.
const basicCall = "memory"

func (n *nvidia) close() { n.lib.Shutdown() }

func (n *nvidia) inventory() gpu.Inventory {
	of := gpu.Inventory{Driver: n.driver, CUDA: n.cuda, GPUs: []gpu.Device{}}
	if len(n.devices) == 0 {
		of.Absent = "the driver has found none"
	}
	for _, d := range n.devices {
		of.GPUs = append(of.GPUs, d.describe())
	}
	return of
}

// describe returns the GPU as the inventory has it.
func (d *device) describe() gpu.Device {
	is := gpu.Device{Index: d.index, Name: d.name, UUID: d.uuid}
	d.ask("PCI", func() nvml.Return {
		info, ret := d.GetPciInfo()
		is.PCI = text(info.BusId[:])
		return ret
	})
	d.ask("memory", func() nvml.Return {
		m, ret := d.GetMemoryInfo()
		is.Memory = int64(m.Total)
		return ret
	})
	d.ask("capability", func() nvml.Return {
		major, minor, ret := d.GetCudaComputeCapability()
		is.Capability = fmt.Sprintf("%d.%d", major, minor)
		return ret
	})
	d.ask("MIG", func() nvml.Return {
		current, _, ret := d.GetMigMode()
		is.MIG = current == nvml.DEVICE_MIG_ENABLE
		return ret
	})
	if is.MIG {
		is.Instances = d.instances()
	}
	for link := range nvml.NVLINK_MAX_LINKS {
		if !d.ask("NVLink", func() nvml.Return {
			state, ret := d.GetNvLinkState(link)
			if ret == nvml.SUCCESS && state == nvml.FEATURE_ENABLED {
				is.NVLinks++
			}
			return ret
		}) {
			break
		}
	}
	is.Fault, is.Missing = d.fault, d.missing()
	return is
}

// missing lists what the GPU does not support, sorted.
func (d *device) missing() (calls []string) {
	for call, lacks := range d.lacks {
		if lacks {
			calls = append(calls, call)
		}
	}
	slices.Sort(calls)
	return calls
}

// instances returns the parts that MIG has made of the GPU.
func (d *device) instances() (all []gpu.Instance) {
	count := 0
	d.ask("instances", func() (ret nvml.Return) { count, ret = d.GetMaxMigDeviceCount(); return ret })
	for i := range count {
		part, ret := d.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS { // a place without an instance
			continue
		}
		is := gpu.Instance{}
		is.UUID, _ = part.GetUUID()
		is.Name, _ = part.GetName()
		if m, ret := part.GetMemoryInfo(); ret == nvml.SUCCESS {
			is.Memory = int64(m.Total)
		}
		all = append(all, is)
	}
	return all
}

// text returns the text of an array of C.
func text[T int8 | uint8](array []T) string {
	var b []byte
	for _, c := range array {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
