package kubernetes

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/plan/state/store/object"
)

// Data and annotations of a Secret.
const (
	dataKey  = "tfstate"
	encoding = "encoding" // annotation: "gzip", or none
	longest  = 1 << 30    // bytes above which a state is taken for a mistake
)

// A content that is larger than a Secret may be is compressed and cut in
// pieces. The first one is in the Secret that has the name; the others are in
// Secrets with names that were never used before, and are written first. So
// the content changes in one step, with the first one. Where the rest is says
// the comment in the first piece's own header: whoever else writes the Secret,
// as Terraform may, takes that away with it.
const restComment = "stoke-rest "

// packed compresses a content as Terraform does; id names its rest, "" for
// none.
func packed(data []byte, id string) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if id != "" {
		w.Comment = restComment + id
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// packedPieces compresses a content and cuts it to what fits into Secrets.
func packedPieces(data []byte, largest int) (list [][]byte, id string, err error) {
	content, err := packed(data, "")
	if err == nil && len(content) > largest {
		id = uuid.NewString()
		content, err = packed(data, id)
	}
	if err != nil {
		return nil, "", err
	}
	for len(content) > largest {
		list, content = append(list, content[:largest]), content[largest:]
	}
	return append(list, content), id, nil
}

// errMoved: a piece is missing, because the content was replaced during the
// read.
var errMoved = errors.New("it changes while it is read")

// errEnd: the data continues beyond the last piece.
var errEnd = errors.New("it does not end: it is damaged, or was written in part only")

// A sequence reads pieces one after the other, each when it is needed.
type sequence struct {
	piece []byte
	n     int
	next  func(n int) ([]byte, error)
}

func (s *sequence) Read(p []byte) (int, error) {
	for len(s.piece) == 0 {
		s.n++
		piece, err := s.next(s.n)
		if err != nil {
			return 0, err
		}
		s.piece = piece
	}
	n := copy(p, s.piece)
	s.piece = s.piece[n:]
	return n, nil
}

// unpacked undoes packed. rest and other say how piece n is found where the
// content has a rest, with its name, and where it has not.
func unpacked(first []byte, rest func(id string, n int) ([]byte, error), other func(n int) ([]byte, error)) ([]byte, error) {
	s := &sequence{piece: first, next: other}
	r, err := gzip.NewReader(s)
	if err != nil {
		return nil, err
	}
	if id, ok := strings.CutPrefix(r.Comment, restComment); ok {
		s.next = func(n int) ([]byte, error) { return rest(id, n) }
	}
	r.Multistream(false) // what follows is left over from a longer one
	text, err := io.ReadAll(io.LimitReader(r, longest+1))
	if err == nil && len(text) > longest {
		err = errors.New("it is larger than any state")
	}
	return text, err
}

// restOf reads the pieces of a rest.
func (b *bucket) restOf(ctx context.Context, name func(id string, n int) string) func(string, int) ([]byte, error) {
	return func(id string, n int) ([]byte, error) {
		var s core.Secret
		err := b.client.get(ctx, secrets, name(id, n), &s)
		if apierrors.IsNotFound(err) {
			return nil, errMoved
		}
		return s.Data[dataKey], err
	}
}

// write puts pieces under a name: the rest of them first.
func (b *bucket) write(ctx context.Context, o core.Secret, list [][]byte, rest func(n int) core.Secret) (string, error) {
	for i, piece := range list[1:] {
		s := rest(i + 1)
		s.Data = map[string][]byte{dataKey: piece}
		err := b.client.create(ctx, secrets, &s, &core.Secret{})
		if err != nil && !apierrors.IsAlreadyExists(err) { // which is ours, as its answer was lost
			return "", err
		}
	}
	o.Data = map[string][]byte{dataKey: list[0]}
	return b.writeFirst(ctx, o)
}

// writeFirst makes a Secret, or replaces the one of its version.
func (b *bucket) writeFirst(ctx context.Context, o core.Secret) (string, error) {
	var now core.Secret
	if o.ResourceVersion != "" {
		err := b.client.update(ctx, secrets, o.Name, &o, &now)
		if apierrors.IsNotFound(err) {
			return "", object.ErrConflict
		}
		return now.ResourceVersion, conflicting(err)
	}
	err := b.client.create(ctx, secrets, &o, &now)
	if !apierrors.IsAlreadyExists(err) {
		return now.ResourceVersion, conflicting(err)
	}
	// Terraform makes an empty Secret before it writes a state.
	var there core.Secret
	if err := b.client.get(ctx, secrets, o.Name, &there); err != nil || len(there.Data) > 0 {
		if err == nil || apierrors.IsNotFound(err) {
			err = object.ErrConflict
		}
		return "", err
	}
	o.ResourceVersion = there.ResourceVersion
	err = b.client.update(ctx, secrets, o.Name, &o, &now)
	return now.ResourceVersion, conflicting(err)
}

// getSegment reads a part of the journal.
func (b *bucket) getSegment(ctx context.Context, key string) ([]byte, string, error) {
	var s core.Secret
	if err := b.client.get(ctx, secrets, key, &s); err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return nil, "", err
	}
	data := s.Data[dataKey]
	if s.Annotations[encoding] == "" {
		return data, s.ResourceVersion, nil
	}
	name := func(id string, n int) string { return segmentRest(key, id, n) }
	data, err := unpacked(data, b.restOf(ctx, name), func(int) ([]byte, error) { return nil, errEnd })
	if err != nil {
		return nil, "", fmt.Errorf("unpack: %w", err)
	}
	return data, s.ResourceVersion, nil
}

// segmentRest is the name of a piece of a large segment. It begins with the
// journal's prefix, so that it is removed with the journal.
func segmentRest(key, id string, n int) string { return fmt.Sprintf("%s.rest-%s-%d", key, id, n) }

// putSegment writes a part of the journal.
func (b *bucket) putSegment(ctx context.Context, key string, data []byte, ifVersion string) (string, error) {
	named := func(name string) core.Secret {
		var s core.Secret
		s.Name, s.Labels, s.Annotations = name, b.labelled(b.roleLabels(journalRole), "stoke"), map[string]string{}
		return s
	}
	first := named(key)
	first.ResourceVersion = ifVersion
	list, id := [][]byte{data}, ""
	if len(data) > b.largest {
		var err error
		if list, id, err = packedPieces(data, b.largest); err != nil {
			return "", err
		}
		first.Annotations[encoding] = "gzip"
	}
	return b.write(ctx, first, list, func(n int) core.Secret { return named(segmentRest(key, id, n)) })
}
