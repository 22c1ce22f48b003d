package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// ManifestName is the manifest within the folder of installed modules.
const ManifestName = "modules.json"

// Record says where the module of one call is installed.
type Record struct {
	Key     string `json:"Key"`               // names of the calls, "a.b"; "" for the root
	Source  string `json:"Source"`            // normal form of the address
	Version string `json:"Version,omitempty"` // of registries and the library
	Dir     string `json:"Dir"`               // relative to the working directory, with slashes
}

// Manifest is what is installed, by key.
type Manifest map[string]Record

// DecodeManifest reads a manifest that Terraform or stoke has written.
func DecodeManifest(text []byte) (Manifest, error) {
	var whole struct {
		Modules []Record
	}
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("read manifest of modules: %w", err)
	}
	m := make(Manifest, len(whole.Modules))
	for _, r := range whole.Modules {
		if _, ok := m[r.Key]; ok {
			return nil, fmt.Errorf("read manifest of modules: %q is there twice", r.Key)
		}
		if r.Dir == "" && r.Key != "" {
			return nil, errors.New("read manifest of modules: a module has no folder")
		}
		r.Dir = filepath.Clean(filepath.FromSlash(r.Dir))
		m[r.Key] = r
	}
	return m, nil
}

// Encode writes the manifest, byte for byte as Terraform does.
func (m Manifest) Encode() []byte {
	whole := struct {
		Modules []Record `json:"Modules"`
	}{Modules: make([]Record, 0, len(m))}
	for _, r := range m {
		r.Dir = filepath.ToSlash(r.Dir)
		whole.Modules = append(whole.Modules, r)
	}
	slices.SortFunc(whole.Modules, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	text, err := json.Marshal(whole)
	if err != nil {
		panic(err) // strings alone
	}
	return text
}
