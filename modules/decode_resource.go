package modules

import (
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules/address"
)

// The arguments of every resource, whatever its provider says.
var resourceSchema = newSchema(
	[]string{"count", "for_each", "provider", "depends_on"},
	map[string][]string{"lifecycle": nil, "connection": nil, "provisioner": {"type"}, "_": nil},
)

func (d *decoder) resource(block *hcl.Block) {
	r := &Resource{
		ResourceName: ResourceName{Type: block.Labels[0], Name: block.Labels[1]},
		Range:        block.DefRange,
		TypeRange:    block.LabelRanges[0],
		ModuleOwner:  d.module,
	}
	what := "resource"
	if block.Type == "data" {
		r.Mode, what = address.Data, "data source"
	}
	if !d.name(what+"'s type", r.Type, block.LabelRanges[0]) || !d.name(what, r.Name, block.LabelRanges[1]) {
		return
	}
	if first := d.module.Resources[r.ResourceName]; first != nil {
		d.duplicate(what, address.Resource{Mode: r.Mode, Type: r.Type, Name: r.Name}.String(), block.DefRange, first.Range)
		return
	}
	content, rest, diags := resourceSchema.split(block.Body)
	d.diags = append(d.diags, diags...)
	r.Body = d.escaped(rest, content.Blocks)
	r.Count, r.ForEach = d.repetition(content)
	r.DependsOn = d.references(content.Attributes["depends_on"])
	r.Provider = ProviderRef{Name: ImpliedProvider(r.Type), Range: block.DefRange}
	if attr := content.Attributes["provider"]; attr != nil {
		if ref, ok := d.providerRef(attr.Expr); ok {
			r.Provider = ref
		}
	}
	d.resourceBlocks(r, content.Blocks)
	d.module.Resources[r.ResourceName] = r
}

// ImpliedProvider is the local name of a type's provider: what comes before
// its first underscore.
func ImpliedProvider(ty string) string {
	name, _, _ := strings.Cut(ty, "_")
	return name
}

func (d *decoder) resourceBlocks(r *Resource, blocks hcl.Blocks) {
	var lifecycle *hcl.Block
	for _, b := range blocks {
		switch b.Type {
		case "lifecycle":
			if lifecycle != nil {
				d.duplicate("block", "lifecycle", b.DefRange, lifecycle.DefRange)
				continue
			}
			lifecycle = b
			r.Lifecycle = d.lifecycle(b, r.Mode)
		case "provisioner", "connection":
			d.fail(&b.DefRange, "Provisioners are not supported", "%s", insteadOf(b))
		}
	}
}

// insteadOf says what does the work of a provisioner or connection block.
func insteadOf(block *hcl.Block) string {
	const why = "No plan can show what a provisioner will do, and nothing can tell afterwards whether it is still done. "
	if block.Type == "connection" {
		return why + "A connection block is only for provisioners: remove it, and declare access to machines in the ssh block of their provider, such as provider \"metal\"."
	}
	switch block.Labels[0] {
	case "local-exec":
		return why + "Run the command in the pipeline before or after \"stoke apply\" (\"stoke output -json\" hands it the values), or use a provider whose resource does the same work."
	case "remote-exec":
		return why + "Let the machine run the commands itself (user data, cloud-init), or use resources for machines, such as the resources of the provider \"metal\"."
	case "file":
		return why + "Hand the file over in the machine's user data (cloud-init), build it into the image, or keep it in a Kubernetes ConfigMap or Secret."
	}
	return why + "Build the software into the image, or let the machine set itself up by its user data (cloud-init)."
}

// repetition reads count and for_each, of which one may be given.
func (d *decoder) repetition(content *hcl.BodyContent) (count, forEach hcl.Expression) {
	if attr := content.Attributes["count"]; attr != nil {
		count = attr.Expr
	}
	if attr := content.Attributes["for_each"]; attr != nil {
		forEach = attr.Expr
		if count != nil {
			d.fail(&attr.NameRange, "Both count and for_each", "Only one of count and for_each can say how many instances there are. Remove the other.")
			return count, nil
		}
	}
	return count, forEach
}

// providerRef reads NAME or NAME.ALIAS.
func (d *decoder) providerRef(expr hcl.Expression) (ProviderRef, bool) {
	const detail = "A provider configuration is named without quotes, as NAME or NAME.ALIAS, such as gke or gke.europe."
	t, diags := hcl.AbsTraversalForExpr(d.formerlyQuoted(expr))
	if diags.HasErrors() || len(t) > 2 {
		d.fail(expr.Range().Ptr(), "Invalid provider reference", detail)
		return ProviderRef{}, false
	}
	ref := ProviderRef{Name: t.RootName(), Range: expr.Range()}
	if len(t) == 2 {
		alias, ok := t[1].(hcl.TraverseAttr)
		if !ok {
			d.fail(expr.Range().Ptr(), "Invalid provider reference", detail)
			return ProviderRef{}, false
		}
		ref.Alias = alias.Name
	}
	return ref, true
}
