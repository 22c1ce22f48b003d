package object

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"golang.org/x/crypto/scrypt"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsSecret reports a Secret of the core group.
func IsSecret(u *unstructured.Unstructured) bool {
	return u.GetAPIVersion() == "v1" && u.GetKind() == "Secret"
}

// encode moves stringData to data, as the API server does.
func encode(secret map[string]any) {
	plain, ok := secret["stringData"].(map[string]any)
	if !ok {
		return
	}
	delete(secret, "stringData")
	data, ok := secret["data"].(map[string]any)
	if !ok {
		data = make(map[string]any, len(plain))
	}
	for k, v := range plain {
		if s, ok := v.(string); ok {
			data[k] = base64.StdEncoding.EncodeToString([]byte(s))
		}
	}
	secret["data"] = data
}

// hidden stands for a Secret's value.
const hidden = "(sensitive)"

// hide replaces what a Secret holds, and tells versions of it apart by a hash
// that is slow to guess values by.
func hide(secret map[string]any, salt string) map[string]any {
	data, ok := secret["data"].(map[string]any)
	if !ok {
		return secret
	}
	out := make(map[string]any, len(secret)+1)
	for k, v := range secret {
		out[k] = v
	}
	shown := make(map[string]any, len(data))
	for k := range data {
		shown[k] = hidden
	}
	out["data"] = shown
	text, err := json.Marshal(data)
	if err == nil {
		var sum []byte
		if sum, err = scrypt.Key(text, []byte(salt), 1<<12, 8, 1, 16); err == nil {
			out["dataHash"] = hex.EncodeToString(sum)
		}
	}
	if err != nil { // not with strings
		out["dataHash"] = err.Error()
	}
	return out
}
