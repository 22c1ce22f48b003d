package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/plan/seal"
)

// Configuration files are readable in a plan file, except files that contain a
// secret: a variable's default, a literal in sensitive(). Those are sealed as a
// whole. Without the key, the caller passes the same files again.

// sealedPrefix begins the names of sealed configuration files.
const sealedPrefix = "sealed/"

// sealedFile is the content of such an entry.
type sealedFile struct {
	Text       []byte `json:"text"` // sealed
	Digest     []byte `json:"digest"`
	DigestSalt []byte `json:"digest_salt"`
}

// collectSecrets is every text in the plan that is sensitive.
func (p *Plan) collectSecrets() *redact.Secrets {
	texts := redact.Texts{}
	whole := []cty.Path{{}}
	for _, name := range p.secretVariables() {
		texts.Add(p.Variables[name], whole)
	}
	for _, v := range p.SensitiveDefaults {
		texts.Add(v, whole)
	}
	for _, o := range p.Outputs {
		if o.Sensitive {
			texts.Add(o.After, whole)
		}
		if o.BeforeSensitive {
			texts.Add(o.Before, whole)
		}
	}
	known := redact.Places{}
	for _, list := range [][]*Change{p.Changes, p.Drift, p.Refreshed, p.deferredChanges()} {
		for _, c := range list {
			at := placesOf(known, c)
			texts.Add(c.Before, at)
			texts.Add(c.After, at)
			texts.Add(c.Config, at)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return redact.SecretsOf(slices.Collect(maps.Keys(texts)))
}

func sensitiveDefaults(m *modules.Module, found []cty.Value) []cty.Value {
	for _, v := range m.Variables {
		if v.Sensitive && !v.Required() && !v.Default.IsNull() {
			found = append(found, v.Default)
		}
	}
	for _, call := range m.Calls {
		if call.Module != nil {
			found = sensitiveDefaults(call.Module, found)
		}
	}
	return found
}

// sealFile writes a configuration file sealed.
func sealFile(w io.Writer, box *seal.Box, name string, content []byte) error {
	f := sealedFile{DigestSalt: seal.Salt()}
	var err error
	if f.Digest, err = seal.Digest(content, f.DigestSalt); err != nil {
		return err
	}
	f.Text = box.Seal(nil, content, []byte(sealedPrefix+name))
	return json.NewEncoder(w).Encode(f)
}

// sealedFile reads what sealFile wrote. Without the key the file is noted as
// missing.
func (d *unpacker) sealedFile(r io.Reader, name string) error {
	var f sealedFile
	if err := json.NewDecoder(r).Decode(&f); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // all of it is signed
		return err
	}
	switch {
	case d.box != nil:
		content, err := d.box.Open(f.Text, []byte(sealedPrefix+name))
		d.plan.Files[name] = content
		return err
	case d.plan.Locked == nil:
		return errors.New("it is sealed, and the plan does not say how")
	}
	if d.plan.Locked.files == nil {
		d.plan.Locked.files = make(map[string]sealedFile)
	}
	d.plan.Locked.files[name] = f
	return nil
}

// SealedFiles names the configuration files that a locked plan lacks, in order.
func (p *Plan) SealedFiles() []string {
	if p.Locked == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.Locked.files))
}

// SupplyFile gives a locked plan a configuration file again. It must be as it
// was when the plan was made.
func (p *Plan) SupplyFile(name string, content []byte) error {
	f, sealed := p.Locked.files[name]
	if !sealed {
		return fmt.Errorf("%s is not sealed", name)
	}
	digest, err := seal.Digest(content, f.DigestSalt)
	if err != nil {
		return err
	}
	if !seal.SameDigest(digest, f.Digest) {
		return fmt.Errorf("%s is not as it was when the plan was made", name)
	}
	p.Files[name] = content
	delete(p.Locked.files, name)
	return nil
}
