package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"
)

// algorithms are those that PEP 427 allows: SHA-256 or better.
var algorithms = map[string]func() hash.Hash{"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}

// unlisted are the files of a wheel that RECORD has no hash of.
func (w *wheel) unlisted(name string) bool {
	return name == w.info+"/RECORD" || name == w.info+"/RECORD.jws" || name == w.info+"/RECORD.p7s"
}

// readRecord reads the list of all files and their hashes.
func (w *wheel) readRecord() error {
	text, err := w.text("RECORD")
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(w.file.File))
	for _, f := range w.file.File {
		there[f.Name] = true
	}
	lines := csv.NewReader(strings.NewReader(text))
	lines.FieldsPerRecord = -1
	w.sums = make(map[string]string)
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || len(line) < 2 {
			return unusable(w.name, "its RECORD is not a list of files and hashes: %v", err)
		}
		name, sum := line[0], line[1]
		if w.unlisted(name) {
			continue
		}
		algorithm, digest, _ := strings.Cut(sum, "=")
		if algorithms[algorithm] == nil || digest == "" {
			return unusable(w.name, "its RECORD has no SHA-256 of %s", name)
		}
		if !there[name] {
			return unusable(w.name, "its RECORD lists %s, which is not in it", name)
		}
		w.sums[name] = sum
	}
}

// verifyMember compares one file with RECORD, and notes the hash for its layer.
func (w *wheel) verifyMember(ctx context.Context, m member) error {
	e := &w.entries[m.entry]
	from, err := m.Open()
	if err != nil {
		return unusable(w.name, "%s: %s", m.Name, err)
	}
	defer from.Close()
	plain := sha256.New()
	listed, want := plain, ""
	to := io.Writer(plain)
	if sum, ok := w.sums[m.Name]; ok {
		var algorithm string
		algorithm, want, _ = strings.Cut(sum, "=")
		if algorithm != "sha256" {
			listed = algorithms[algorithm]()
			to = io.MultiWriter(plain, listed)
		}
	}
	if _, err := io.Copy(to, interruptible{ctx, from}); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return unusable(w.name, "%s: %s", m.Name, err)
	}
	got := base64.RawURLEncoding.EncodeToString(listed.Sum(nil))
	if want != "" && strings.TrimRight(want, "=") != got {
		return unusable(w.name, "%s is not what its RECORD says: the file is damaged or was changed", m.Name)
	}
	if e.sum == "" { // else it was written anew for the image
		e.sum = hex.EncodeToString(plain.Sum(nil))
	}
	return nil
}

// setContent makes an entry of content that is made here.
func (e *entry) setContent(content []byte) {
	sum := sha256.Sum256(content)
	e.sum, e.size = hex.EncodeToString(sum[:]), int64(len(content))
	e.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}
