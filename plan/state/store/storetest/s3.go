package storetest

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// S3 is one bucket of a server that speaks Amazon's protocol, paths and all.
// It is strict: it checks sums, lengths and conditions, and refuses what it
// does not know.
type S3 struct {
	Bucket    string
	AccessKey string
	SecretKey string // with which requests must be signed; "" for any
	// OldDelete is what S3 was before it had conditions on deletes.
	OldDelete bool

	mu      sync.Mutex
	objects map[string]s3Object
}

type s3Object struct {
	data []byte
	etag string
	at   time.Time
}

type s3Error struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
	status  int
}

func refuse(status int, code string) *s3Error {
	return &s3Error{Code: code, Message: code, status: status}
}

// ServeHTTP answers one request.
func (s *S3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answer(w, r); err != nil {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(err.status)
		_ = xml.NewEncoder(w).Encode(err)
	}
}

func (s *S3) answer(w http.ResponseWriter, r *http.Request) *s3Error {
	if s.objects == nil {
		s.objects = map[string]s3Object{}
	}
	if !strings.Contains(r.Header.Get("Authorization"), "Credential="+s.AccessKey+"/") {
		return refuse(http.StatusForbidden, "InvalidAccessKeyId")
	}
	if s.SecretKey != "" && !s.signed(r) {
		return refuse(http.StatusForbidden, "SignatureDoesNotMatch")
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if bucket != s.Bucket {
		return refuse(http.StatusNotFound, "NoSuchBucket")
	}
	switch {
	case key == "" && r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2":
		return s.list(w, r)
	case key == "":
		return refuse(http.StatusNotImplemented, "NotImplemented")
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return s.get(w, r, key)
	case http.MethodPut:
		return s.put(w, r, key)
	case http.MethodDelete:
		return s.remove(w, r, key)
	}
	return refuse(http.StatusMethodNotAllowed, "MethodNotAllowed")
}

func (s *S3) get(w http.ResponseWriter, r *http.Request, key string) *s3Error {
	o, ok := s.objects[key]
	if !ok {
		return refuse(http.StatusNotFound, "NoSuchKey")
	}
	w.Header().Set("ETag", o.etag)
	w.Header().Set("Content-Type", "application/json")
	http.ServeContent(w, r, "", o.at, bytes.NewReader(o.data)) // ranges and conditions too
	return nil
}

func (s *S3) put(w http.ResponseWriter, r *http.Request, key string) *s3Error {
	for _, unknown := range []string{"partNumber", "uploadId", "acl", "tagging"} {
		if r.URL.Query().Has(unknown) {
			return refuse(http.StatusNotImplemented, "NotImplemented")
		}
	}
	data, refusal := s3Body(r)
	if refusal != nil {
		return refusal
	}
	o, there := s.objects[key]
	none, match := r.Header.Get("If-None-Match"), r.Header.Get("If-Match")
	switch {
	case none != "" && none != "*", none != "" && match != "":
		return refuse(http.StatusNotImplemented, "NotImplemented")
	case none != "" && there:
		return refuse(http.StatusPreconditionFailed, "PreconditionFailed")
	case match != "" && !there:
		return refuse(http.StatusNotFound, "NoSuchKey")
	case match != "" && match != o.etag:
		return refuse(http.StatusPreconditionFailed, "PreconditionFailed")
	}
	sum := md5.Sum(data)
	o = s3Object{data: data, etag: `"` + hex.EncodeToString(sum[:]) + `"`, at: time.Now()}
	s.objects[key] = o
	w.Header().Set("ETag", o.etag)
	return nil
}

// s3Body reads a body, takes it out of its chunks and checks its sums.
func s3Body(r *http.Request) ([]byte, *s3Error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil || r.ContentLength < 0 || int64(len(raw)) != r.ContentLength {
		return nil, refuse(http.StatusBadRequest, "IncompleteBody")
	}
	sums := map[string]string{}
	for name := range r.Header {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), "x-amz-checksum-"); ok {
			sums[rest] = r.Header.Get(name)
		}
	}
	data := raw
	content := r.Header.Get("X-Amz-Content-Sha256")
	switch {
	case strings.HasPrefix(content, "STREAMING-"):
		if data, err = unchunk(raw, sums); err != nil {
			return nil, refuse(http.StatusBadRequest, "InvalidChunk")
		}
		if n := r.Header.Get("X-Amz-Decoded-Content-Length"); n != strconv.Itoa(len(data)) {
			return nil, refuse(http.StatusBadRequest, "IncompleteBody")
		}
	case content == "":
		return nil, refuse(http.StatusBadRequest, "MissingSecurityHeader")
	case content != "UNSIGNED-PAYLOAD":
		if sum := sha256.Sum256(data); content != hex.EncodeToString(sum[:]) {
			return nil, refuse(http.StatusBadRequest, "XAmzContentSHA256Mismatch")
		}
	}
	for name, want := range sums {
		if got := s3Sum(name, data); got != "" && got != want {
			return nil, refuse(http.StatusBadRequest, "BadDigest")
		}
	}
	if want := r.Header.Get("Content-MD5"); want != "" {
		if sum := md5.Sum(data); want != base64.StdEncoding.EncodeToString(sum[:]) {
			return nil, refuse(http.StatusBadRequest, "BadDigest")
		}
	}
	return data, nil
}

func s3Sum(name string, data []byte) string {
	var sum []byte
	switch name {
	case "crc32":
		sum = binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
	case "sha256":
		digest := sha256.Sum256(data)
		sum = digest[:]
	default:
		return ""
	}
	return base64.StdEncoding.EncodeToString(sum)
}

// unchunk reads the encoding aws-chunked; what trails is added to sums.
func unchunk(raw []byte, sums map[string]string) ([]byte, error) {
	var data []byte
	for {
		line, rest, ok := bytes.Cut(raw, []byte("\r\n"))
		if !ok {
			return nil, errors.New("no chunk")
		}
		size, _, _ := strings.Cut(string(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil || int(n) > len(rest) {
			return nil, errors.New("a chunk of an odd size")
		}
		if n == 0 {
			for _, t := range strings.Split(string(rest), "\r\n") {
				if name, value, ok := strings.Cut(t, ":"); ok {
					sums[strings.TrimPrefix(strings.ToLower(name), "x-amz-checksum-")] = strings.TrimSpace(value)
				}
			}
			return data, nil
		}
		data = append(data, rest[:n]...)
		if raw, ok = bytes.CutPrefix(rest[n:], []byte("\r\n")); !ok {
			return nil, errors.New("a chunk without an end")
		}
	}
}

func (s *S3) remove(w http.ResponseWriter, r *http.Request, key string) *s3Error {
	o, there := s.objects[key]
	if match := r.Header.Get("If-Match"); match != "" {
		if s.OldDelete {
			return refuse(http.StatusNotImplemented, "NotImplemented")
		}
		if !there {
			return refuse(http.StatusNotFound, "NoSuchKey")
		}
		if match != o.etag {
			return refuse(http.StatusPreconditionFailed, "PreconditionFailed")
		}
	}
	delete(s.objects, key)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type s3List struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	KeyCount              int
	NextContinuationToken string `xml:",omitempty"`
	Contents              []s3Entry
	CommonPrefixes        []s3Prefix
}

type s3Entry struct {
	Key, ETag, LastModified string
	Size                    int
}

type s3Prefix struct{ Prefix string }

// pageOf is how many objects a page of a list has; real ones have 1000.
const pageOf = 7

func (s *S3) list(w http.ResponseWriter, r *http.Request) *s3Error {
	q := r.URL.Query()
	prefix, delimiter, after := q.Get("prefix"), q.Get("delimiter"), q.Get("continuation-token")
	var keys []string
	for k := range s.objects {
		if strings.HasPrefix(k, prefix) && k > after {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var l s3List
	for _, k := range keys {
		if len(l.Contents)+len(l.CommonPrefixes) == pageOf {
			l.IsTruncated = true
			break
		}
		l.NextContinuationToken = k
		if i := strings.Index(k[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			p := s3Prefix{k[:len(prefix)+i+len(delimiter)]}
			if n := len(l.CommonPrefixes); n == 0 || l.CommonPrefixes[n-1] != p {
				l.CommonPrefixes = append(l.CommonPrefixes, p)
			}
			continue
		}
		o := s.objects[k]
		l.Contents = append(l.Contents, s3Entry{Key: k, ETag: o.etag, LastModified: o.at.UTC().Format("2006-01-02T15:04:05.000Z"), Size: len(o.data)})
	}
	if !l.IsTruncated {
		l.NextContinuationToken = ""
	}
	l.KeyCount = len(l.Contents)
	w.Header().Set("Content-Type", "application/xml")
	if err := xml.NewEncoder(w).Encode(l); err != nil {
		return refuse(http.StatusInternalServerError, fmt.Sprint(err))
	}
	return nil
}

// Keys names the objects, sorted.
func (s *S3) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for k := range s.objects {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
