package metal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// factsOf are facts that package facts read from a machine's answer.
func factsOf(t *testing.T, name string) facts.Facts {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("facts", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var f facts.Facts
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFactsValue(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"ubuntu2404-hgx", "debian12", "microvm"} {
		f := factsOf(t, name)
		o, diags := factsObject(ctx, f)
		if diags.HasError() {
			t.Fatal(diags)
		}
		var back facts.Facts
		if diags := o.As(ctx, &back, basetypes.ObjectAsOptions{}); diags.HasError() {
			t.Fatalf("%s: %s is not read back: %v", name, o, diags)
		}
		if diff := cmp.Diff(f, back); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if o, diags := factsObject(ctx, facts.Facts{}); diags.HasError() || o.IsNull() {
		t.Errorf("facts of which nothing is known: %s %v", o, diags)
	}
}

// TestRecordedFacts: what the state does not keep is null there and not 0; a state
// that says 0, as earlier ones did, is as good.
func TestRecordedFacts(t *testing.T) {
	ctx := context.Background()
	f := factsOf(t, "ubuntu2404-hgx")
	f.Clock.Offset, f.Clock.Resolution = 0.4, 0.1
	_, o, diags := recorded(ctx, f)
	if diags.HasError() {
		t.Fatal(diags)
	}
	null := func(at ...any) bool {
		var v attr.Value = o
		for _, step := range at {
			switch step := step.(type) {
			case string:
				v = v.(types.Object).Attributes()[step]
			case int:
				v = v.(types.List).Elements()[step]
			}
		}
		return v.IsNull()
	}
	if !null("listeners") || !null("filesystems", 0, "free") || !null("space", 0, "free") || !null("space", 0, "free_inodes") ||
		!null("clock", "offset") || !null("clock", "resolution") || null("filesystems", 0, "size") || null("clock", "synchronized") {
		t.Errorf("it keeps %s", o)
	}
	// A machine that was booted once more, or that another user looks at, is as it was.
	again := f
	again.Sudo.User, again.BootID, again.NICs = "another", "another", slices.Clone(f.NICs)
	bridges := 0
	for i, nic := range f.NICs {
		if nic.Name == "docker0" {
			again.NICs[i].MAC = "02:42:00:00:00:99"
			bridges++
		}
	}
	if _, after, _ := recorded(ctx, again); bridges != 1 || !after.Equal(o) || !null("boot_id") {
		t.Errorf("a reboot shows as drift (%d bridges): %s", bridges, after)
	}
	for i, nic := range f.NICs {
		if nic.Kind == "physical" {
			again.NICs[i].MAC = "02:00:00:00:00:01"
			break
		}
	}
	if _, after, _ := recorded(ctx, again); after.Equal(o) {
		t.Error("another network card is not seen")
	}
	f.Clock.Offset = -7.5
	if _, o, _ = recorded(ctx, f); null("clock", "offset") || !null("clock", "resolution") {
		t.Error("a clock that is far off is not kept")
	}
	m := &hosttest.Machine{Answer: func(host.Command) (hosttest.Answer, bool) {
		b, err := os.ReadFile(filepath.Join("facts", "testdata", "debian12.txt"))
		// By its clock it is now, however long this takes.
		now := time.Now()
		out := regexp.MustCompile(`(?m)^(#begin|#end)\n .*$`).ReplaceAllString(string(b), fmt.Sprintf("${1}\n %d.%09d", now.Unix(), now.Nanosecond()))
		return hosttest.Answer{Stdout: out, Err: err}, true
	}}
	var state hostModel
	section := factsSection{newSettings(connect.SSHSettings{}, newShared())}
	if err := section.observe(ctx, m, nil, &state); err != nil || state.Facts.IsNull() {
		t.Fatalf("%s %v", state.Facts, err)
	}
	now := state.Facts
	seen, err := facts.Gather(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	zeros, _, diags := recorded(ctx, seen)
	if diags.HasError() || zeros.Equal(now) {
		t.Fatal(diags)
	}
	state.Facts = zeros
	if err := section.observe(ctx, m, nil, &state); err != nil || !state.Facts.Equal(zeros) {
		t.Errorf("a state of before shows drift: %v", err)
	}
	seen.Hostname = "renamed"
	state.Facts, _ = factsObject(ctx, seen.Stable())
	if err := section.observe(ctx, m, nil, &state); err != nil || !state.Facts.Equal(now) {
		t.Errorf("a change is not seen: %v", err)
	}
}

// TestFactsDescribed: every fact is an attribute with a description, of the type
// that it has.
func TestFactsDescribed(t *testing.T) {
	var resp datasource.SchemaResponse
	new(hostFacts).Schema(context.Background(), datasource.SchemaRequest{}, &resp)
	if diags := resp.Schema.ValidateImplementation(context.Background()); diags.HasError() {
		t.Fatal(diags)
	}
	fields := reflect.TypeFor[facts.Facts]()
	for i := range fields.NumField() {
		name := nameOf(fields.Field(i))
		a, ok := resp.Schema.Attributes[name]
		if !ok || !a.IsComputed() || a.GetDescription() == "" {
			t.Errorf("%s: there %v, %v", name, ok, a)
			continue
		}
		if want := typeOf(fields.Field(i).Type); !a.GetType().Equal(attr.Type(want)) {
			t.Errorf("%s is %s, not %s", name, a.GetType(), want)
		}
	}
	new(knownHost).Schema(context.Background(), datasource.SchemaRequest{}, &resp)
	if diags := resp.Schema.ValidateImplementation(context.Background()); diags.HasError() {
		t.Fatal(diags)
	}
}
