package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"google.golang.org/api/googleapi"

	"github.com/stokehq/stoke/plan/state/store/object"
)

// gcsBucket is an object.Bucket in Google Cloud Storage; versions are
// generations.
type gcsBucket struct {
	bucket *blob.Bucket
	name   string
	key    []byte // the customer's, nil for none
	kms    string

	attempts int // at one request
}

// Name is the URL of an object.
func (g *gcsBucket) Name(key string) string { return "gs://" + g.name + "/" + key }

// uploadChunk is the size from which on an upload goes in parts; the buffer
// for one is allocated for every write.
const uploadChunk = 8 << 20

// Get reads an object.
func (g *gcsBucket) Get(ctx context.Context, key string) ([]byte, string, error) {
	r, err := g.bucket.NewReader(ctx, key, &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
		return g.handle(as, storage.Conditions{})
	}})
	if errors.Is(err, storage.ErrObjectNotExist) {
		if isSnapshot(key) {
			err = g.exists(ctx) // a bucket that is not there says the same
		} else {
			err = nil
		}
		return nil, "", err
	}
	if err != nil {
		return nil, "", gcsProblem(err)
	}
	defer r.Close()
	var raw *storage.Reader
	if !r.As(&raw) {
		return nil, "", errors.New("the library does not tell the generation")
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, "", gcsProblem(err)
	}
	return data, strconv.FormatInt(raw.Attrs.Generation, 10), nil
}

// handle puts the key and conditions into a request.
func (g *gcsBucket) handle(as func(any) bool, c storage.Conditions) error {
	var h **storage.ObjectHandle
	if !as(&h) {
		return errors.New("the library takes no conditions")
	}
	if g.key != nil {
		*h = (*h).Key(g.key)
	}
	if c != (storage.Conditions{}) {
		*h = (*h).If(c)
	}
	return nil
}

func generation(ifVersion string) (storage.Conditions, error) {
	if ifVersion == "" {
		return storage.Conditions{DoesNotExist: true}, nil
	}
	n, err := strconv.ParseInt(ifVersion, 10, 64)
	if err != nil {
		return storage.Conditions{}, fmt.Errorf("%q is no generation", ifVersion)
	}
	return storage.Conditions{GenerationMatch: n}, nil
}

// Put writes an object if its generation is still ifVersion.
func (g *gcsBucket) Put(ctx context.Context, key string, data []byte, ifVersion string) (string, error) {
	condition, err := generation(ifVersion)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // an upload that is given up must not be finished
	var raw *storage.Writer
	w, err := g.bucket.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: "application/json", BufferSize: min(uploadChunk, len(data)+1),
		BeforeWrite: func(as func(any) bool) error {
			if err := g.handle(as, condition); err != nil {
				return err
			}
			var h **storage.ObjectHandle
			if as(&h) {
				*h = (*h).Retryer(storage.WithErrorFunc(upTo(g.attempts)))
			}
			if !as(&raw) {
				return errors.New("the library does not tell the generation")
			}
			raw.KMSKeyName = g.kms
			return nil
		},
	})
	if err != nil {
		return "", gcsProblem(err)
	}
	if _, err := w.Write(data); err != nil {
		cancel()
		return "", errors.Join(gcsProblem(err), ignored(w.Close()))
	}
	if err := w.Close(); err != nil {
		return "", gcsProblem(err)
	}
	return strconv.FormatInt(raw.Attrs().Generation, 10), nil
}

// upTo ends the attempts at one upload: the library counts those of all other
// requests, and uploads again until the context ends.
func upTo(attempts int) func(error) bool {
	var made atomic.Int32
	return func(err error) bool {
		return storage.ShouldRetry(err) && int(made.Add(1)) < attempts
	}
}

// ignored is for errors that follow from one that is reported.
func ignored(error) error { return nil }

// Delete removes an object if its generation is still ifVersion.
func (g *gcsBucket) Delete(ctx context.Context, key, ifVersion string) error {
	var client *storage.Client
	if !g.bucket.As(&client) {
		return errors.New("the library has no client")
	}
	h := client.Bucket(g.name).Object(key)
	if ifVersion != "" {
		condition, err := generation(ifVersion)
		if err != nil {
			return err
		}
		h = h.If(condition)
	}
	err := h.Delete(ctx)
	if errors.Is(err, storage.ErrObjectNotExist) {
		return nil
	}
	return gcsProblem(err)
}

// List names objects.
func (g *gcsBucket) List(ctx context.Context, prefix string, shallow bool) ([]string, error) {
	return list(ctx, g.bucket, prefix, shallow, gcsProblem)
}

func list(ctx context.Context, b *blob.Bucket, prefix string, shallow bool, problem func(error) error) ([]string, error) {
	options := &blob.ListOptions{Prefix: prefix}
	if shallow {
		options.Delimiter = "/"
	}
	var keys []string
	for i := b.List(options); ; {
		o, err := i.Next(ctx)
		if err == io.EOF {
			return keys, nil
		}
		if err != nil {
			return nil, problem(err)
		}
		if !o.IsDir {
			keys = append(keys, o.Key)
		}
	}
}

// exists asks whether the bucket is there, and may be looked into.
func (g *gcsBucket) exists(ctx context.Context) error {
	_, _, err := g.bucket.ListPage(ctx, blob.FirstPageToken, 1, nil)
	return gcsProblem(err)
}

// gcsProblem puts what the service says in words for people.
func gcsProblem(err error) error {
	if err == nil {
		return nil
	}
	var e *googleapi.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case http.StatusPreconditionFailed:
		return object.ErrConflict
	case http.StatusNotModified:
		return object.ErrConflict
	case http.StatusUnauthorized:
		return fmt.Errorf("Google Cloud does not accept the credentials (401): %w", err)
	case http.StatusForbidden:
		return fmt.Errorf("Google Cloud does not allow it (403); roles/storage.objectAdmin on the bucket does: %w", err)
	case http.StatusNotFound:
		return fmt.Errorf("there is no such bucket (404), and stoke makes none: %w", err)
	}
	return err
}
