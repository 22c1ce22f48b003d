package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/stokehq/stoke/runtime/spec"
)

// Files passes on the files of a checkpoint as they lie there, its parts in
// their order and then its manifest: what is copied in this order exists once
// all of it is there. take must read in to its end. What was passed on counts
// only once Files has returned without an error: a part's hash is known at its
// end.
func (p *Place) Files(ctx context.Context, name string, take func(file string, size int64, in io.Reader) error) error {
	fail := func(file string, err error) error {
		return fmt.Errorf("copy checkpoint %s: %s: %w", name, file, err)
	}
	text, err := p.text(ctx, name)
	if err != nil {
		return fail(spec.ManifestFile, err)
	}
	m, err := parse(text)
	if err != nil {
		return fail(spec.ManifestFile, err)
	}
	for _, part := range m.Parts {
		if err := p.file(ctx, name, part, take); err != nil {
			return fail(part.Name, err)
		}
	}
	if err := take(spec.ManifestFile, int64(len(text)), bytes.NewReader(text)); err != nil {
		return fail(spec.ManifestFile, err)
	}
	return nil
}

// file passes on one part.
func (p *Place) file(ctx context.Context, name string, part Part, take func(file string, size int64, in io.Reader) error) error {
	in, size, err := p.open(ctx, name+"/"+part.Name)
	if err != nil {
		return err
	}
	defer in.Close()
	if size != part.Bytes() {
		return fmt.Errorf("%w: it has %d bytes, not %d", ErrDamaged, size, part.Bytes())
	}
	sum := sha256.New()
	if err := take(part.Name, size, io.TeeReader(in, sum)); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != part.SHA256 {
		return fmt.Errorf("%w: its hash is %s, not %s", ErrDamaged, got, part.SHA256)
	}
	return nil
}
