package plan

import (
	"archive/zip"
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/providers"
)

func TestSorted(t *testing.T) {
	ops := []Op{{Change: 0, After: []int32{2}}, {Change: 1}, {Change: 2, After: []int32{1, 3}}, {Change: 3}}
	got, stuck := sorted(ops, nil)
	if stuck != nil {
		t.Fatalf("stuck: %v", stuck)
	}
	var order []int32
	for i, op := range got {
		order = append(order, op.Change)
		for _, before := range op.After {
			if before >= int32(i) {
				t.Errorf("operation %d waits for %d, which comes later", i, before)
			}
		}
	}
	if !slices.Equal(order, []int32{1, 3, 2, 0}) {
		t.Errorf("order %v", order)
	}
	ops[1].After = []int32{0}
	if _, stuck := sorted(ops, nil); !slices.Equal(stuck, []int32{0, 1, 2}) {
		t.Errorf("of a cycle 0, 1, 2 are stuck, not %v", stuck)
	}
}

// TestSortedPreferencesGrow has many operations that cannot come after the one
// that waits for all of them.
func TestSortedPreferencesGrow(t *testing.T) {
	cost := func(n int32) float64 {
		return testing.AllocsPerRun(3, func() {
			ops := make([]Op, n+1)
			rather := make([]preference, n)
			for i := range n {
				ops[n].After = append(ops[n].After, i)
				rather[i] = preference{op: i, after: n}
			}
			ops[n].Kind = Put
			if _, stuck := sorted(ops, rather); stuck != nil {
				t.Fatal("stuck")
			}
		})
	}
	if small, large := cost(500), cost(4000); large > 12*small {
		t.Errorf("eight times as many operations take %.1f times the allocations", large/small)
	}
}

func TestSortedPreferences(t *testing.T) {
	// 0 waits for 1 and 1 for 2, so that 2 cannot come after 0; everything
	// else can be had.
	ops := []Op{{Change: 0, After: []int32{1}}, {Change: 1, After: []int32{2}}, {Change: 2}, {Change: 3}, {Change: 4}}
	got, stuck := sorted(ops, []preference{{2, 0}, {3, 0}, {4, 2}, {1, 4}})
	if stuck != nil {
		t.Fatalf("stuck: %v", stuck)
	}
	var order []int32
	for _, op := range got {
		order = append(order, op.Change)
	}
	if !slices.Equal(order, []int32{2, 4, 1, 0, 3}) {
		t.Errorf("order %v", order)
	}
	if _, stuck := sorted([]Op{{After: []int32{1}}, {After: []int32{0}}, {}}, []preference{{2, 0}}); len(stuck) != 3 {
		t.Errorf("of a cycle everything that waits for it is stuck, not %v", stuck)
	}
}

func TestIgnoreChanges(t *testing.T) {
	block := &providers.Block{Attributes: map[string]*providers.Attribute{
		"id": {Type: cty.String, Computed: true}, "size": {Type: cty.Number, Optional: true},
		"tags": {Type: cty.Map(cty.String), Optional: true}, "list": {Type: cty.List(cty.String), Optional: true},
	}}
	object := func(size int64, tags map[string]cty.Value, list ...cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{
			"id": cty.NullVal(cty.String), "size": cty.NumberIntVal(size), "tags": cty.MapVal(tags), "list": cty.ListVal(list),
		})
	}
	a, b, c := cty.StringVal("a"), cty.StringVal("b"), cty.StringVal("c")
	prior := object(1, map[string]cty.Value{"x": a, "old": a}, a, b)
	config := object(2, map[string]cty.Value{"x": b, "new": b}, c, c)
	cases := []struct {
		ignore []string
		want   cty.Value
	}{
		{nil, config},
		{[]string{"size"}, object(1, map[string]cty.Value{"x": b, "new": b}, c, c)},
		{[]string{"tags"}, object(2, map[string]cty.Value{"x": a, "old": a}, c, c)},
		{[]string{`tags["x"]`}, object(2, map[string]cty.Value{"x": a, "new": b}, c, c)},
		{[]string{`tags["old"]`, `tags["new"]`}, object(2, map[string]cty.Value{"x": b, "old": a}, c, c)},
		{[]string{"list[1]"}, object(2, map[string]cty.Value{"x": b, "new": b}, c, b)},
		{[]string{"list[7]"}, config},
	}
	for _, tc := range cases {
		var l modules.Lifecycle
		for _, text := range tc.ignore {
			path, diags := hclsyntax.ParseTraversalAbs([]byte(text), "", hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			l.IgnoreChanges = append(l.IgnoreChanges, path)
		}
		if got := IgnoreChanges(config, prior, l, block); !got.RawEquals(tc.want) {
			t.Errorf("ignoring %v: %#v, want %#v", tc.ignore, got, tc.want)
		}
	}
	if got := IgnoreChanges(config, prior, modules.Lifecycle{IgnoreAll: true}, block); !got.RawEquals(prior) {
		t.Errorf("ignoring all: %#v", got)
	}
	null := cty.NullVal(block.ImpliedType())
	if got := IgnoreChanges(config, null, modules.Lifecycle{IgnoreAll: true}, block); !got.RawEquals(config) {
		t.Errorf("ignoring all of a new object: %#v", got)
	}
}

func TestPathString(t *testing.T) {
	path := cty.GetAttrPath("a").GetAttr("b").IndexInt(2).IndexString("k")
	if got, want := PathString(path), `a.b[2]["k"]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestKeyless(t *testing.T) {
	r := address.Resource{Module: `module.a["x.y"].module.b[3]`, Type: "t", Name: "n"}
	if got, want := Keyless(r), "module.a.module.b.t.n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzDecode reads plan.jsonl of any content: an error or a plan, no crash.
func FuzzDecode(f *testing.F) {
	var file bytes.Buffer
	thing := address.Resource{Type: "t", Name: "n"}.Instance(address.IntKey(1))
	schema := &providers.ResourceSchema{Block: &providers.Block{Attributes: map[string]*providers.Attribute{"a": {Type: cty.String}}}}
	v := cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x")})
	p := &Plan{
		Changes: []*Change{{
			Addr: thing, Provider: `provider["x/y/z"]`, Action: Update, Before: v, After: cty.UnknownVal(v.Type()),
			Replace: []cty.Path{cty.GetAttrPath("a").IndexInt(0)}, Schema: schema,
		}},
		Ops: []Op{{Kind: Put}}, Variables: map[string]cty.Value{"v": cty.True},
		Outputs: []*OutputChange{{Name: "o", Before: cty.NullVal(cty.DynamicPseudoType), After: cty.Zero}},
	}
	if err := Encode(&file, p, nil); err != nil {
		f.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		f.Fatal(err)
	}
	in, err := z.File[0].Open()
	if err != nil {
		f.Fatal(err)
	}
	seed, err := io.ReadAll(in)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, js []byte) {
		var file bytes.Buffer
		z := zip.NewWriter(&file)
		w, err := z.Create(planEntry)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(js)
		z.Close()
		if p, err := Decode(bytes.NewReader(file.Bytes()), int64(file.Len()), nil); err == nil {
			p.Count()
		}
	})
}
