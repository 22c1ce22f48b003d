package object

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A segment is a line of text and the records that follow it:
//
//	stoke-journal 1 <journal> <number> <offset> <length> <writer>\n
//
// The first segment of a journal has a name of its own, so that there can be
// one journal only, and says what the journal is called; the others have that
// in their names. Leftovers of an earlier journal are thus never taken for a
// part of this one.
const (
	segmentMagic = "stoke-journal 1"
	firstName    = "000000"
)

// segment is one object of a journal.
type segment struct {
	journal string // random
	number  int    // from 0
	offset  int64  // of its first record in the journal
	writer  string // the Store that wrote it
	records []byte
	length  int    // of records, where they have been let go
	version string // of the object
}

func (g *segment) encode() []byte {
	head := fmt.Sprintf("%s %s %d %d %d %s\n", segmentMagic, g.journal, g.number, g.offset, len(g.records), g.writer)
	return append([]byte(head), g.records...)
}

func (g *segment) end() int64 { return g.offset + int64(g.length) }

// decodeSegment reads a segment; the reason is its fault.
func decodeSegment(data []byte, version string) (g segment, reason string) {
	line, records, ok := bytes.Cut(data, []byte("\n"))
	rest, magic := strings.CutPrefix(string(line), segmentMagic+" ")
	fields := strings.Fields(rest)
	if !ok || !magic || len(fields) != 5 {
		return g, "it is not a segment of a journal"
	}
	number, err1 := strconv.Atoi(fields[1])
	offset, err2 := strconv.ParseInt(fields[2], 10, 64)
	length, err3 := strconv.Atoi(fields[3])
	if err1 != nil || err2 != nil || err3 != nil || number < 0 || offset < 0 {
		return g, "its first line makes no sense"
	}
	if length != len(records) {
		return g, fmt.Sprintf("it should hold %d bytes of records, and holds %d", length, len(records))
	}
	return segment{journal: fields[0], number: number, offset: offset, writer: fields[4], records: records, length: length, version: version}, ""
}

// segmentName is the name of a segment after the journal's prefix.
func segmentName(journal string, number int) string {
	if number == 0 {
		return firstName
	}
	return fmt.Sprintf("%s.%06d", journal, number)
}

// segmentNumbers are the numbers of the journal's segments after the first,
// among the names of all that is there; sorted.
func segmentNumbers(journal, prefix string, keys []string) []int {
	var numbers []int
	for _, key := range keys {
		text, ours := strings.CutPrefix(key, prefix+journal+".")
		if n, err := strconv.Atoi(text); ours && err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}
