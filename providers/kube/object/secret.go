package object

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/scrypt"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsSecret reports a Secret of the core group.
func IsSecret(u *unstructured.Unstructured) bool {
	return u.GetAPIVersion() == "v1" && u.GetKind() == "Secret"
}

// checkSecret reports the faults of a Secret that the API server would report,
// without the values.
func checkSecret(secret map[string]any) error {
	for _, field := range []string{"data", "stringData"} {
		values, ok := secret[field].(map[string]any)
		if !ok && secret[field] != nil {
			return fmt.Errorf("%s of the Secret is not a map", field)
		}
		for _, k := range slices.Sorted(maps.Keys(values)) {
			s, ok := values[k].(string)
			if values[k] == nil {
				continue
			}
			if !ok {
				return fmt.Errorf("%s[%q] of the Secret is not a text: put it in quotes", field, k)
			}
			if field == "data" {
				if _, err := base64.StdEncoding.DecodeString(s); err != nil {
					return fmt.Errorf("data[%q] of the Secret is not base64: give the text itself in stringData", k)
				}
			}
		}
	}
	return nil
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

// RedactSecret takes what a Secret holds out of a text, such as a refusal by the API
// server.
func RedactSecret(secret *unstructured.Unstructured, text string) string {
	data, ok := secret.Object["data"].(map[string]any)
	if !ok {
		return text
	}
	var values []string
	for _, v := range data {
		s, ok := v.(string)
		if !ok || s == "" {
			continue
		}
		values = append(values, s)
		if plain, err := base64.StdEncoding.DecodeString(s); err == nil {
			values = append(values, string(plain), strings.TrimSpace(string(plain)))
		}
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	for _, v := range values {
		if v != "" {
			text = strings.ReplaceAll(text, v, hidden)
		}
	}
	return text
}
