package backend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Record is what init remembers of the backend, in the file that Terraform
// keeps it in: <data folder>/terraform.tfstate.
type Record struct {
	Kind   string
	Values Values // without secrets that are known elsewhere
	Hash   uint64 // of what the backend block said
}

// savedName is the name that Terraform has for the file, for historical
// reasons; it is no state.
const savedName = "terraform.tfstate"

type savedFile struct {
	Version          int           `json:"version"`
	TerraformVersion string        `json:"terraform_version,omitempty"`
	Backend          *savedBackend `json:"backend,omitempty"`
}

type savedBackend struct {
	Type   string                     `json:"type"`
	Config map[string]json.RawMessage `json:"config"`
	Hash   uint64                     `json:"hash"`
}

// Load reads what init remembered below a data folder; nil where there is
// nothing. kinds finds the arguments' types; an unknown kind has no values.
func Load(dataDir string, kinds func(string) *Kind) (*Record, error) {
	path := filepath.Join(dataDir, savedName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	var f savedFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if f.Backend == nil || f.Backend.Type == "" {
		return nil, nil
	}
	s := &Record{Kind: f.Backend.Type, Hash: f.Backend.Hash, Values: Values{}}
	k := kinds(s.Kind)
	if k == nil {
		return s, nil
	}
	for name, raw := range f.Backend.Config {
		a := k.argument(name)
		if a == nil || string(raw) == "null" {
			continue
		}
		v, err := unmarshal(raw, a)
		if err != nil {
			return nil, fmt.Errorf("read %s: argument %q: %w", path, name, err)
		}
		if !v.IsNull() {
			s.Values[name] = v
		}
	}
	return s, nil
}

// unmarshal reads a value. Terraform writes nested blocks as lists of one.
func unmarshal(raw json.RawMessage, a *Argument) (cty.Value, error) {
	if a.Nested == nil {
		return ctyjson.Unmarshal(raw, a.Type)
	}
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return cty.NilVal, err
		}
		if len(list) == 0 {
			return cty.NullVal(a.valueType().WithoutOptionalAttributesDeep()), nil
		}
		raw = list[0]
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return cty.NilVal, err
	}
	values := map[string]cty.Value{}
	for i := range a.Nested {
		inner := &a.Nested[i]
		values[inner.Name] = cty.NullVal(inner.valueType().WithoutOptionalAttributesDeep())
		if text, ok := members[inner.Name]; ok {
			v, err := unmarshal(text, inner)
			if err != nil {
				return cty.NilVal, err
			}
			values[inner.Name] = v
		}
	}
	return cty.ObjectVal(values), nil
}

// Save remembers a backend below a data folder, or with nil forgets it. The
// file can be read by its owner only.
func Save(dataDir, terraformVersion string, k *Kind, s *Record) error {
	path := filepath.Join(dataDir, savedName)
	if s == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	f := savedFile{Version: 3, TerraformVersion: terraformVersion, Backend: &savedBackend{Type: s.Kind, Hash: s.Hash, Config: map[string]json.RawMessage{}}}
	for _, a := range k.Arguments {
		f.Backend.Config[a.Name] = json.RawMessage("null")
		if v, ok := s.Values[a.Name]; ok {
			text, err := ctyjson.Marshal(v, v.Type())
			if err != nil {
				return fmt.Errorf("remember argument %q: %w", a.Name, err)
			}
			f.Backend.Config[a.Name] = text
		}
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dataDir, 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(path, append(text, '\n'), 0o600)
}

// Digest is what Saved.Hash holds for a block: it tells whether the block is
// the one that was remembered.
func Digest(kind string, values Values) uint64 {
	h := fnv.New32a() // Terraform writes 32 bits too
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(h, "%q", kind)
	for _, name := range names {
		v := values[name]
		if v.IsNull() {
			continue
		}
		text, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			text = []byte(v.GoString())
		}
		fmt.Fprintf(h, "\n%q=%s", name, text)
	}
	return uint64(h.Sum32())
}

// Equal tells whether two sets of arguments say the same; null is as good as
// not given.
func Equal(a, b Values) bool {
	return covers(a, b) && covers(b, a)
}

// covers tells whether b has everything that a has.
func covers(a, b Values) bool {
	for name, v := range a {
		if v.IsNull() {
			continue
		}
		w, ok := b[name]
		if !ok || !v.RawEquals(w) {
			return false
		}
	}
	return true
}

// Merge returns the arguments of v with those of top in front of them.
func (v Values) Merge(top Values) Values {
	all := Values{}
	for name, value := range v {
		all[name] = value
	}
	for name, value := range top {
		if !value.IsNull() {
			all[name] = value
		}
	}
	return all
}

// Fits reports whether a backend block with these values is the saved backend:
// by its hash, or by its values where Terraform wrote the hash.
func (s *Record) Fits(kind string, values Values) bool {
	if s.Kind != kind {
		return false
	}
	return s.Hash == Digest(kind, values) || covers(values, s.Values) && covers(s.Values, values)
}

// WithoutSecrets returns what may be remembered: secrets that the block says
// are left there. kept names those that are remembered because only
// -backend-config had them.
func (k *Kind) WithoutSecrets(all, block Values) (remembered Values, kept []string) {
	remembered = Values{}
	for name, v := range all {
		a := k.argument(name)
		if a != nil && a.Secret {
			if said, ok := block[name]; ok && said.RawEquals(v) {
				continue
			}
			kept = append(kept, name)
		}
		remembered[name] = v
	}
	slices.Sort(kept)
	return remembered, kept
}
