package blob

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/plan/state/store/object"
)

// gcsBucket is an object.Bucket in Google Cloud Storage; versions are
// generations.
type gcsBucket struct {
	client *gcsClient
	name   string
	kms    string
}

// Name is the URL of an object.
func (g *gcsBucket) Name(key string) string { return "gs://" + g.name + "/" + key }

func (g *gcsBucket) objects() string { return "b/" + url.PathEscape(g.name) + "/o" }

func (g *gcsBucket) object(key string) string { return g.objects() + "/" + url.PathEscape(key) }

// castagnoli is the polynomial of the service's sums.
func castagnoli(data []byte) string {
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// Get reads an object.
func (g *gcsBucket) Get(ctx context.Context, key string) ([]byte, string, error) {
	head, data, err := g.client.do(ctx, gcsRequest{
		method: http.MethodGet, path: g.object(key), query: url.Values{"alt": {"media"}}, keyed: true,
	})
	if status(err) == http.StatusNotFound {
		if isSnapshot(key) {
			return nil, "", g.exists(ctx) // a bucket that is not there says the same
		}
		return nil, "", nil
	}
	if err != nil {
		return nil, "", gcsProblem(err)
	}
	version := head.Get("X-Goog-Generation")
	if _, err := strconv.ParseInt(version, 10, 64); err != nil {
		return nil, "", errors.New("the service gives no generations, without which writes cannot be conditional")
	}
	for _, sums := range head.Values("X-Goog-Hash") {
		for sum := range strings.SplitSeq(sums, ",") {
			if want, ok := strings.CutPrefix(strings.TrimSpace(sum), "crc32c="); ok && want != castagnoli(data) {
				return nil, "", errors.New("what came is not what is stored: its sum is another one")
			}
		}
	}
	if data == nil {
		data = []byte{}
	}
	return data, version, nil
}

// condition is that of a request; "" means that there must be no object.
func condition(ifVersion string) (string, error) {
	if ifVersion == "" {
		return "0", nil
	}
	if n, err := strconv.ParseInt(ifVersion, 10, 64); err != nil || n <= 0 {
		return "", fmt.Errorf("%q is no generation", ifVersion)
	}
	return ifVersion, nil
}

// Put writes an object if its generation is still ifVersion.
func (g *gcsBucket) Put(ctx context.Context, key string, data []byte, ifVersion string) (string, error) {
	match, err := condition(ifVersion)
	if err != nil {
		return "", err
	}
	kind, body, err := gcsBody(key, data)
	if err != nil {
		return "", err
	}
	query := url.Values{"uploadType": {"multipart"}, "name": {key}, "ifGenerationMatch": {match}}
	if g.kms != "" {
		query.Set("kmsKeyName", g.kms)
	}
	_, answer, err := g.client.do(ctx, gcsRequest{
		method: http.MethodPost, upload: true, path: g.objects(), query: query, kind: kind, body: body, keyed: true,
	})
	if err != nil {
		return "", gcsProblem(err)
	}
	var made struct{ Generation string }
	if err := json.Unmarshal(answer, &made); err != nil || made.Generation == "" {
		return "", errors.New("the service gives no generations, without which writes cannot be conditional")
	}
	return made.Generation, nil
}

// gcsBody is an upload in one request: what the object is, its sum, and what
// it holds.
func gcsBody(key string, data []byte) (kind string, body []byte, err error) {
	meta, err := json.Marshal(map[string]string{"name": key, "contentType": "application/json", "crc32c": castagnoli(data)})
	if err != nil {
		return "", nil, err
	}
	var buf bytes.Buffer
	buf.Grow(len(data) + len(meta) + 1024)
	w := multipart.NewWriter(&buf)
	for _, part := range []struct {
		kind string
		data []byte
	}{{"application/json; charset=UTF-8", meta}, {"application/json", data}} {
		p, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {part.kind}})
		if err != nil {
			return "", nil, err
		}
		if _, err := p.Write(part.data); err != nil {
			return "", nil, err
		}
	}
	if err := w.Close(); err != nil {
		return "", nil, err
	}
	return "multipart/related; boundary=" + w.Boundary(), buf.Bytes(), nil
}

// Delete removes an object if its generation is still ifVersion.
func (g *gcsBucket) Delete(ctx context.Context, key, ifVersion string) error {
	query := url.Values{}
	if ifVersion != "" {
		match, err := condition(ifVersion)
		if err != nil {
			return err
		}
		query.Set("ifGenerationMatch", match)
	}
	_, _, err := g.client.do(ctx, gcsRequest{method: http.MethodDelete, path: g.object(key), query: query})
	if status(err) == http.StatusNotFound {
		return nil
	}
	return gcsProblem(err)
}

// List names objects.
func (g *gcsBucket) List(ctx context.Context, prefix string, shallow bool) ([]string, error) {
	query := url.Values{"prefix": {prefix}, "fields": {"items/name,nextPageToken"}}
	if shallow {
		query.Set("delimiter", "/")
	}
	var keys []string
	for {
		_, answer, err := g.client.do(ctx, gcsRequest{method: http.MethodGet, path: g.objects(), query: query})
		if err != nil {
			return nil, gcsProblem(err)
		}
		var page struct {
			Items         []struct{ Name string }
			NextPageToken string
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, fmt.Errorf("the service's list cannot be read: %w", err)
		}
		for _, o := range page.Items {
			keys = append(keys, o.Name)
		}
		if page.NextPageToken == "" {
			return keys, nil
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

// exists asks whether the bucket is there, and may be looked into.
func (g *gcsBucket) exists(ctx context.Context) error {
	_, _, err := g.client.do(ctx, gcsRequest{method: http.MethodGet, path: g.objects(), query: url.Values{"maxResults": {"1"}, "fields": {"items/name"}}})
	return gcsProblem(err)
}

// gcsProblem puts what the service says in words for people.
func gcsProblem(err error) error {
	switch status(err) {
	case http.StatusPreconditionFailed, http.StatusNotModified:
		return object.ErrConflict
	case http.StatusUnauthorized:
		return fmt.Errorf("the service does not accept the credentials: %w", err)
	case http.StatusForbidden:
		return fmt.Errorf("access denied: grant roles/storage.objectAdmin on the bucket: %w", err)
	case http.StatusNotFound:
		return fmt.Errorf("there is no such bucket, and stoke makes none: %w", err)
	}
	return err
}
