package view

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

func markdown(t *testing.T, pl *plan.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if err := Markdown(&b, pl); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "hunter") || strings.Contains(b.String(), "\x1b") {
		t.Error("something got through that must not")
	}
	return b.String()
}

func TestMarkdownKinds(t *testing.T) {
	kept := data(str("i-1"), str("a"), str("a"), noValue)
	null := cty.NullVal(kept.Type())
	from := func(addr, previous string, c *plan.Change) *plan.Change {
		c.Addr, c.Schema = instance(t, addr), dataSchema
		if previous != "" {
			c.Previous = instance(t, previous)
		}
		return c
	}
	var b strings.Builder
	for _, test := range []struct {
		name string
		pl   *plan.Plan
	}{
		{"nothing", &plan.Plan{}},
		{"nothing to destroy", &plan.Plan{Mode: plan.Destroy}},
		{"refactoring", &plan.Plan{
			Workspace: "blue", Targets: []string{"terraform_data.new"},
			Changes: []*plan.Change{
				from("terraform_data.new", "terraform_data.old", &plan.Change{Before: kept, After: kept}),
				from("terraform_data.in", "", &plan.Change{Before: kept, After: kept, Importing: "id-1", Generated: "resource…"}),
				from("terraform_data.left", "", &plan.Change{Action: plan.Forget, Before: kept, After: null}),
			},
			Moves: []plan.Move{{From: instance(t, "terraform_data.old"), To: instance(t, "terraform_data.new")}},
		}},
		{"drift", &plan.Plan{Mode: plan.RefreshOnly,
			Drift:     []*plan.Change{from("terraform_data.d", "", &plan.Change{Before: kept, After: data(str("i-1"), str("b"), str("a"), noValue)}), from("terraform_data.e", "", &plan.Change{Before: kept, After: null})},
			Refreshed: []*plan.Change{from("terraform_data.d", "", &plan.Change{Before: kept, After: kept})}}},
		{"deferred", &plan.Plan{Deferred: []*plan.Deferral{{
			Change: from("terraform_data.many", "", &plan.Change{Action: plan.Create, Before: null, After: null}), Reason: plan.InstanceCountUnknown,
			Subject: "terraform_data.many", Argument: "count", Because: []string{"terraform_data.one", "terraform_data.two"}}},
			Checks: []state.CheckResult{{Status: state.CheckPassed}, {Status: state.CheckPassed}, {Status: state.CheckFailed}, {Status: state.CheckUnknown}}}},
		{"destroy", &plan.Plan{Mode: plan.Destroy, Locked: &plan.Locked{},
			Changes: []*plan.Change{from("terraform_data.d", "", &plan.Change{Action: plan.Delete, Before: kept, After: null})}}},
	} {
		b.WriteString("<!-- " + test.name + " -->\n\n" + markdown(t, test.pl) + "\n")
	}
	golden(t, "kinds.md", b.String())
}

// evil is what somebody may write wherever a text comes from outside.
const evil = "EVIL`\n```\n````diff\n</code></summary></details>\n\n# EVIL\n<img src=x onerror=EVIL> @EVIL | [EVIL](http://EVIL) <!-- EVIL\n~~~\n\r\nEVIL \x1b[31m \u202eEVIL"

func hostilePlan(t *testing.T) *plan.Plan {
	at := address.Resource{Type: "terraform_data", Name: "a"}.Instance(address.StringKey(evil))
	null := cty.NullVal(cty.DynamicPseudoType)
	value := func(v string) cty.Value {
		return data(str(v), cty.ObjectVal(object{v: str(v), "text": str("x\n" + strings.ReplaceAll(strings.ReplaceAll(v, "\r", ""), "\x1b", "") + "\n")}), str(v), noValue)
	}
	pl := &plan.Plan{Workspace: evil, Targets: []string{evil}, Warnings: []plan.Warning{{Summary: evil, Detail: evil, File: evil, Line: 1}}}
	for _, a := range []plan.Action{plan.Create, plan.Delete, plan.DeleteThenCreate, plan.Update, plan.Forget, plan.Read} {
		c := &plan.Change{Addr: at, Action: a, Reason: plan.ReplaceCannotUpdate, Replace: []cty.Path{cty.GetAttrPath("input").IndexString(evil)}, Schema: dataSchema, Before: value(evil), After: value(evil + "!"), Importing: evil, Generated: evil}
		switch a {
		case plan.Create, plan.Read:
			c.Before = null
		case plan.Delete:
			c.After, c.Reason, c.Deposed = null, plan.DeleteEachKey, evil
		case plan.Update:
			c.Previous = at
		}
		pl.Changes = append(pl.Changes, c)
		pl.Drift = append(pl.Drift, c)
		pl.Deferred = append(pl.Deferred, &plan.Deferral{Change: c, Reason: plan.InstanceCountUnknown, Subject: evil, Argument: "count", Because: []string{evil}})
	}
	for _, kind := range []providers.NoteKind{providers.NoteCost, providers.NoteDisruption, providers.NoteFact} {
		pl.Notes = append(pl.Notes, providers.Note{Address: evil, Kind: kind, Text: evil, Path: cty.GetAttrPath(evil)}, providers.Note{Address: at.String(), Kind: kind, Text: evil})
	}
	pl.Outputs = []*plan.OutputChange{{Name: "o", Action: plan.Update, Before: str(evil), After: str("x\n" + evil)}}
	return pl
}

// Nothing that comes from outside stands anywhere but in code.
func TestMarkdownHostile(t *testing.T) {
	text := markdown(t, hostilePlan(t))
	if !strings.Contains(text, "EVIL") {
		t.Fatal("nothing is shown at all")
	}
	if left := outsideCode(t, text); strings.Contains(left, "EVIL") {
		t.Errorf("something got out of its fence:\n%s\n---\n%s", left, text)
	}
	obj, err := state.NewObject(data(str(evil), str(evil+"\nx"), noValue, noValue), dataSchema.Block.ImpliedType(), state.Meta{Provider: dataProvider, Tainted: true})
	if err != nil {
		t.Fatal(err)
	}
	at := address.Resource{Type: "terraform_data", Name: "a"}.Instance(address.StringKey(evil))
	st := state.New("l").WithChanges([]state.Change{{Address: at, Object: obj}}, map[string]state.Output{"o": {Value: str(evil)}})
	var b bytes.Buffer
	if err := StateMarkdown(&b, st, schemas); err != nil {
		t.Fatal(err)
	}
	if left := outsideCode(t, b.String()); strings.Contains(left, "EVIL") || !strings.Contains(b.String(), "EVIL") {
		t.Errorf("something got out of its fence:\n%s", left)
	}
}

var (
	opening  = regexp.MustCompile("^(`{3,})[a-z]*$")
	htmlLine = regexp.MustCompile(`^<details><summary>(?:<code>[^<]*</code>)?[^<]*</summary>$`)
)

// outsideCode is a text without its code, read as CommonMark reads it: fences
// by line, code spans by runs of backticks of one length, HTML as it stands.
func outsideCode(t *testing.T, text string) string {
	t.Helper()
	var out []string
	fence := ""
	for _, line := range strings.Split(text, "\n") {
		switch m := opening.FindStringSubmatch(line); {
		case fence != "":
			if trimmed := strings.TrimSpace(line); strings.Trim(trimmed, "`") == "" && len(trimmed) >= len(fence) {
				fence = ""
			}
		case m != nil:
			fence = m[1]
		case htmlLine.MatchString(line):
			out = append(out, regexp.MustCompile(`<code>[^<]*</code>`).ReplaceAllString(line, ""))
		default:
			out = append(out, withoutSpans(line))
		}
	}
	if fence != "" {
		t.Error("a fence does not end")
	}
	return strings.Join(out, "\n")
}

func withoutSpans(line string) string {
	runs := regexp.MustCompile("`+").FindAllStringIndex(line, -1)
	var b strings.Builder
	at := 0
	for i := 0; i < len(runs); i++ {
		for j := i + 1; j < len(runs); j++ {
			if runs[j][1]-runs[j][0] == runs[i][1]-runs[i][0] {
				b.WriteString(line[at:runs[i][0]])
				at, i = runs[j][1], j
				break
			}
		}
	}
	return b.String() + line[at:]
}

func TestMarkdownCode(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"a", "`a`"}, {"", "` `"}, {"a`b", "`` a`b ``"}, {"`", "`` ` ``"}, {" a", "`  a `"}, {"a\nb", "`a·b`"},
		{strings.Repeat("`", 100), strings.Repeat("`", 17) + " " + strings.Repeat("`", 16) + "… " + strings.Repeat("`", 17)},
		{strings.Repeat("x", 400), "`" + strings.Repeat("x", 299) + "…`"},
	} {
		if got := code(test.in); got != test.want {
			t.Errorf("code(%.20q) = %s, want %s", test.in, got, test.want)
		}
	}
}

// A comment has a limit, however much changes; what is left out is counted.
func TestMarkdownLimit(t *testing.T) {
	null := cty.NullVal(cty.DynamicPseudoType)
	for _, test := range []struct {
		name   string
		n, len int
	}{{"many", 20000, 10}, {"large", 40, 200000}} {
		pl := hostilePlan(t)
		long := strings.Repeat("é`y\n", test.len/4)
		for i := range test.n {
			addr := address.Resource{Type: "terraform_data", Name: "x"}.Instance(address.IntKey(i))
			v := data(str("i-1"), str(long), str(long), noValue)
			pl.Changes = append(pl.Changes,
				&plan.Change{Addr: addr, Action: plan.Delete, Schema: dataSchema, Before: v, After: null},
				&plan.Change{Addr: addr, Action: plan.Create, Schema: dataSchema, Before: null, After: v})
			pl.Drift = append(pl.Drift, &plan.Change{Addr: addr, Schema: dataSchema, Before: v, After: null})
			pl.Notes = append(pl.Notes, providers.Note{Address: addr.String(), Kind: providers.NoteDisruption, Text: long})
			pl.Outputs = append(pl.Outputs, &plan.OutputChange{Name: fmt.Sprintf("o%d", i), Action: plan.Create, After: str(long)})
			pl.Warnings = append(pl.Warnings, plan.Warning{Summary: long, Detail: fmt.Sprint(i, long)})
		}
		text := markdown(t, pl)
		if len(text) > markdownLimit || !utf8.ValidString(text) {
			t.Errorf("%s: %d bytes", test.name, len(text))
		}
		if left := outsideCode(t, text); !strings.Contains(left, "more\n") || !strings.Contains(left, "shows everything") {
			t.Errorf("%s: nothing says what is missing:\n%s", test.name, left)
		}
	}
}
