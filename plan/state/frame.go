package state

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A journal is a sequence of frames. A frame is, little-endian,
//
//	length of the payload   4 bytes
//	sequence number         8 bytes, 0 for the first, then one more each
//	kind                    4 bytes
//	CRC-32C of these        4 bytes
//	payload                 JSON
//	CRC-32C of the payload  4 bytes
//
// The head has a checksum of its own, so that a length that was damaged is
// never taken for a record that was torn.
const (
	headLen    = 20
	tailLen    = 4
	maxPayload = 1 << 30
)

// kind is the kind of a frame's payload.
type kind uint32

const (
	kindHeader kind = 1 + iota // the first frame: which snapshot the journal belongs to
	kindIntent
	kindResult
	kindFold // the journal is about to be folded into a certain snapshot
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame adds a frame to dst.
func appendFrame(dst []byte, seq uint64, k kind, payload []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = binary.LittleEndian.AppendUint64(dst, seq)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(k))
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
	dst = append(dst, payload...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(payload, castagnoli))
}

// frame is one frame of a journal that was read.
type frame struct {
	seq     uint64
	kind    kind
	at      int // offset of the payload
	payload []byte
}

// splitFrames checks a journal and takes it apart. whole is how much of it
// holds complete frames; what follows is one frame that was torn.
func splitFrames(b []byte) (frames []frame, whole int, err *syntaxError) {
	for whole < len(b) {
		seq := uint64(len(frames))
		rest := b[whole:]
		if len(rest) < headLen {
			return frames, whole, checkTorn(rest, whole, seq)
		}
		if crc32.Checksum(rest[:headLen-4], castagnoli) != binary.LittleEndian.Uint32(rest[headLen-4:]) {
			return nil, 0, &syntaxError{whole, fmt.Sprintf("the head of record %d does not match its checksum", seq)}
		}
		n := binary.LittleEndian.Uint32(rest)
		f := frame{binary.LittleEndian.Uint64(rest[4:]), kind(binary.LittleEndian.Uint32(rest[12:])), whole + headLen, nil}
		if f.seq != seq {
			return nil, 0, &syntaxError{whole, fmt.Sprintf("record %d is in the place of record %d", f.seq, seq)}
		}
		if n > maxPayload {
			return nil, 0, &syntaxError{whole, fmt.Sprintf("record %d claims to be %d bytes long", seq, n)}
		}
		size := headLen + int(n) + tailLen
		if len(rest) < size {
			return frames, whole, nil
		}
		f.payload = rest[headLen : headLen+n : headLen+n]
		if crc32.Checksum(f.payload, castagnoli) != binary.LittleEndian.Uint32(rest[size-tailLen:]) {
			return nil, 0, &syntaxError{whole, fmt.Sprintf("record %d does not match its checksum", seq)}
		}
		frames = append(frames, f)
		whole += size
	}
	return frames, whole, nil
}

// checkTorn reports a rest, shorter than a head, that no torn record begins
// with.
func checkTorn(rest []byte, at int, seq uint64) *syntaxError {
	want := appendFrame(nil, seq, 0, nil)
	for i := 4; i < len(rest) && i < 12; i++ {
		if rest[i] != want[i] {
			return &syntaxError{at, fmt.Sprintf("found something that is not record %d", seq)}
		}
	}
	return nil
}
