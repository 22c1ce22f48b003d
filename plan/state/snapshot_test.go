package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
)

func readTestdata(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/v4.tfstate")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGolden reads a snapshot as Terraform writes it and writes it back, from
// its text and anew.
func TestGolden(t *testing.T) {
	text := readTestdata(t)
	s, err := Decode("v4", text)
	if err != nil {
		t.Fatal(err)
	}
	// One thing differs: resources of the root module come first, data last.
	if got := s.Encode(s.Serial()); !equalSorted(got, text) {
		t.Errorf("written back:\n%s", cmp.Diff(string(text), string(got)))
	}
	var all []Change
	for _, a := range s.Instances() {
		again := func(deposed string, o *Object) {
			all = append(all, Change{a, deposed, o.WithMeta(func(*Meta) {})})
		}
		if o := s.Current(a); o != nil {
			again("", o)
		}
		for k, o := range s.Deposed(a) {
			again(k, o)
		}
	}
	n, err := Decode("again", s.WithChanges(all, nil).Encode(9))
	if err != nil {
		t.Fatal(err)
	}
	if n.Serial() != 9 || n.Lineage() != s.Lineage() || !equalOutputs(n.Outputs(), s.Outputs()) {
		t.Errorf("serial %d, lineage %q, outputs %#v", n.Serial(), n.Lineage(), n.Outputs())
	}
	for _, a := range s.Instances() {
		if !s.slot(a).equal(n.slot(a)) {
			t.Errorf("%s became %+v", a, n.Current(a))
		}
	}
	if d := cmp.Diff(fmt.Sprint(s.Instances()), fmt.Sprint(n.Instances())); d != "" {
		t.Error(d)
	}
}

// equalSorted compares texts as sets of lines.
func equalSorted(a, b []byte) bool {
	count := map[string]int{}
	for _, l := range strings.Split(string(a), "\n") {
		count[strings.TrimSuffix(l, ",")]++
	}
	for _, l := range strings.Split(string(b), "\n") {
		count[strings.TrimSuffix(l, ",")]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestDecode(t *testing.T) {
	s, err := Decode("v4", readTestdata(t))
	if err != nil {
		t.Fatal(err)
	}
	gpu := address.Resource{Type: "metal_node", Name: "gpu"}
	want := `[metal_node.gpu["gpu \"1\""] metal_node.gpu["gpu2"] data.metal_image.debian ` +
		`module.net[0].metal_firewall.machine[0] module.net[0].metal_firewall.machine[10]]`
	if got := fmt.Sprint(s.Instances()); got != want {
		t.Errorf("instances:\n%s\nwant\n%s", got, want)
	}
	o := s.Current(gpu.Instance(address.StringKey(`gpu "1"`)))
	if o.Provider != `provider["registry.terraform.io/stokehq/metal"].lab` || !o.CreateBeforeDestroy || o.SchemaVersion != 1 ||
		string(o.Private) != `{"schema_version":"1"}` || len(o.Dependencies) != 2 {
		t.Errorf("meta: %+v", o.Meta)
	}
	paths := []cty.Path{cty.GetAttrPath("password"), cty.GetAttrPath("disks").IndexInt(0).IndexString("key")}
	if !equalPaths(o.Sensitive, paths) {
		t.Errorf("sensitive: %#v", o.Sensitive)
	}
	ty := cty.Object(map[string]cty.Type{"big": cty.Number, "name": cty.String, "password": cty.String, "tags": cty.Map(cty.String)})
	v, err := o.Value(ty)
	if err != nil || v.GetAttr("password").AsString() != "<secret>" {
		t.Errorf("value: %#v %v", v, err)
	}
	if v2, _ := o.Value(ty); !v2.RawEquals(v) {
		t.Error("the value changes")
	}
	if _, err := o.Value(cty.Object(map[string]cty.Type{"name": cty.Bool})); err == nil {
		t.Error("a value of another type was made")
	}
	two := gpu.Instance(address.StringKey("gpu2"))
	if !s.Current(two).Tainted || string(s.Deposed(two)["0a1b2c3d"].JSON) == "" {
		t.Errorf("gpu2: %+v, deposed %v", s.Current(two), s.Deposed(two))
	}
}

func TestDecodeErrors(t *testing.T) {
	good := string(readTestdata(t))
	edit := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("no %q in the snapshot", from)
		}
		return strings.Replace(good, from, to, 1)
	}
	const inst = `{"version":4,"serial":1,"lineage":"l","resources":[{"mode":"managed","type":"a","name":"b","provider":"p","instances":[%s]}]}`
	tests := map[string]struct{ text, want string }{
		"empty":            {"", "corrupt at byte 0: the file is empty"},
		"blank":            {" \n", "it ends where an object should be: it is truncated"},
		"truncated":        {good[:len(good)/2], "truncated"},
		"one byte short":   {strings.TrimSpace(good)[:len(good)-2], "truncated"},
		"binary":           {"\x7fELF\x02\x01\x01\x00\xff", "at byte 8: the byte 0xff is not UTF-8"},
		"nul":              {strings.Repeat("\x00", 500), "at byte 0: found '\\x00' where an object"},
		"other JSON":       {`{"a":1}`, `no member "version"`},
		"array":            {`[]`, "where an object should be"},
		"trailing":         {good + "{}", "after the end"},
		"older":            {`{"version":3,"modules":[]}`, "format version 3, which is no longer read"},
		"newer":            {`{"x":{"y":[{}]},"resources":{},"version":6}`, "format version 6, and this program knows none above 4"},
		"newer first":      {`{"version":6,"resources":{}}`, "format version 6, and this program knows none above 4"},
		"version text":     {edit(`"version": 4`, `"version": "4"`), "where a whole number should be"},
		"version fraction": {edit(`"version": 4`, `"version": 4.5`), "not a whole number"},
		"huge serial":      {edit(`"serial": 7`, `"serial": 1e999`), "the number 1e999 is not a whole number of 64 bits"},
		"negative serial":  {edit(`"serial": 7`, `"serial": -7`), "where a whole number should be"},
		"twice":            {edit(`"serial": 7`, `"serial": 7, "serial": 8`), `the member "serial" is given twice`},
		"duplicate":        {edit(`"index_key": 10`, `"index_key": 0`), "module.net[0].metal_firewall.machine[0] is there twice"},
		"duplicate deposed": {fmt.Sprintf(inst, `{"deposed":"x","attributes":{}},{"deposed":"x","attributes":{}}`),
			"a.b (deposed object x) is there twice"},
		"attributes twice": {fmt.Sprintf(inst, `{"attributes":{},"attributes":{"a":1}}`), `the member "attributes" is given twice`},
		"many members":     {`{"version":4` + manyMembers(1001) + "}", "more than 1000 members"},
		"no attributes":    {fmt.Sprintf(inst, `{"schema_version":0}`), "has no attributes"},
		"null attributes":  {fmt.Sprintf(inst, `{"attributes":null}`), "has no attributes"},
		"list attributes":  {fmt.Sprintf(inst, `{"attributes":[]}`), "where an object of attributes should be"},
		"bad number":       {fmt.Sprintf(inst, `{"attributes":{"a":01}}`), "where"},
		"bad escape":       {fmt.Sprintf(inst, `{"attributes":{"a":"\x"}}`), "escape"},
		"raw newline":      {fmt.Sprintf(inst, "{\"attributes\":{\"a\":\"\n\"}}"), "control character"},
		"half key":         {fmt.Sprintf(inst, `{"index_key":1.5,"attributes":{}}`), "1.5 is not a whole number"},
		"huge key":         {fmt.Sprintf(inst, `{"index_key":99999999999,"attributes":{}}`), "larger than any count"},
		"object key":       {fmt.Sprintf(inst, `{"index_key":{},"attributes":{}}`), "where an instance key"},
		"status":           {fmt.Sprintf(inst, `{"status":"odd","attributes":{}}`), `the status "odd" is unknown`},
		"private":          {fmt.Sprintf(inst, `{"private":"#","attributes":{}}`), "not base64"},
		"dependencies":     {fmt.Sprintf(inst, `{"dependencies":"a","attributes":{}}`), "where an array should be"},
		"path":             {fmt.Sprintf(inst, `{"sensitive_attributes":[[{"type":"odd","value":1}]],"attributes":{}}`), `unknown type "odd"`},
		"path value":       {fmt.Sprintf(inst, `{"sensitive_attributes":[[{"type":"get_attr","value":1}]],"attributes":{}}`), "where a string"},
		"mode":             {edit(`"mode": "data"`, `"mode": "odd"`), `mode is "odd"`},
		"type":             {edit(`"type": "metal_image"`, `"type": "a b"`), `"a b" is no type`},
		"module":           {edit(`"module": "module.net[0]"`, `"module": "net"`), `"net" is no module's address`},
		"output type":      {edit(`"type": "number"`, `"type": "odd"`), "the output does not decode"},
		"output value":     {edit(`0.9712`, `"x"`), "the output does not decode"},
		"hidden type": {`{"version":4,"serial":1,"lineage":"l","outputs":{"o":{"value":[{"value":1,"type":"number"}],"type":["tuple",["dynamic"]]}}}`,
			"not wholly known"},
		"deep": {`{"version":4,"x":` + strings.Repeat("[", 200000), "nests deeper than 10000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Decode("terraform.tfstate", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "terraform.tfstate") {
				t.Errorf("error: %v\nwant: %s", err, tt.want)
			}
			m := newMemory()
			m.snapshot = []byte(tt.text)
			if _, err := Open(t.Context(), m); err == nil {
				t.Error("it was opened")
			}
		})
	}
}

// TestTruncated reads every beginning of a snapshot.
func TestTruncated(t *testing.T) {
	text := bytes.TrimSpace(readTestdata(t))
	for i := range text {
		var c *CorruptError
		if _, err := Decode("x", text[:i]); !errors.As(err, &c) {
			t.Fatalf("the first %d bytes: %v", i, err)
		} else if c.Offset != int64(i) && c.Reason == "" {
			t.Fatalf("the first %d bytes: %v", i, err)
		}
	}
}

func TestEncodeValues(t *testing.T) {
	text := "<>&\"\\\n\t\x01\u2028é\U0001f525"
	v := cty.ObjectVal(map[string]cty.Value{
		"a": cty.StringVal(text),
		"d": cty.TupleVal([]cty.Value{cty.NumberIntVal(1)}),
		"n": cty.MustParseNumberVal("1e100000"),
	})
	ty := cty.Object(map[string]cty.Type{"a": cty.String, "d": cty.DynamicPseudoType, "n": cty.Number})
	sensitive := []cty.Path{cty.GetAttrPath("a"), cty.GetAttrPath("d").Index(cty.MustParseNumberVal("1e30"))}
	o, err := NewObject(v, ty, Meta{Provider: "p" + text, Private: []byte{0, 255}, Sensitive: sensitive})
	if err != nil {
		t.Fatal(err)
	}
	a := instance("x", address.StringKey(text))
	s := New("l").WithChanges([]Change{{Address: a, Object: o}}, map[string]Output{
		text:   {Value: cty.MapVal(map[string]cty.Value{text: cty.True})},
		"null": {Value: cty.NullVal(cty.List(cty.String)), Sensitive: true},
		"untyped": {Value: cty.TupleVal([]cty.Value{
			cty.NullVal(cty.DynamicPseudoType), cty.MapVal(map[string]cty.Value{"a": cty.NullVal(cty.DynamicPseudoType)}),
		})},
	})
	n, err := Decode("x", s.Encode(1))
	if err != nil {
		t.Fatal(err)
	}
	if got := n.Current(a); !got.Equal(o) {
		t.Errorf("got %+v\nwant %+v", got, o)
	} else if w, err := got.Value(ty); err != nil || !w.RawEquals(v) {
		t.Errorf("value %#v %v", w, err)
	}
	if !equalOutputs(s.Outputs(), n.Outputs()) {
		t.Errorf("outputs %#v", n.Outputs())
	}
	for _, bad := range []cty.Value{cty.UnknownVal(ty), v.Mark("m"), cty.StringVal("")} {
		if _, err := NewObject(bad, ty, Meta{}); err == nil {
			t.Errorf("%#v was encoded", bad)
		}
	}
}

// TestTwoProviders stores objects of one resource that belong to different
// providers, as in the middle of a move from one to the other.
func TestTwoProviders(t *testing.T) {
	var changes []Change
	for i := range 4 {
		o := object(t, fmt.Sprint(i)).WithMeta(func(m *Meta) { m.Provider = fmt.Sprint("p", i%2) })
		changes = append(changes, Change{Address: instance("x", address.IntKey(i)), Object: o})
	}
	n, err := Decode("x", New("l").WithChanges(changes, nil).Encode(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if !n.Current(c.Address).Equal(c.Object) {
			t.Errorf("%s: %+v", c.Address, n.Current(c.Address))
		}
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":0`, i)
	}
	return b.String()
}
