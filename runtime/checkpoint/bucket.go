package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Open opens the place at an address: a folder's absolute path, gs://BUCKET/PREFIX
// or s3://BUCKET/PREFIX, where the program has gocloud's driver of that kind. Credentials are those of the environment, as Google's
// and Amazon's own tools find them; s3 takes ?region=… and ?endpoint=… for
// other servers that speak its protocol. Nothing is read or written yet.
func Open(ctx context.Context, address string) (*Place, error) {
	if filepath.IsAbs(address) {
		return Folder(address), nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("open the checkpoints' place: %w", err)
	}
	if u.Scheme != "gs" && u.Scheme != "s3" || u.Host == "" {
		return nil, fmt.Errorf("open the checkpoints' place: %q: want the absolute path of a folder, gs://BUCKET/PREFIX or s3://BUCKET/PREFIX", address)
	}
	prefix := strings.Trim(u.Path, "/")
	u.Path = ""
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, fmt.Errorf("open the checkpoints' place %s: %w", address, explainCredentials(err))
	}
	return inBucket(b, prefix, address), nil
}

// inBucket is a place below a prefix of a bucket.
func inBucket(b *blob.Bucket, prefix, address string) *Place {
	if prefix != "" {
		b = blob.PrefixedBucket(b, prefix+"/")
	}
	return &Place{storage: bucket{b}, address: address}
}

// Remedies for missing credentials, by the texts of the libraries' errors.
// Google's library also accepts an invalid key.
var (
	google = "credentials for Google Cloud are missing: set GOOGLE_APPLICATION_CREDENTIALS to the file of a " +
		"service account's key, run gcloud auth application-default login, or give the machine a service account that " +
		"may read and write the bucket"
	amazon = "credentials for Amazon S3 are missing: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, set " +
		"AWS_PROFILE, or give the machine a role that may read and write the bucket"
	advice = map[string]string{
		"could not find default credentials": google,
		"private key should be a PEM":        google,
		"get identity: get credentials":      amazon,
	}
)

// explainCredentials puts before an error about credentials what to do about it: the
// libraries tell of all the places in which they looked.
func explainCredentials(err error) error {
	if err == nil {
		return nil
	}
	for text, what := range advice {
		if strings.Contains(err.Error(), text) {
			return fmt.Errorf("%s (%w)", what, err)
		}
	}
	return err
}

type bucket struct{ b *blob.Bucket }

func (b bucket) put(ctx context.Context, key string) (object, error) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := b.b.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		cancel()
		return nil, explainCredentials(err)
	}
	return &upload{Writer: w, cancel: cancel}, nil
}

// upload becomes an object when its writer is closed, unless its context is
// done by then.
type upload struct {
	*blob.Writer
	cancel context.CancelFunc
	done   bool
}

func (u *upload) commit() error {
	if u.done {
		return errDone
	}
	u.done = true
	defer u.cancel()
	return explainCredentials(u.Writer.Close())
}

func (u *upload) abort() {
	if !u.done {
		u.done = true
		u.cancel()
		u.Writer.Close() // says that it was cancelled
	}
}

func (b bucket) claim(ctx context.Context, key string) (bool, error) {
	err := b.b.WriteAll(ctx, key, []byte("claimed\n"), &blob.WriterOptions{ContentType: "text/plain", IfNotExist: true})
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return false, nil
	}
	return err == nil, explainCredentials(err)
}

func (b bucket) open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	r, err := b.b.NewReader(ctx, key, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, 0, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, 0, explainCredentials(err)
	}
	return r, r.Size(), nil
}

func (b bucket) list(ctx context.Context, prefix string) (map[string]int64, error) {
	found := make(map[string]int64)
	for all := b.b.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := all.Next(ctx)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, explainCredentials(err)
		}
		found[o.Key] = o.Size
	}
}

func (b bucket) remove(ctx context.Context, key string) error {
	err := b.b.Delete(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return explainCredentials(err)
}

func (b bucket) close() error { return b.b.Close() }
