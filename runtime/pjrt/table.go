package pjrt

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unsafe"
)

// function is the place of a function in PJRT_Api's table, which grows only at
// its end.
type function int

// The functions that this package calls.
const (
	errorDestroy             function = 0
	errorMessage             function = 1
	errorGetCode             function = 2
	pluginInitialize         function = 3
	pluginAttributes         function = 4
	eventDestroy             function = 5
	eventAwait               function = 8
	eventOnReady             function = 9
	clientCreate             function = 10
	clientDestroy            function = 11
	clientPlatformName       function = 12
	clientPlatformVersion    function = 14
	clientAddressableDevices function = 16
	clientCompile            function = 20
	clientBufferFromHost     function = 22
	descriptionKind          function = 26
	deviceGetDescription     function = 29
	deviceMemoryStats        function = 34
	executableDestroy        function = 40
	executableNumOutputs     function = 44
	executableSerialize      function = 49
	loadedDestroy            function = 50
	loadedGetExecutable      function = 51
	loadedExecute            function = 55
	executableDeserialize    function = 56
	bufferDestroy            function = 58
	bufferIsDeleted          function = 68
	bufferToHost             function = 70
	bufferReadyEvent         function = 72
	compiledMemoryStats      function = 96
	clientDmaMap             function = 110
	clientDmaUnmap           function = 111
)

// headerFunctions is the number of functions in version 0.104's table. No place
// behind it is called.
const headerFunctions = 135

// tableOffset is where the functions begin in PJRT_Api: behind its size, its
// extensions and a PJRT_Api_Version.
const tableOffset = 40

// entry describes a function of the table.
type entry struct {
	function function
	name     string
	size     uintptr // of this package's arguments, without the spare bytes
	silent   bool    // it reports no sizes
}

func sizeOf[T any]() uintptr { var t T; return unsafe.Sizeof(t) }

// used returns all functions that this package calls.
func used() []entry {
	return []entry{
		{errorDestroy, "PJRT_Error_Destroy", sizeOf[objectArgs](), true},
		{errorMessage, "PJRT_Error_Message", sizeOf[textArgs](), true},
		{errorGetCode, "PJRT_Error_GetCode", sizeOf[resultArgs](), false},
		{pluginInitialize, "PJRT_Plugin_Initialize", sizeOf[head](), true},
		{pluginAttributes, "PJRT_Plugin_Attributes", sizeOf[attributesArgs](), false},
		{eventDestroy, "PJRT_Event_Destroy", sizeOf[objectArgs](), false},
		{eventAwait, "PJRT_Event_Await", sizeOf[objectArgs](), false},
		{eventOnReady, "PJRT_Event_OnReady", sizeOf[onReadyArgs](), false},
		{clientCreate, "PJRT_Client_Create", sizeOf[clientCreateArgs](), false},
		{clientDestroy, "PJRT_Client_Destroy", sizeOf[objectArgs](), false},
		{clientPlatformName, "PJRT_Client_PlatformName", sizeOf[textArgs](), false},
		{clientPlatformVersion, "PJRT_Client_PlatformVersion", sizeOf[textArgs](), false},
		{clientAddressableDevices, "PJRT_Client_AddressableDevices", sizeOf[textArgs](), false},
		{clientCompile, "PJRT_Client_Compile", sizeOf[compileArgs](), false},
		{clientBufferFromHost, "PJRT_Client_BufferFromHostBuffer", sizeOf[fromHostArgs](), false},
		{descriptionKind, "PJRT_DeviceDescription_Kind", sizeOf[textArgs](), false},
		{deviceGetDescription, "PJRT_Device_GetDescription", sizeOf[resultArgs](), false},
		{deviceMemoryStats, "PJRT_Device_MemoryStats", sizeOf[deviceMemoryArgs](), false},
		{executableDestroy, "PJRT_Executable_Destroy", sizeOf[objectArgs](), false},
		{executableNumOutputs, "PJRT_Executable_NumOutputs", sizeOf[resultArgs](), false},
		{executableSerialize, "PJRT_Executable_Serialize", sizeOf[serializeArgs](), false},
		{loadedDestroy, "PJRT_LoadedExecutable_Destroy", sizeOf[objectArgs](), false},
		{loadedGetExecutable, "PJRT_LoadedExecutable_GetExecutable", sizeOf[resultArgs](), false},
		{loadedExecute, "PJRT_LoadedExecutable_Execute", sizeOf[executeArgs](), false},
		{executableDeserialize, "PJRT_Executable_DeserializeAndLoad", sizeOf[deserializeArgs](), false},
		{bufferDestroy, "PJRT_Buffer_Destroy", sizeOf[objectArgs](), false},
		{bufferIsDeleted, "PJRT_Buffer_IsDeleted", sizeOf[resultArgs](), false},
		{bufferToHost, "PJRT_Buffer_ToHostBuffer", sizeOf[toHostArgs](), false},
		{bufferReadyEvent, "PJRT_Buffer_ReadyEvent", sizeOf[resultArgs](), false},
		{compiledMemoryStats, "PJRT_Executable_GetCompiledMemoryStats", sizeOf[compiledMemoryArgs](), false},
		{clientDmaMap, "PJRT_Client_DmaMap", sizeOf[dmaArgs](), false},
		{clientDmaUnmap, "PJRT_Client_DmaUnmap", sizeOf[dmaArgs](), false},
	}
}

// checkTable reports a function that the plugin lacks.
func (p *Plugin) checkTable() error {
	var missing []string
	for _, e := range used() {
		if int(e.function) >= len(p.table) || p.table[e.function] == 0 {
			missing = append(missing, e.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: version %d.%d of the PJRT interface, with %d functions, lacks %s",
			ErrTooOld, p.major, p.minor, len(p.table), strings.Join(missing, ", "))
	}
	return nil
}

// checkSizes asks functions for the sizes of their arguments, by calls with
// size 0: a plugin checks the size before it reads anything else and names the
// size that it demands. A plugin that answers in other words is taken as it is.
func (p *Plugin) checkSizes() error {
	demand := regexp.MustCompile(`size: expected (?:at least )?(\d+)`)
	for _, e := range used() {
		if e.silent {
			continue
		}
		room := new([64]uint64)
		err := p.failure(invoke(p.table[e.function], unsafe.Pointer(room)))
		if err == nil {
			continue
		}
		m := demand.FindStringSubmatch(err.Error())
		if m == nil {
			continue
		}
		size, err := strconv.ParseUint(m[1], 10, 32)
		if err == nil && uintptr(size) > e.size+spare {
			return fmt.Errorf("%w: version %d.%d of the PJRT interface wants %d bytes of arguments for %s, and gets %d",
				ErrTooNew, p.major, p.minor, size, e.name, e.size+spare)
		}
	}
	return nil
}
