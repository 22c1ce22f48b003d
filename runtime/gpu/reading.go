package gpu

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Inventory has the GPUs of a machine, and what does not change while they work.
type Inventory struct {
	Driver string   `json:"driver,omitempty"` // version
	CUDA   string   `json:"cuda,omitempty"`   // the newest version that the driver supports
	GPUs   []Device `json:"gpus"`
	Absent string   `json:"absent,omitempty"` // why the machine has no GPUs
	Fault  Fault    `json:"fault,omitempty"`  // of the driver
	Detail string   `json:"detail,omitempty"` // of the fault
}

// Device is one GPU.
type Device struct {
	Index      int        `json:"index"` // as NVML numbers them
	Name       string     `json:"name,omitempty"`
	UUID       string     `json:"uuid,omitempty"`
	PCI        string     `json:"pci,omitempty"`        // bus address
	Memory     int64      `json:"memory_bytes"`         // 0: unknown
	Capability string     `json:"capability,omitempty"` // of CUDA: 9.0
	MIG        bool       `json:"mig"`                  // it is divided into instances
	Instances  []Instance `json:"instances,omitempty"`  // of MIG
	NVLinks    int        `json:"nvlinks"`              // links that are active
	Fault      Fault      `json:"fault,omitempty"`      // why it does not answer
	Missing    []string   `json:"unsupported,omitempty"`
}

// Instance is a part of a GPU that MIG makes a device of its own.
type Instance struct {
	Name   string `json:"name,omitempty"`
	UUID   string `json:"uuid"`
	Memory int64  `json:"memory_bytes"`
}

// Fault is why a driver or a GPU gives no readings.
type Fault string

const (
	FaultLost     Fault = "lost"     // NVML_ERROR_GPU_IS_LOST, and what a GPU answers that is not on the bus
	FaultReset    Fault = "reset"    // NVML_ERROR_RESET_REQUIRED
	FaultMismatch Fault = "mismatch" // NVML_ERROR_LIB_RM_VERSION_MISMATCH: the driver's library and kernel module differ
	FaultSilent   Fault = "silent"   // the driver does not answer in time
	FaultRefused  Fault = "refused"  // any other error of the driver
)

// Snapshot has the readings of all GPUs of a machine at one time: a line of
// `stoke-gpu watch`.
type Snapshot struct {
	At     time.Time `json:"at,omitzero"`
	Driver string    `json:"driver,omitempty"`
	CUDA   string    `json:"cuda,omitempty"`
	GPUs   []Reading `json:"gpus"`
	Absent string    `json:"absent,omitempty"` // why the machine has no GPUs
	Fault  Fault     `json:"fault,omitempty"`  // of the driver, which gives no readings
	Detail string    `json:"detail,omitempty"` // of the fault
}

// Reading is what one GPU reports of itself.
type Reading struct {
	Index int    `json:"index"`
	UUID  string `json:"uuid,omitempty"`
	Name  string `json:"name,omitempty"`
	// Values has numbers by the key of their row in Table. A number that the GPU does
	// not support is absent.
	Values    map[string]float64 `json:"values,omitempty"`
	Throttle  []string           `json:"throttle,omitempty"`  // names of reasons, see Reasons
	XIDs      []uint64           `json:"xids,omitempty"`      // events since the watch began
	Processes []Process          `json:"processes,omitempty"` // that compute on it
	Fault     Fault              `json:"fault,omitempty"`     // why it does not answer
	Detail    string             `json:"detail,omitempty"`    // of the fault
	Measured  *Measured          `json:"measured,omitempty"`  // only of a check; nil: nothing was tried
}

// Process is a process that computes on a GPU.
type Process struct {
	PID    int   `json:"pid"` // in a container: as the host numbers it
	Memory int64 `json:"memory_bytes,omitempty"`
}

// The keys of readings that rules and tables name.
const (
	Utilization   = "utilization_percent"
	MemoryUsed    = "memory_used_bytes"
	MemoryTotal   = "memory_total_bytes"
	Temperature   = "temperature_celsius"
	Power         = "power_watts"
	PowerLimit    = "power_limit_watts"
	SMClock       = "sm_clock_mhz"
	MemoryClock   = "memory_clock_mhz"
	Corrected     = "ecc_corrected"
	Uncorrected   = "ecc_uncorrected"
	RemappedSoft  = "rows_remapped_corrected"
	RemappedHard  = "rows_remapped_uncorrected"
	RemapPending  = "remap_pending"
	RemapFailed   = "remap_failed"
	MemoryTraffic = "memory_traffic_percent"
)

// Row is a number of a reading.
type Row struct {
	Key   string
	Unit  string
	NVML  string // function, and the field of its answer
	SMI   string // paths in the XML of nvidia-smi, the first one with a number counts
	About string
	// Series is true for a curve of a run. Other numbers are noted where they are
	// not 0: they are 0 as long as a GPU is fit.
	Series bool
}

// Table returns the numbers of a reading, in the order of tables for people.
func Table() []Row {
	return []Row{
		{Utilization, "%", "nvmlDeviceGetUtilizationRates: gpu", "utilization/gpu_util", "share of time with a kernel running", true},
		{MemoryTraffic, "%", "nvmlDeviceGetUtilizationRates: memory", "utilization/memory_util",
			"share of time with memory being read or written", true},
		{MemoryUsed, "bytes", "nvmlDeviceGetMemoryInfo: used", "fb_memory_usage/used",
			"memory in use, with what the driver reserves", true},
		{MemoryTotal, "bytes", "nvmlDeviceGetMemoryInfo: total", "fb_memory_usage/total", "memory", true},
		{Temperature, "°C", "nvmlDeviceGetTemperature: NVML_TEMPERATURE_GPU", "temperature/gpu_temp",
			"temperature of the chip", true},
		{Power, "W", "nvmlDeviceGetPowerUsage",
			"gpu_power_readings/power_draw|gpu_power_readings/instant_power_draw|power_readings/power_draw",
			"power that the board takes", true},
		{PowerLimit, "W", "nvmlDeviceGetEnforcedPowerLimit",
			"gpu_power_readings/current_power_limit|power_readings/enforced_power_limit",
			"power that it may take", true},
		{SMClock, "MHz", "nvmlDeviceGetClockInfo: NVML_CLOCK_SM", "clocks/sm_clock", "clock of the multiprocessors", true},
		{MemoryClock, "MHz", "nvmlDeviceGetClockInfo: NVML_CLOCK_MEM", "clocks/mem_clock", "clock of the memory", true},
		{Corrected, "errors", "nvmlDeviceGetTotalEccErrors: corrected, volatile", "ecc_errors/volatile/*_correctable",
			"memory errors that ECC has corrected since the driver was loaded", false},
		{Uncorrected, "errors", "nvmlDeviceGetTotalEccErrors: uncorrected, volatile", "ecc_errors/volatile/*_uncorrectable*",
			"memory errors that ECC could not correct since the driver was loaded", false},
		{RemappedSoft, "rows", "nvmlDeviceGetRemappedRows: corrRows", "remapped_rows/remapped_row_corr",
			"rows of memory that spare rows replace, after corrected errors", false},
		{RemappedHard, "rows", "nvmlDeviceGetRemappedRows: uncRows", "remapped_rows/remapped_row_unc",
			"rows of memory that spare rows replace, after uncorrected errors", false},
		{RemapPending, "1 = yes", "nvmlDeviceGetRemappedRows: isPending", "remapped_rows/remapped_row_pending",
			"a row is replaced at the next reset of the GPU", false},
		{RemapFailed, "1 = yes", "nvmlDeviceGetRemappedRows: failureOccurred", "remapped_rows/remapped_row_failure",
			"a row could not be replaced: no spare row is left", false},
	}
}

// Reason is why a GPU runs at a lower clock.
type Reason struct {
	Name  string
	Bit   uint64 // of nvmlDeviceGetCurrentClocksEventReasons
	NVML  string // name after nvmlClocks
	SMI   string // element of clocks_event_reasons, after its prefix
	About string
	Rule  string // that it breaks; "": it is usual
}

// Reasons returns the reasons for lower clocks.
func Reasons() []Reason {
	return []Reason{
		{"idle", 0x1, "EventReasonGpuIdle", "gpu_idle", "nothing runs", ""},
		{"application_clocks", 0x2, "EventReasonApplicationsClocksSetting", "applications_clocks_setting",
			"an administrator set the clocks", ""},
		{"power_cap", 0x4, "EventReasonSwPowerCap", "sw_power_cap", "it takes all the power that it may: usual under load", ""},
		{"hardware_slowdown", 0x8, "ThrottleReasonHwSlowdown", "hw_slowdown", "the hardware halved the clocks or more", RuleSlowdown},
		{"sync_boost", 0x10, "EventReasonSyncBoost", "sync_boost", "it keeps the pace of other GPUs", ""},
		{"software_thermal", 0x20, "EventReasonSwThermalSlowdown", "sw_thermal_slowdown",
			"the driver cools the chip or its memory", RuleThermal},
		{"hardware_thermal", 0x40, "ThrottleReasonHwThermalSlowdown", "hw_thermal_slowdown", "the hardware cools the chip", RuleThermal},
		{"power_brake", 0x80, "ThrottleReasonHwPowerBrakeSlowdown", "hw_power_brake_slowdown",
			"the power supply asks for less", RulePower},
		{"display_clocks", 0x100, "EventReasonDisplayClockSetting", "display_clocks_setting", "a display limits the clocks", ""},
		{"board_limit", 0x200, "EventReasonBoardLimit", "board_limit", "the board limits the clocks", ""},
		{"reliability", 0x400, "EventReasonReliability", "reliability", "the chip limits its voltage", ""},
	}
}

// ReasonNames returns the names of reasons in a set of bits.
func ReasonNames(bits uint64) (names []string) {
	for _, r := range Reasons() {
		if bits&r.Bit != 0 {
			names = append(names, r.Name)
		}
	}
	return names
}

// Limits of readings that another process has sent.
const (
	maxGPUs   = 64
	maxText   = 200
	maxEvents = 100
)

// Validate checks a snapshot that another process has sent.
func (s *Snapshot) Validate() error {
	if len(s.GPUs) > maxGPUs {
		return fmt.Errorf("readings of %d GPUs", len(s.GPUs))
	}
	for _, text := range []string{s.Driver, s.CUDA, s.Absent, string(s.Fault), s.Detail} {
		if len(text) > maxText {
			return errors.New("a text is too long")
		}
	}
	return ValidateReadings(s.GPUs)
}

// ValidateReadings checks readings that another process has sent.
func ValidateReadings(all []Reading) error {
	if len(all) > maxGPUs {
		return fmt.Errorf("readings of %d GPUs", len(all))
	}
	for i := range all {
		if err := all[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reading) validate() error {
	if r.Index < 0 || r.Index > math.MaxInt16 {
		return errors.New("index of a GPU out of range")
	}
	for _, text := range append([]string{r.UUID, r.Name, string(r.Fault), r.Detail}, r.Throttle...) {
		if len(text) > maxText {
			return errors.New("a text of a GPU is too long")
		}
	}
	if len(r.Throttle) > maxEvents || len(r.XIDs) > maxEvents || len(r.Processes) > 100*maxEvents {
		return errors.New("too many events or processes of a GPU")
	}
	if r.Measured != nil {
		if err := r.Measured.Validate(); err != nil {
			return err
		}
	}
	rows := Table()
	for key, v := range r.Values {
		if !slices.ContainsFunc(rows, func(row Row) bool { return row.Key == key }) {
			return fmt.Errorf("unknown reading %.40q", key)
		}
		if math.IsNaN(v) || v < 0 || v > math.MaxInt64 {
			return fmt.Errorf("%s of a GPU is out of range", key)
		}
	}
	return nil
}

// Brief returns a reading as a run's history has it: curves, and other numbers that
// are not 0.
func (r Reading) Brief() Reading {
	values := make(map[string]float64)
	for _, row := range Table() {
		if v, ok := r.Values[row.Key]; ok && (row.Series || v != 0) {
			values[row.Key] = v
		}
	}
	r.Values, r.Name, r.Processes, r.Measured = values, "", nil, nil
	return r
}

// Brief returns a snapshot as a run's history has it.
func (s Snapshot) Brief() Snapshot {
	brief := Snapshot{Absent: s.Absent, Fault: s.Fault, Detail: s.Detail}
	for _, r := range s.GPUs {
		brief.GPUs = append(brief.GPUs, r.Brief())
	}
	return brief
}

// Merge returns one reading for two of a GPU, the means of so many samples; the
// first one is older. Numbers that are not curves only rise, so the newest one counts.
func Merge(a Reading, samples int64, b Reading, more int64) Reading {
	both, share := b, float64(more)/float64(samples+more)
	both.Values = make(map[string]float64)
	for _, row := range Table() {
		x, has := a.Values[row.Key]
		y, hasToo := b.Values[row.Key]
		switch {
		case has && hasToo && row.Series:
			both.Values[row.Key] = x + (y-x)*share
		case hasToo:
			both.Values[row.Key] = y
		case has && row.Series:
			both.Values[row.Key] = x
		}
	}
	both.XIDs = unite(a.XIDs, b.XIDs)
	both.Throttle = unite(a.Throttle, b.Throttle)
	if both.Fault == "" {
		both.Fault, both.Detail = a.Fault, a.Detail
	}
	return both
}

func unite[T string | uint64](a, b []T) []T {
	all := slices.Concat(a, b)
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.Clip(all[:min(len(all), maxEvents)])
}
