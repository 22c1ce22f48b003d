package storetest

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// GCS is one bucket of a server that speaks Google Cloud Storage's JSON
// protocol, and the XML one for reading. It is strict about conditions and
// sums, and refuses what it does not know.
type GCS struct {
	Bucket string
	Token  string // that is wanted; "" lets everybody in

	mu         sync.Mutex
	objects    map[string]gcsObject
	generation int64
	uploads    map[string]*gcsUpload
}

type gcsObject struct {
	data       []byte
	generation int64
}

// gcsUpload is an upload in parts.
type gcsUpload struct {
	name  string
	query url.Values
	data  []byte
}

// ServeHTTP answers one request.
func (s *GCS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects == nil {
		s.objects, s.uploads, s.generation = map[string]gcsObject{}, map[string]*gcsUpload{}, 1700000000000000
	}
	if s.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.Token {
		s.fail(w, http.StatusUnauthorized, "Invalid Credentials")
		return
	}
	path := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(path, "/upload/storage/v1/b/"); ok {
		s.upload(w, r, strings.TrimSuffix(rest, "/o"))
		return
	}
	if rest, ok := strings.CutPrefix(path, "/storage/v1/b/"); ok {
		bucket, name, one := strings.Cut(rest, "/o/")
		bucket = strings.TrimSuffix(bucket, "/o")
		if bucket != s.Bucket {
			s.fail(w, http.StatusNotFound, "The specified bucket does not exist.")
			return
		}
		if !one {
			s.list(w, r)
			return
		}
		name, err := url.PathUnescape(name)
		if err != nil {
			s.fail(w, http.StatusBadRequest, "bad name")
			return
		}
		s.object(w, r, name)
		return
	}
	bucket, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	o, there := s.objects[name]
	if r.Method != http.MethodGet || bucket != s.Bucket || !there {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "<Error><Code>NoSuchKey</Code></Error>")
		return
	}
	s.media(w, o)
}

func (s *GCS) fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "message": message}})
}

func (s *GCS) media(w http.ResponseWriter, o gcsObject) {
	w.Header().Set("X-Goog-Generation", strconv.FormatInt(o.generation, 10))
	w.Header().Set("X-Goog-Metageneration", "1")
	w.Header().Set("X-Goog-Hash", "crc32c="+crc32c(o.data))
	w.Header().Set("X-Goog-Stored-Content-Length", strconv.Itoa(len(o.data)))
	w.Header().Set("Content-Length", strconv.Itoa(len(o.data)))
	_, _ = w.Write(o.data)
}

func crc32c(data []byte) string {
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// resource is what the service says of an object.
func (s *GCS) resource(name string, o gcsObject) map[string]any {
	sum := md5.Sum(o.data)
	return map[string]any{
		"kind": "storage#object", "bucket": s.Bucket, "name": name, "generation": strconv.FormatInt(o.generation, 10),
		"metageneration": "1", "size": strconv.Itoa(len(o.data)), "crc32c": crc32c(o.data), "etag": fmt.Sprint(o.generation),
		"md5Hash": base64.StdEncoding.EncodeToString(sum[:]), "updated": time.Now().UTC().Format(time.RFC3339Nano),
	}
}

// allowed checks the condition of a request.
func (s *GCS) allowed(w http.ResponseWriter, q url.Values, name string) bool {
	for key := range q {
		if strings.HasPrefix(key, "if") && key != "ifGenerationMatch" {
			s.fail(w, http.StatusNotImplemented, key)
			return false
		}
	}
	if want := q.Get("ifGenerationMatch"); want != "" && want != strconv.FormatInt(s.objects[name].generation, 10) {
		s.fail(w, http.StatusPreconditionFailed, "At least one of the pre-conditions you specified did not hold.")
		return false
	}
	return true
}

func (s *GCS) object(w http.ResponseWriter, r *http.Request, name string) {
	o, there := s.objects[name]
	if !there {
		s.fail(w, http.StatusNotFound, "No such object: "+s.Bucket+"/"+name)
		return
	}
	if !s.allowed(w, r.URL.Query(), name) {
		return
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("alt") == "media":
		s.media(w, o)
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(s.resource(name, o))
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		s.fail(w, http.StatusMethodNotAllowed, r.Method)
	}
}

func (s *GCS) upload(w http.ResponseWriter, r *http.Request, bucket string) {
	if bucket != s.Bucket {
		s.fail(w, http.StatusNotFound, "The specified bucket does not exist.")
		return
	}
	q := r.URL.Query()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch {
	case q.Get("upload_id") != "":
		s.part(w, r, q.Get("upload_id"), body)
	case q.Get("uploadType") == "resumable":
		var meta struct{ Name string }
		if json.Unmarshal(body, &meta) != nil || q.Get("name")+meta.Name == "" {
			s.fail(w, http.StatusBadRequest, "no name")
			return
		}
		id := strconv.Itoa(len(s.uploads) + 1)
		s.uploads[id] = &gcsUpload{name: meta.Name, query: q}
		q.Set("upload_id", id)
		w.Header().Set("Location", "http://"+r.Host+r.URL.Path+"?"+q.Encode())
	case q.Get("uploadType") == "multipart":
		name, data, err := gcsParts(r.Header.Get("Content-Type"), body)
		if err != nil {
			s.fail(w, http.StatusBadRequest, err.Error())
			return
		}
		if q.Get("name") != "" {
			name = q.Get("name")
		}
		s.store(w, q, name, data)
	default:
		s.fail(w, http.StatusNotImplemented, "uploadType")
	}
}

// gcsParts reads an upload in one request: what the object is, and what it
// holds.
func gcsParts(contentType string, body []byte) (name string, data []byte, err error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", nil, err
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	var meta struct{ Name, CRC32C, MD5Hash string }
	for i := range 2 {
		part, err := parts.NextPart()
		if err != nil {
			return "", nil, err
		}
		if i == 0 {
			err = json.NewDecoder(part).Decode(&meta)
		} else {
			data, err = io.ReadAll(part)
		}
		if err != nil {
			return "", nil, err
		}
	}
	if _, err := parts.NextPart(); err != io.EOF {
		return "", nil, fmt.Errorf("it does not end: %v", err)
	}
	if meta.CRC32C != "" && meta.CRC32C != crc32c(data) {
		return "", nil, fmt.Errorf("the sum is wrong")
	}
	return meta.Name, data, nil
}

// part takes one part of an upload: "bytes 0-99/*", the last one "…/200".
func (s *GCS) part(w http.ResponseWriter, r *http.Request, id string, body []byte) {
	u := s.uploads[id]
	text, total, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes "), "/")
	if u == nil || !ok {
		s.fail(w, http.StatusBadRequest, "no such upload")
		return
	}
	if from, _, some := strings.Cut(text, "-"); some && from != strconv.Itoa(len(u.data)) {
		s.fail(w, http.StatusBadRequest, "a part is missing")
		return
	}
	u.data = append(u.data, body...)
	if total == strconv.Itoa(len(u.data)) {
		delete(s.uploads, id)
		s.store(w, u.query, u.name, u.data)
		return
	}
	w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(u.data)-1))
	w.Header().Set("X-HTTP-Status-Code-Override", "308")
	w.WriteHeader(http.StatusPermanentRedirect)
}

func (s *GCS) store(w http.ResponseWriter, q url.Values, name string, data []byte) {
	if !s.allowed(w, q, name) {
		return
	}
	s.generation++
	s.objects[name] = gcsObject{data: data, generation: s.generation}
	_ = json.NewEncoder(w).Encode(s.resource(name, s.objects[name]))
}

func (s *GCS) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	prefix, delimiter, after := q.Get("prefix"), q.Get("delimiter"), q.Get("pageToken")
	var items []map[string]any
	var prefixes []string
	next := ""
	for _, k := range s.sorted() {
		if !strings.HasPrefix(k, prefix) || k <= after {
			continue
		}
		if len(items)+len(prefixes) == pageOf {
			next = after
			break
		}
		after = k
		if i := strings.Index(k[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			if p := k[:len(prefix)+i+len(delimiter)]; !slices.Contains(prefixes, p) {
				prefixes = append(prefixes, p)
			}
			continue
		}
		items = append(items, s.resource(k, s.objects[k]))
	}
	answer := map[string]any{"kind": "storage#objects", "items": items, "prefixes": prefixes}
	if next != "" {
		answer["nextPageToken"] = next
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *GCS) sorted() []string {
	var keys []string
	for k := range s.objects {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Keys names the objects, sorted.
func (s *GCS) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted()
}
