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

	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/plan/seal"
)

// A plan file is a zip archive: plan.jsonl, and below files/ every
// configuration file that the plan was made from, or below sealed/ the files
// that contain a secret.
//
// plan.jsonl holds one JSON object per line: a fileHeader and fileRecords,
// which are written and read one by one, so that memory holds at most one in
// addition to the plan. Values are msgpack by types that are written once each.
const (
	planFormat  = 4
	planEntry   = "plan.jsonl"
	filesPrefix = "files/"
	// terraformEntry is in Terraform's plan files.
	terraformEntry = "tfplan"
	// maxPlan bounds what is unpacked of one entry: a plan file may come from
	// anywhere.
	maxPlan = 4 << 30
)

// signatureEntry holds the signature of all entries before it.
const signatureEntry = "signature"

// ErrUnsigned: the plan file is not signed with the given key.
var ErrUnsigned = errors.New("the plan is not signed with the key that is set")

// Encode writes the plan as a plan file, sealed and signed with the key. It
// may be nil where the plan holds nothing sensitive.
func Encode(w io.Writer, p *Plan, key *Key) error {
	s, box, err := newSeal(key, p)
	if err != nil {
		return fmt.Errorf("seal plan: %w", err)
	}
	z, sign := zip.NewWriter(w), newSignature()
	entry := func(name string, write func(io.Writer) error) error {
		out, err := z.Create(name)
		if err != nil {
			return err
		}
		sign.begin(name)
		lines := bufio.NewWriterSize(io.MultiWriter(out, sign), 64<<10)
		if err := write(lines); err != nil {
			return err
		}
		return lines.Flush()
	}
	if err := entry(planEntry, func(w io.Writer) error { return encodeRecords(w, p, s, box) }); err != nil {
		return err
	}
	var told *redact.Secrets // nil without a key: then nothing is sensitive
	if box != nil {
		told = p.collectSecrets()
	}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		prefix, write := filesPrefix, func(w io.Writer) error {
			_, err := w.Write(p.Files[name])
			return err
		}
		if told.FoundIn(p.Files[name]) {
			prefix, write = sealedPrefix, func(w io.Writer) error { return sealFile(w, box, name, p.Files[name]) }
		}
		if err := entry(prefix+name, write); err != nil {
			return err
		}
	}
	if box != nil {
		out, err := z.Create(signatureEntry)
		if err != nil {
			return err
		}
		if _, err := out.Write(box.Sign(sign.sum())); err != nil {
			return err
		}
	}
	return z.Close()
}

// Decode reads a plan file. Bind fills in the types of the changes. Where it is
// sealed and the key is nil or belongs to another working directory, the plan
// is Locked. A text that is not its key is ErrKey; a file that was changed
// since it was signed is an error.
func Decode(r io.ReaderAt, size int64, key *Key) (*Plan, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a plan file: %w", err)
	}
	d := &unpacker{key: key, sign: newSignature(), plan: &Plan{Files: map[string][]byte{}, Variables: map[string]cty.Value{}}}
	if slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == terraformEntry }) {
		return nil, errors.New("it was made by Terraform, and only Terraform can read it; make a plan with \"stoke plan -out\"")
	}
	seen := map[string]bool{}
	for _, entry := range z.File {
		if seen[entry.Name] {
			return nil, fmt.Errorf("read plan file: %s is in it twice", entry.Name)
		}
		seen[entry.Name] = true
		if err := d.unpack(entry); err != nil {
			if errors.Is(err, ErrKey) {
				return nil, err
			}
			return nil, fmt.Errorf("read plan file: %s: %w", entry.Name, err)
		}
	}
	switch {
	case !seen[planEntry]:
		return nil, errors.New("not a plan file: the archive has no " + planEntry)
	case d.box != nil && !d.plan.Signed:
		return nil, errors.New("read plan file: its signature is missing")
	}
	return d.plan, nil
}

// unpacker reads the entries of a plan file in their order.
type unpacker struct {
	plan *Plan
	key  *Key
	box  *seal.Box
	sign *signature
}

func (d *unpacker) unpack(entry *zip.File) error {
	if entry.UncompressedSize64 > maxPlan {
		return errors.New("larger than any plan")
	}
	in, err := entry.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	if d.plan.Signed {
		return errors.New("it comes after the signature")
	}
	if entry.Name == signatureEntry {
		return d.verify(io.LimitReader(in, 1<<10))
	}
	d.sign.begin(entry.Name)
	content := io.TeeReader(io.LimitReader(in, maxPlan), d.sign)
	if entry.Name == planEntry {
		d.box, err = decodeRecords(bufio.NewReaderSize(content, 64<<10), d.plan, d.key)
		return err
	}
	if name, ok := strings.CutPrefix(entry.Name, sealedPrefix); ok {
		return d.sealedFile(content, name)
	}
	name, ok := strings.CutPrefix(entry.Name, filesPrefix)
	if !ok {
		return errors.New("no plan has such a part")
	}
	d.plan.Files[name], err = io.ReadAll(content)
	return err
}

func (d *unpacker) verify(in io.Reader) error {
	signature, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if d.box == nil {
		return nil // only who has the key can tell
	}
	if !d.box.Signed(d.sign.sum(), signature) {
		return errors.New("the file was changed after it was made")
	}
	d.plan.Signed = true
	return nil
}
