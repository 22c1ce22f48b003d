package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/snappy"
)

// The numbers of a chunk of RecordIO (https://github.com/wangkuiyi/recordio),
// which ElasticDL reads and writes.
const (
	chunkMagic = 0x01020304
	chunkBytes = 20 // of its header
)

// maxMessage is how many bytes one message may have.
const maxMessage = maxLine

// messages reads the messages of one file, one by one. The file is one of
//
//	RecordIO  chunks: magic, CRC-32 of the body, compressor, bytes of the body,
//	          records, each a little-endian u32; then the body, compressed: of
//	          each record its length u32 and its bytes
//	TFRecord  records: length u64, masked CRC-32C of that, bytes, masked CRC-32C
//	          of the bytes
type messages struct {
	path   string
	in     *input
	from   *counted
	chunks bool   // it is RecordIO
	chunk  *chunk // nil: none is open
	next   int64  // record
	body   bytes.Buffer
}

// counted is a reader that knows how many bytes were read.
type counted struct {
	*bufio.Reader
	at int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.at += int64(n)
	return n, err
}

// chunk is one chunk of RecordIO.
type chunk struct {
	at   int64 // byte of the file
	raw  io.LimitedReader
	body io.Reader
	sum  hash.Hash32
	want uint32
	left uint32 // records
}

func openMessages(path string) (*messages, error) {
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	m := &messages{path: path, in: in, from: &counted{Reader: bufio.NewReaderSize(in, 1<<16)}}
	start, err := m.from.Peek(12)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		err = fmt.Errorf("%s: %w", path, truncated(err))
	case len(start) == 0:
		err = fmt.Errorf("%s: the file is empty", path)
	case len(start) == 12 && maskedSum(start[:8]) == binary.LittleEndian.Uint32(start[8:]):
		return m, nil
	case len(start) >= 4 && binary.LittleEndian.Uint32(start) == chunkMagic:
		m.chunks = true
		return m, nil
	default:
		err = fmt.Errorf("%s: it starts with %x: want a chunk of RecordIO or a record of a TFRecord file", path, start)
	}
	in.Close()
	return nil, err
}

// maskedSum is the checksum of TFRecord files.
func maskedSum(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// read returns the next message, valid until the one after, or io.EOF.
func (m *messages) read() ([]byte, error) {
	var text []byte
	var err error
	if m.chunks {
		text, err = m.readChunked()
	} else {
		text, err = m.readRecord()
	}
	if err == nil {
		m.next++
	}
	return text, err
}

// errorf returns an error about the record that is read.
func (m *messages) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: record %d: %w", m.path, m.next, fmt.Errorf(format, args...))
}

// readRecord reads a record of a TFRecord file.
func (m *messages) readRecord() ([]byte, error) {
	at := m.from.at
	var head [12]byte
	if _, err := io.ReadFull(m.from, head[:]); errors.Is(err, io.EOF) {
		return nil, io.EOF
	} else if err != nil {
		return nil, m.errorf("at byte %d: %w", at, truncated(err))
	}
	if maskedSum(head[:8]) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, m.errorf("at byte %d: its length fails its checksum: the file is damaged", at)
	}
	text, err := m.take(m.from, binary.LittleEndian.Uint64(head[:8]))
	var sum [4]byte
	if err == nil {
		_, err = io.ReadFull(m.from, sum[:])
	}
	if err != nil {
		return nil, m.errorf("at byte %d: %w", at, truncated(err))
	}
	if maskedSum(text) != binary.LittleEndian.Uint32(sum[:]) {
		return nil, m.errorf("at byte %d: it fails its checksum: the file is damaged", at)
	}
	return text, nil
}

// take reads n bytes. A length is not believed: room is made while bytes come.
func (m *messages) take(from io.Reader, n uint64) ([]byte, error) {
	if n > maxMessage {
		return nil, fmt.Errorf("its length is %d bytes: want at most %d", n, maxMessage)
	}
	m.body.Reset()
	if _, err := io.CopyN(&m.body, from, int64(n)); err != nil {
		return nil, err
	}
	return m.body.Bytes(), nil
}

// readChunked reads a record of RecordIO.
func (m *messages) readChunked() ([]byte, error) {
	for m.chunk == nil || m.chunk.left == 0 {
		if m.chunk != nil {
			if err := m.chunk.finish(); err != nil {
				return nil, m.chunkError(err)
			}
		}
		if err := m.openChunk(); err != nil {
			return nil, err
		}
	}
	var length [4]byte
	_, err := io.ReadFull(m.chunk.body, length[:])
	var text []byte
	if err == nil {
		text, err = m.take(m.chunk.body, uint64(binary.LittleEndian.Uint32(length[:])))
	}
	if err != nil {
		return nil, m.chunkError(err)
	}
	m.chunk.left--
	return text, nil
}

// openChunk reads the header of the next chunk.
func (m *messages) openChunk() error {
	m.chunk = nil
	at := m.from.at
	var head [chunkBytes]byte
	if _, err := io.ReadFull(m.from, head[:]); errors.Is(err, io.EOF) {
		return io.EOF
	} else if err != nil {
		return m.errorf("chunk at byte %d: %w", at, truncated(err))
	}
	number := func(i int) uint32 { return binary.LittleEndian.Uint32(head[4*i:]) }
	if number(0) != chunkMagic {
		return m.errorf("chunk at byte %d: it starts with %x, want 04030201", at, head[:4])
	}
	c := &chunk{at: at, sum: crc32.NewIEEE(), want: number(1), left: number(4)}
	c.raw = io.LimitedReader{R: m.from, N: int64(number(3))}
	m.chunk = c
	body := io.TeeReader(&c.raw, c.sum)
	switch compressor := number(2); compressor {
	case 0:
		c.body = body
	case 1:
		c.body = snappy.NewReader(body)
	case 2:
		z, err := gzip.NewReader(body)
		if err != nil {
			return m.chunkError(err)
		}
		c.body = z
	default:
		return m.errorf("chunk at byte %d: compressor %d: want 0 (none), 1 (snappy) or 2 (gzip)", at, compressor)
	}
	return nil
}

// finish checks that nothing follows the last record of the chunk, and its sum.
func (c *chunk) finish() error {
	n, err := io.ReadFull(c.body, make([]byte, 1))
	switch {
	case n > 0:
		return errors.New("its body has more bytes than the records that its header claims")
	case !errors.Is(err, io.EOF):
		return err
	}
	return c.check()
}

var errSum = errors.New("it fails its checksum: the file is damaged")

// check reads the rest of the body, and compares its checksum.
func (c *chunk) check() error {
	if _, err := io.Copy(io.Discard, io.TeeReader(&c.raw, c.sum)); err != nil {
		return err
	}
	switch {
	case c.raw.N > 0:
		return io.ErrUnexpectedEOF
	case c.sum.Sum32() != c.want:
		return errSum
	}
	return nil
}

// chunkError describes what a chunk has wrong: its checksum says whether that
// was written so.
func (m *messages) chunkError(err error) error {
	found := m.chunk.check()
	switch {
	case errors.Is(found, errSum):
		err = found
	case found != nil:
		err = truncated(found)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("its body ends before the records that its header claims")
	}
	return m.errorf("chunk at byte %d: %w", m.chunk.at, err)
}

func (m *messages) close() error { return m.in.Close() }
