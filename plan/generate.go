package plan

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/providers"
)

// generation is configuration that was written for imported objects without
// one.
type generation struct {
	found  map[address.Instance]object
	config map[address.Resource]Generated
}

// generate looks up the imported objects of the root module that have no
// configuration, writes it, and puts it into the request's root module as if
// it had been there.
func generate(ctx context.Context, r *Request) (*generation, hcl.Diagnostics) {
	p, diags := newPlanner(ctx, *r)
	if diags.HasErrors() {
		return nil, diags
	}
	defer p.ev.Close()
	defer p.watchCancel(ctx)()
	g := &generation{found: map[address.Instance]object{}, config: map[address.Resource]Generated{}}
	p.prior = r.State
	p.ev.Do(func(t *eval.Task) {
		for _, blocks := range p.imports.blocks {
			for _, block := range blocks {
				p.generateFor(ctx, t, block, g)
			}
		}
	})
	diags = append(diags, p.ev.Diagnostics()...)
	if diags.HasErrors() || len(g.config) == 0 {
		return g, diags
	}
	root, more := modules.Extend(r.Root, r.Files, generatedName(r.Dir, r.GenerateTo), g.text())
	r.Root = root
	return g, append(diags, more...)
}

// generatedName is the name of the generated file among the module's files,
// wherever it will be written.
func generatedName(dir, path string) string {
	name := filepath.Base(path)
	if !strings.HasSuffix(name, ".tf") {
		name += ".tf"
	}
	return filepath.Join(dir, name)
}

func (p *planner) generateFor(ctx context.Context, t *eval.Task, block *eval.Import, g *generation) {
	to := block.Decl.To.Target
	if len(to.Steps) > 0 || p.ev.Declaration(*to.Resource) != nil {
		return
	}
	targets, ok := block.Targets(t)
	if !ok {
		return
	}
	for addr, target := range targets {
		if !addr.Key.IsZero() || !p.contains(addr) || p.prior.Current(addr) != nil {
			continue // said to be not configured later on
		}
		ref := modules.ProviderRef{Name: modules.ImpliedProvider(addr.Type), Range: block.Decl.Range}
		if block.Decl.Provider != nil {
			ref = *block.Decl.Provider
		}
		owner, ok := p.ev.Root().Provider(t, ref)
		if !ok {
			continue
		}
		schema := owner.Schema.Resources[addr.Type]
		if schema == nil {
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Resource type not supported", Subject: block.Decl.ToRange.Ptr(),
				Detail: "The provider " + owner.Source + " has no resource type \"" + addr.Type + "\".",
			})
			continue
		}
		r := providers.ImportRequest{Type: addr.Type, ID: target.ID}
		o, ok := p.lookUp(ctx, t, addr, r, block.Decl.Range.Ptr(), owner, owner.Type(schema))
		if !ok {
			continue
		}
		g.found[addr] = o
		provider := ""
		if block.Decl.Provider != nil {
			provider = ref.Key()
		}
		g.config[addr.Resource] = Generated{Addr: addr, ID: target.ID, Text: resourceText(addr, provider, schema.Block, o.value)}
	}
}

// sorted lists what was written, in address order.
func (g *generation) sorted() []Generated {
	out := make([]Generated, 0, len(g.config))
	for _, c := range g.config {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Generated) int { return a.Addr.Compare(b.Addr) })
	return out
}

// text is the file with all of it.
func (g *generation) text() []byte {
	var b strings.Builder
	b.WriteString("# Written by stoke for imported objects. Look it over, and move it to where it\n# belongs.\n")
	for _, c := range g.sorted() {
		b.WriteString("\n# imported by the id " + string(hclwrite.TokensForValue(ctyString(c.ID)).Bytes()) + "\n" + c.Text + "\n")
	}
	return []byte(b.String())
}
