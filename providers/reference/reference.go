package reference

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Check compares the pages of a provider, which is called name, with its
// schema, or writes them. docs is the folder of the documentation; its page
// index has a link to each of them.
func Check(t *testing.T, p tfprotov6.ProviderServer, name, docs, index string, update bool) {
	t.Helper()
	resp, err := p.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(err, resp.Diagnostics)
	}
	pages := map[string]string{name + ".md": page("The provider block of `"+name+"`", "provider \""+name+"\" { … }", resp.Provider.Block)}
	for name, s := range resp.ResourceSchemas {
		pages[name+".md"] = page(name, "resource \""+name+"\" \"NAME\" { … }", s.Block)
	}
	for name, s := range resp.DataSourceSchemas {
		file := name + ".md"
		if pages[file] != "" { // a resource has the name, too
			file = name + "_data.md"
		}
		pages[file] = page("The data source "+name, "data \""+name+"\" \"NAME\" { … }", s.Block)
	}
	there, err := filepath.Glob(filepath.Join(docs, "reference", name+"*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range there {
		if pages[filepath.Base(file)] == "" {
			t.Errorf("%s is of nothing that there is", file)
		}
	}
	links, err := os.ReadFile(filepath.Join(docs, index))
	if err != nil {
		t.Error(err)
	}
	for name, text := range pages {
		file := filepath.Join(docs, "reference", name)
		if update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if is, err := os.ReadFile(file); err != nil || string(is) != text {
			t.Errorf("%s is not what the schema says: run this test with -update (%v)", file, err)
		}
		if !strings.Contains(string(links), "(reference/"+name+")") {
			t.Errorf("%s has no link to %s", index, name)
		}
	}
}

// described is an argument or a result, or what a block has of them.
type described struct {
	name, kind, text string
	given            bool // it is an argument
	required         bool
	parts            []described
}

func page(title, written string, b *tfprotov6.SchemaBlock) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n\n%s\n\n`%s`\n", title, b.Description, written)
	tables(&text, "", blockOf(b))
	text.WriteString("\nThis page is made from the schema, by a test.\n")
	return text.String()
}

// tables writes what an object has, and then what each of its objects has.
func tables(page *strings.Builder, within string, all []described) {
	slices.SortFunc(all, func(a, b described) int { return cmp.Compare(a.name, b.name) })
	for _, given := range []bool{true, false} {
		heading := map[bool]string{true: "Argument", false: "Result"}[given]
		for _, d := range all {
			if d.given != given {
				continue
			}
			if heading != "" {
				fmt.Fprintf(page, "\n| %s | | |\n|---|---|---|\n", heading)
				heading = ""
			}
			kind := d.kind
			if d.required {
				kind += ", required"
			}
			fmt.Fprintf(page, "| `%s` | %s | %s |\n", d.name, kind, strings.NewReplacer("|", `\|`, "\n", " ").Replace(d.text))
		}
	}
	for _, d := range all {
		if len(d.parts) > 0 {
			fmt.Fprintf(page, "\n## `%s`\n", within+d.name)
			tables(page, within+d.name+".", d.parts)
		}
	}
}

func blockOf(b *tfprotov6.SchemaBlock) []described {
	all := attributesOf(b.Attributes)
	for _, n := range b.BlockTypes {
		kind := map[tfprotov6.SchemaNestedBlockNestingMode]string{tfprotov6.SchemaNestedBlockNestingModeSingle: "block", tfprotov6.SchemaNestedBlockNestingModeList: "blocks"}[n.Nesting]
		all = append(all, described{name: n.TypeName, kind: cmp.Or(kind, "blocks"), text: n.Block.Description, given: true, parts: blockOf(n.Block)})
	}
	return all
}

func attributesOf(attributes []*tfprotov6.SchemaAttribute) []described {
	var all []described
	for _, a := range attributes {
		d := described{name: a.Name, text: a.Description, given: a.Required || a.Optional, required: a.Required}
		switch {
		case a.NestedType != nil:
			d.kind = map[tfprotov6.SchemaObjectNestingMode]string{
				tfprotov6.SchemaObjectNestingModeSingle: "object", tfprotov6.SchemaObjectNestingModeList: "list of objects",
				tfprotov6.SchemaObjectNestingModeSet: "set of objects", tfprotov6.SchemaObjectNestingModeMap: "map of objects",
			}[a.NestedType.Nesting]
			d.parts = attributesOf(a.NestedType.Attributes)
		default:
			d.kind = kindOf(a.Type)
		}
		if a.Sensitive {
			d.kind += ", sensitive"
		}
		if a.WriteOnly {
			d.kind += ", write-only"
		}
		all = append(all, d)
	}
	return all
}

// kindOf is a type as people call it; of an object that has no descriptions, the
// names of what it has.
func kindOf(t tftypes.Type) string {
	switch t := t.(type) {
	case tftypes.List:
		return "list of " + kindOf(t.ElementType)
	case tftypes.Set:
		return "set of " + kindOf(t.ElementType)
	case tftypes.Map:
		return "map of " + kindOf(t.ElementType)
	case tftypes.Object:
		return "object (" + strings.Join(slices.Sorted(maps.Keys(t.AttributeTypes)), ", ") + ")"
	}
	switch {
	case t.Is(tftypes.Bool):
		return "bool"
	case t.Is(tftypes.Number):
		return "number"
	case t.Is(tftypes.DynamicPseudoType):
		return "any"
	}
	return "string"
}
