//go:build e2e && linux

package lab

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Module makes a kernel module's file, as far as modinfo reads it: an ELF object
// with a section .modinfo and nothing else. An empty signer is an unsigned
// module.
func Module(name, version, license, signer string) string {
	var info bytes.Buffer
	for _, f := range [][2]string{{"version", version}, {"license", license}, {"signer", signer}, {"name", name}, {"vermagic", "stand-in SMP mod_unload "}} {
		if f[1] != "" {
			fmt.Fprintf(&info, "%s=%s\x00", f[0], f[1])
		}
	}
	const names = "\x00.modinfo\x00.shstrtab\x00"
	const header, section = 64, 64 // bytes, in 64-bit objects
	at := uint64(header + info.Len() + len(names))
	at = (at + 7) &^ 7

	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			_ = binary.Write(&b, binary.LittleEndian, x) // a buffer takes everything
		}
	}
	b.WriteString("\x7fELF\x02\x01\x01")       // 64 bits, little endian
	b.Write(make([]byte, 9))                   // padding
	put(uint16(1), uint16(62), uint32(1))      // relocatable, x86-64
	put(uint64(0), uint64(0), at, uint32(0))   // entry, program headers, section headers, flags
	put(uint16(header), uint16(0), uint16(0))  // no program headers
	put(uint16(section), uint16(3), uint16(2)) // three sections, the last one holds names
	b.Write(info.Bytes())
	b.WriteString(names)
	b.Write(make([]byte, int(at)-b.Len()))
	entry := func(name, kind uint32, offset, size uint64) {
		put(name, kind, uint64(0), uint64(0), offset, size, uint32(0), uint32(0), uint64(1), uint64(0))
	}
	entry(0, 0, 0, 0)
	entry(1, 1, header, uint64(info.Len()))                     // PROGBITS
	entry(10, 3, uint64(header+info.Len()), uint64(len(names))) // STRTAB
	return b.String()
}
