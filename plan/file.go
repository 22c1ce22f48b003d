package plan

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// A plan file is a zip archive: plan.jsonl, and below files/ every
// configuration file that the plan was made from.
//
// plan.jsonl holds one JSON object per line: a fileHeader and fileRecords,
// which are written and read one by one, so that no more than one is ever in
// memory beside the plan itself. Values are msgpack by types that are
// written once each.
const (
	planFormat  = 2
	planEntry   = "plan.jsonl"
	filesPrefix = "files/"
	// mostPlan bounds what is unpacked of one entry: a plan file may come from
	// anywhere.
	mostPlan = 4 << 30
)

// Encode writes the plan as a plan file.
func Encode(w io.Writer, p *Plan) error {
	z := zip.NewWriter(w)
	out, err := z.Create(planEntry)
	if err != nil {
		return err
	}
	lines := bufio.NewWriterSize(out, 64<<10)
	if err := encodeRecords(lines, p); err != nil {
		return err
	}
	if err := lines.Flush(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		out, err := z.Create(filesPrefix + name)
		if err != nil {
			return err
		}
		if _, err := out.Write(p.Files[name]); err != nil {
			return err
		}
	}
	return z.Close()
}

// Decode reads a plan file. What the changes' types are is filled in by Bind.
func Decode(r io.ReaderAt, size int64) (*Plan, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a plan file: %w", err)
	}
	p := &Plan{Files: map[string][]byte{}, Variables: map[string]cty.Value{}}
	seen := map[string]bool{}
	for _, entry := range z.File {
		if seen[entry.Name] {
			return nil, fmt.Errorf("read plan file: %s is in it twice", entry.Name)
		}
		seen[entry.Name] = true
		if err := unpack(entry, p); err != nil {
			return nil, err
		}
	}
	if !seen[planEntry] {
		return nil, errors.New("not a plan file: the archive has no " + planEntry)
	}
	return p, nil
}

func unpack(entry *zip.File, p *Plan) error {
	if entry.UncompressedSize64 > mostPlan {
		return fmt.Errorf("read plan file: %s: larger than any plan", entry.Name)
	}
	in, err := entry.Open()
	if err != nil {
		return fmt.Errorf("read plan file: %s: %w", entry.Name, err)
	}
	defer in.Close()
	limited := io.LimitReader(in, mostPlan)
	if entry.Name == planEntry {
		return decodeRecords(bufio.NewReaderSize(limited, 64<<10), p)
	}
	if name, ok := strings.CutPrefix(entry.Name, filesPrefix); ok {
		if p.Files[name], err = io.ReadAll(limited); err != nil {
			return fmt.Errorf("read plan file: %s: %w", entry.Name, err)
		}
	}
	return nil
}
