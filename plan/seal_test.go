package plan

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/seal"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

const canary = "canary-51e7"

// everything is of a type that has every nesting there is.
func everything() (*providers.ResourceSchema, cty.Value) {
	secret := func(a *providers.Attribute) *providers.Attribute { a.Type = cty.String; return a }
	nested := map[string]*providers.Attribute{
		"plain": {Type: cty.String, Optional: true}, "pass": secret(&providers.Attribute{Optional: true, Sensitive: true}),
	}
	block := &providers.Block{Attributes: map[string]*providers.Attribute{
		"plain": {Type: cty.String, Optional: true}, "pass": secret(&providers.Attribute{Computed: true, Sensitive: true}),
		"wo": secret(&providers.Attribute{Optional: true, WriteOnly: true}), "any": {Type: cty.DynamicPseudoType, Optional: true},
		"tags": {Type: cty.Map(cty.String), Optional: true}, "one": {Nested: &providers.NestedType{Nesting: providers.Single, Attributes: nested}},
		"list": {Nested: &providers.NestedType{Nesting: providers.List, Attributes: nested}},
		"map":  {Nested: &providers.NestedType{Nesting: providers.Map, Attributes: nested}},
	}, Blocks: map[string]*providers.NestedBlock{
		"set":  {Nesting: providers.Set, Block: &providers.Block{Attributes: nested}},
		"rows": {Nesting: providers.List, Block: &providers.Block{Attributes: nested}},
	}}
	s, hidden := cty.StringVal("seen"), cty.StringVal(canary)
	inner := cty.ObjectVal(map[string]cty.Value{"plain": s, "pass": hidden})
	empty := cty.ObjectVal(map[string]cty.Value{"plain": s, "pass": cty.NullVal(cty.String)})
	unknown := cty.ObjectVal(map[string]cty.Value{"plain": s, "pass": cty.UnknownVal(cty.String)})
	return &providers.ResourceSchema{Block: block}, cty.ObjectVal(map[string]cty.Value{
		"plain": s, "pass": hidden, "wo": hidden, "tags": cty.MapVal(map[string]cty.Value{"a": s, "b": hidden}),
		"any": cty.ObjectVal(map[string]cty.Value{"t": cty.TupleVal([]cty.Value{s, hidden, cty.UnknownVal(cty.String)}), "n": cty.NumberIntVal(3)}),
		"one": inner, "list": cty.ListVal([]cty.Value{inner, empty, unknown}), "map": cty.MapVal(map[string]cty.Value{"k": inner}),
		"set": cty.SetVal([]cty.Value{inner}), "rows": cty.ListVal([]cty.Value{empty, inner}),
	})
}

func secretPlan() *Plan {
	schema, v := everything()
	marks := []cty.Path{cty.GetAttrPath("any").GetAttr("t").IndexInt(1), cty.GetAttrPath("tags").IndexString("b")}
	c := &Change{
		Addr: address.Resource{Type: "t", Name: "n"}.Instance(address.Key{}), Provider: `provider["x/y/z"]`, Action: Update,
		Before: v, After: v, Config: v, AfterSensitive: marks, Schema: schema, Private: []byte(canary), PriorPrivate: []byte("was " + canary),
	}
	return &Plan{
		Changes: []*Change{c}, Refreshed: []*Change{c}, Ops: []Op{{Kind: Put}},
		Variables:          map[string]cty.Value{"open": cty.StringVal("seen"), "token": cty.StringVal(canary), "map": cty.MapVal(map[string]cty.Value{"k": cty.StringVal(canary)})},
		SensitiveVariables: []string{"map", "token", "unset"},
		Outputs:            []*OutputChange{{Name: "o", Sensitive: true, Before: cty.NullVal(cty.DynamicPseudoType), After: cty.StringVal(canary)}},
		Files:              map[string][]byte{"main.tf": []byte("# seen")},
		Unseen:             2,
	}
}

func encoded(t *testing.T, p *Plan, key *Key) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Encode(&b, p, key); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// entries unpacks an archive.
func entries(t *testing.T, file []byte) (names []string, content map[string]string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	content = map[string]string{}
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		names, content[f.Name] = append(names, f.Name), string(b)
	}
	return names, content
}

func pack(t *testing.T, names []string, content map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range names {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decoded(file []byte, key *Key) (*Plan, error) {
	return Decode(bytes.NewReader(file), int64(len(file)), key)
}

func TestSealedFile(t *testing.T) {
	for name, key := range map[string]*Key{"text": {Text: []byte("correct horse")}, "random": {Random: seal.Random()}} {
		t.Run(name, func(t *testing.T) {
			p := secretPlan()
			if !p.HoldsSecrets() {
				t.Error("the plan needs no key")
			}
			file := encoded(t, p, key)
			_, content := entries(t, file)
			for name, text := range content {
				if strings.Contains(text, canary) || strings.Contains(text, "Y2FuYXJ5") {
					t.Errorf("%s shows the canary:\n%s", name, text)
				}
			}
			got, err := decoded(file, key)
			if err != nil {
				t.Fatal(err)
			}
			c, want := got.Changes[0], p.Changes[0]
			if !c.Before.RawEquals(want.Before) || !c.After.RawEquals(want.After) || !c.Config.RawEquals(want.Config) ||
				string(c.Private) != string(want.Private) || string(c.PriorPrivate) != string(want.PriorPrivate) {
				t.Errorf("read back as %#v", c)
			}
			if !got.Variables["token"].RawEquals(p.Variables["token"]) || !got.Outputs[0].After.RawEquals(p.Outputs[0].After) || !got.Signed || got.Locked != nil || got.Unseen != p.Unseen {
				t.Errorf("read back as %#v", got)
			}
			locked, err := decoded(file, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(locked.Locked.Variables, []string{"map", "token"}) || locked.Changes[0].After.GetAttr("plain").AsString() != "seen" ||
				locked.Changes[0].After.GetAttr("pass").IsKnown() || !locked.Variables["open"].RawEquals(cty.StringVal("seen")) {
				t.Errorf("without the key %#v, %#v", locked.Locked, locked.Changes[0].After)
			}
			if err := locked.Recover(state.New("x")); err == nil || !strings.Contains(err.Error(), "t.n: ") {
				t.Errorf("what was read while planning comes from nowhere: %v", err)
			}
		})
	}
	if err := Encode(io.Discard, secretPlan(), nil); err == nil {
		t.Error("secrets are written without a key")
	}
	if _, err := decoded(encoded(t, secretPlan(), &Key{Text: []byte("a")}), &Key{Text: []byte("b")}); !errors.Is(err, ErrKey) {
		t.Errorf("with another text: %v", err)
	}
}

func TestSupply(t *testing.T) {
	p := secretPlan()
	locked, err := decoded(encoded(t, p, &Key{Random: seal.Random()}), &Key{Random: seal.Random()})
	if err != nil {
		t.Fatal(err)
	}
	token, other := p.Variables["token"], p.Variables["map"]
	for want, values := range map[string]map[string]cty.Value{
		`the variable "map" is missing`:                             {"token": token},
		`some of the variables "map" and "token" have other values`: {"map": other, "token": cty.StringVal("x")},
	} {
		if err := locked.Supply(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := locked.Supply(map[string]cty.Value{"map": other, "token": token, "open": cty.StringVal("other")}); err != nil {
		t.Error(err)
	}
	if !locked.Variables["token"].RawEquals(token) || !locked.Variables["open"].RawEquals(cty.StringVal("seen")) {
		t.Errorf("variables are %#v", locked.Variables)
	}
}

// TestTampered changes a signed file in every way.
func TestTampered(t *testing.T) {
	key := &Key{Random: seal.Random()}
	file := encoded(t, secretPlan(), key)
	names, content := entries(t, file)
	change := func(name, old, new string) map[string]string {
		c := map[string]string{}
		for k, v := range content {
			c[k] = v
		}
		if !strings.Contains(c[name], old) {
			t.Fatalf("%s has no %s", name, old)
		}
		c[name] = strings.Replace(c[name], old, new, 1)
		return c
	}
	for what, changed := range map[string][]byte{
		"a module":        pack(t, names, change("files/main.tf", "seen", "SEEN")),
		"an operation":    pack(t, names, change(planEntry, `"action":3`, `"action":4`)),
		"a plain value":   pack(t, names, change(planEntry, `"name":"open"`, `"name":"OPEN"`)),
		"a sealed value":  pack(t, names, change(planEntry, `"sealed":"`, `"sealed":"AAAA`)),
		"the signature":   pack(t, names, change(signatureEntry, content[signatureEntry][:1], "?")),
		"no signature":    pack(t, names[:len(names)-1], content),
		"without modules": pack(t, []string{names[0], signatureEntry}, content),
		"something else":  pack(t, append([]string{"odd"}, names...), content),
		"after the end":   pack(t, append(slices.Clone(names), "files/z.tf"), content),
		"twice":           pack(t, append([]string{names[0]}, names...), content),
	} {
		if p, err := decoded(changed, key); err == nil {
			t.Errorf("%s: read as %#v", what, p)
		}
	}
	for i := range file {
		if i%7 != 0 {
			continue
		}
		if _, err := decoded(file[:i], key); err == nil {
			t.Fatalf("cut at %d of %d", i, len(file))
		}
	}
}

// TestSealedConfiguration seals the files that say a secret, and takes them
// back as they were.
func TestSealedConfiguration(t *testing.T) {
	key := &Key{Random: seal.Random()}
	p := secretPlan()
	said := []byte("variable \"token\" {\n  default = \"" + canary + "\"\n}\n")
	quoted := []byte(`{"x": "` + "a\\n" + canary + `"}`)
	p.Files["secret.tf"], p.Files["m/quoted.tf.json"] = said, quoted
	file := encoded(t, p, key)
	names, content := entries(t, file)
	if want := []string{planEntry, "sealed/m/quoted.tf.json", "files/main.tf", "sealed/secret.tf", signatureEntry}; !slices.Equal(names, want) {
		t.Errorf("entries: %q", names)
	}
	for name, text := range content {
		if strings.Contains(text, canary) {
			t.Errorf("%s holds the secret", name)
		}
	}
	if got, err := decoded(file, key); err != nil || !bytes.Equal(got.Files["secret.tf"], said) || !bytes.Equal(got.Files["m/quoted.tf.json"], quoted) {
		t.Errorf("with the key: %v", err)
	}
	got, err := decoded(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"m/quoted.tf.json", "secret.tf"}; !slices.Equal(got.SealedFiles(), want) || got.Files["secret.tf"] != nil {
		t.Errorf("without the key %q are missing", got.SealedFiles())
	}
	if got.SupplyFile("secret.tf", append(said, '\n')) == nil || got.SupplyFile("main.tf", nil) == nil || len(got.SealedFiles()) != 2 {
		t.Error("another file was taken for it")
	}
	if err := got.SupplyFile("secret.tf", said); err != nil || !bytes.Equal(got.Files["secret.tf"], said) {
		t.Error("the same file was not taken", err)
	}
	content["sealed/secret.tf"], content["sealed/m/quoted.tf.json"] = content["sealed/m/quoted.tf.json"], content["sealed/secret.tf"]
	if _, err := decoded(pack(t, names, content), key); err == nil {
		t.Error("files may be exchanged")
	}
}
