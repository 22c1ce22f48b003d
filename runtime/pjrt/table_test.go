package pjrt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/runtime/pjrt/pjrttest"
)

// TestTheTableIsThatOfTheHeader compares places and sizes with XLA's
// pjrt_c_api.h of version 0.104, from which a compiler computed the numbers.
func TestTheTableIsThatOfTheHeader(t *testing.T) {
	header := map[string][2]uintptr{
		"PJRT_Error_Destroy": {0, 24}, "PJRT_Error_Message": {1, 40}, "PJRT_Error_GetCode": {2, 28},
		"PJRT_Plugin_Initialize": {3, 16}, "PJRT_Plugin_Attributes": {4, 32},
		"PJRT_Event_Destroy": {5, 24}, "PJRT_Event_Await": {8, 24}, "PJRT_Event_OnReady": {9, 40},
		"PJRT_Client_Create": {10, 88}, "PJRT_Client_Destroy": {11, 24}, "PJRT_Client_PlatformName": {12, 40},
		"PJRT_Client_PlatformVersion": {14, 40}, "PJRT_Client_AddressableDevices": {16, 40}, "PJRT_Client_Compile": {20, 56},
		"PJRT_Client_BufferFromHostBuffer": {22, 120}, "PJRT_DeviceDescription_Kind": {26, 40},
		"PJRT_Device_GetDescription": {29, 32}, "PJRT_Device_MemoryStats": {34, 185},
		"PJRT_Executable_Destroy": {40, 24}, "PJRT_Executable_NumOutputs": {44, 32}, "PJRT_Executable_Serialize": {49, 56},
		"PJRT_LoadedExecutable_Destroy": {50, 24}, "PJRT_LoadedExecutable_GetExecutable": {51, 32},
		"PJRT_LoadedExecutable_Execute": {55, 80}, "PJRT_Executable_DeserializeAndLoad": {56, 64},
		"PJRT_Buffer_Destroy": {58, 24}, "PJRT_Buffer_IsDeleted": {68, 25}, "PJRT_Buffer_ToHostBuffer": {70, 56},
		"PJRT_Buffer_ReadyEvent": {72, 32}, "PJRT_Executable_GetCompiledMemoryStats": {96, 144},
		"PJRT_Client_DmaMap": {110, 40}, "PJRT_Client_DmaUnmap": {111, 32},
	}
	list := used()
	if len(list) != len(header) {
		t.Errorf("%d functions are used, and %d are in the header's list", len(list), len(header))
	}
	for _, e := range list {
		want, ok := header[e.name]
		// Go rounds sizes up to words.
		if !ok || uintptr(e.function) != want[0] || e.size < want[1] || (e.size > want[1]+7 && e.function != clientDmaUnmap) {
			t.Errorf("%s has place %d and %d bytes, want %v", e.name, e.function, e.size, want)
		}
		if e.function >= headerFunctions {
			t.Errorf("%s is behind the end of the header's table", e.name)
		}
	}
	if got := sizeOf[namedValue](); got != 56 {
		t.Errorf("a named value has %d bytes, want 56", got)
	}
	if got := sizeOf[program](); got != 48 {
		t.Errorf("a program has %d bytes, want 48", got)
	}
	if got := sizeOf[executeOptions]() - spare; got != 120 {
		t.Errorf("the options of a run have %d bytes, want 120", got)
	}
}

func TestPluginsThatDoNotFitAreRefused(t *testing.T) {
	for fault, want := range map[string]string{
		"short":  "too old: version 0.115 of the PJRT interface, with 110 functions, lacks PJRT_Client_DmaMap, PJRT_Client_DmaUnmap",
		"larger": "too new: version 0.115 of the PJRT interface wants 400 bytes of arguments for PJRT_Client_Create, and gets 152",
		"major":  "too new: it has version 1.115 of the PJRT interface, and stoke drives 0.x",
	} {
		t.Run(fault, func(t *testing.T) {
			d, err := openDouble(t, fault)
			wants(t, err, want)
			wants(t, err, d.path)
		})
	}
	t.Run("library", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "library.so")
		pjrttest.BuildLibrary(t, path)
		_, err := Open(path)
		wants(t, err, "GetPjrtApi")
	})
	t.Run("text", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "text.so")
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		wants(t, err, path)
	})
}

// An older plugin that has all functions of the table is driven: its structs are
// shorter.
func TestAnOlderPluginRuns(t *testing.T) {
	d, err := openDouble(t, "old")
	if err != nil {
		t.Fatal(err)
	}
	if major, minor := d.Version(); major != 0 || minor != 90 || len(d.table) != 112 {
		t.Errorf("got version %d.%d with %d functions", major, minor, len(d.table))
	}
	c := must(d.NewClient(Options{}))(t)
	b := must(c.Upload(F32, []int64{1}, floats(1)))(t)
	if err := b.Wait(); err != nil {
		t.Error(err)
	}
	closeAll(t, b, c)
}

func TestClientsThatDoNotStart(t *testing.T) {
	for fault, want := range map[string]string{
		"clientless": "NOT_FOUND: no supported devices found for platform CUDA",
		"deviceless": "the plugin found no device",
	} {
		t.Run(fault, func(t *testing.T) {
			d, err := openDouble(t, fault)
			if err != nil {
				t.Fatal(err)
			}
			_, err = d.NewClient(Options{})
			wants(t, err, want)
		})
	}
}
