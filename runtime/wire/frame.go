package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"unsafe"
)

// A frame is
//
//	magic u16 | protocol u8 | type u8 | head bytes u32 | body bytes u32 | CRC-32C u32 of the head
//
// little-endian, then head (JSON) and body (float32s, little-endian). The body has no
// checksum: connections that leave the machine have TLS (see secure), which checks each
// byte, and within a machine bytes are copied from memory to memory. Through a Unix
// socket the two highest bits of the type are flags of shared memory: see segment.
const (
	magic       = 0x6b53 // "Sk"
	protocol    = 4
	headerBytes = 16

	// MaxHead bounds the JSON part: the largest is a server's layout.
	MaxHead = 8 << 20
	// MaxBody bounds the values of one frame, in elements.
	MaxBody = 1 << 28
	// maxHello bounds what is read from somebody who has not shown the token.
	maxHello = 4 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type header struct {
	kind       Type
	head, body uint32 // bytes
	sum        uint32
}

func (h header) put(to []byte) {
	binary.LittleEndian.PutUint16(to[0:], magic)
	to[2], to[3] = protocol, byte(h.kind)
	binary.LittleEndian.PutUint32(to[4:], h.head)
	binary.LittleEndian.PutUint32(to[8:], h.body)
	binary.LittleEndian.PutUint32(to[12:], h.sum)
}

// readHeader refuses what is no frame, or one of more than maxHead and maxBody
// bytes, before anything is allocated for it.
func readHeader(r io.Reader, buffer []byte, maxHead, maxBody uint32) (header, error) {
	if _, err := io.ReadFull(r, buffer[:headerBytes]); err != nil {
		return header{}, err
	}
	if got := binary.LittleEndian.Uint16(buffer); got != magic {
		return header{}, fmt.Errorf("read frame: not a frame of stoke (starts with %#04x)", got)
	}
	if buffer[2] != protocol {
		return header{}, fmt.Errorf("read frame: protocol %d, this program speaks %d", buffer[2], protocol)
	}
	h := header{
		kind: Type(buffer[3]),
		head: binary.LittleEndian.Uint32(buffer[4:]),
		body: binary.LittleEndian.Uint32(buffer[8:]),
		sum:  binary.LittleEndian.Uint32(buffer[12:]),
	}
	if h.head > maxHead || h.body > maxBody || h.body%4 != 0 {
		return header{}, fmt.Errorf("read frame: %s of %d+%d bytes is over the limit of %d+%d", h.kind, h.head, h.body, maxHead, maxBody)
	}
	return h, nil
}

// raw is the memory of v as bytes. Every platform that stoke builds for is
// little-endian (a test holds it), so that values travel without conversion.
func raw(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
}
