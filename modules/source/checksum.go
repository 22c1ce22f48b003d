package source

import (
	"crypto/md5"  //nolint:gosec // Terraform's checksum argument knows it
	"crypto/sha1" //nolint:gosec // as above
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"strings"
)

var hashes = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New,
}

// checksum reads ?checksum=TYPE:HEX, or only HEX, whose length determines the
// type. It is nil where there is none.
func checksum(u *url.URL) (hash.Hash, []byte, error) {
	text := u.Query().Get("checksum")
	if text == "" {
		return nil, nil, nil
	}
	kind, digits, ok := strings.Cut(text, ":")
	if kind == "file" {
		return nil, nil, errors.New("a checksum cannot come from a file; write checksum=sha256:DIGITS")
	}
	if !ok {
		digits = text
		kind = map[int]string{32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}[len(text)]
	}
	newHash := hashes[kind]
	if newHash == nil {
		return nil, nil, fmt.Errorf("its checksum %q has none of the types md5, sha1, sha256 and sha512", text)
	}
	want, err := hex.DecodeString(digits)
	h := newHash()
	if err != nil || len(want) != h.Size() {
		return nil, nil, fmt.Errorf("its checksum is not %d hexadecimal digits, as %s has", 2*h.Size(), kind)
	}
	return h, want, nil
}
