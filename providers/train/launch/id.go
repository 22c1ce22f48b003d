package launch

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// ID names a run. It follows from the operation that creates it, so that a
// create whose outcome is unknown is found without an index. An operation of
// "" (no engine that draws them) gives a random one.
func ID(operation string) string {
	if operation == "" {
		var b [8]byte
		rand.Read(b[:]) // never fails
		return "run-" + hex.EncodeToString(b[:])
	}
	sum := sha256.Sum256([]byte("stoke run of operation " + operation))
	return "run-" + hex.EncodeToString(sum[:8])
}

// ValidID reports whether id has the form that ID gives: then it is a plain
// file name, and a name that any object of a cluster may have.
func ValidID(id string) bool {
	digits, ok := strings.CutPrefix(id, "run-")
	return ok && len(digits) == 16 && strings.Trim(digits, "0123456789abcdef") == ""
}
