package object

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Text is an object, or a part of it, as plans and states show it: YAML with
// sorted keys. What a Secret holds is a hash, made with salt.
func Text(content map[string]any, salt string) (string, error) {
	if IsSecret(&unstructured.Unstructured{Object: content}) {
		content = hide(content, salt)
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("write object: %w", err)
	}
	return string(text), nil
}

// FromText reads what Text wrote, for Project: a Secret's values are those
// that stand for it.
func FromText(text string) (*unstructured.Unstructured, error) {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	delete(content, "dataHash")
	return &unstructured.Unstructured{Object: content}, nil
}

// Hash tells versions of a text apart.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Parts are the objects of a list within an object.
func Parts(content map[string]any, at ...string) (all []map[string]any) {
	values, _, _ := unstructured.NestedSlice(content, at...)
	for _, v := range values {
		if m, ok := v.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}
