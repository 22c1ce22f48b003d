package gke

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
)

// ruleModel is a protocol with its ports.
type ruleModel struct {
	Protocol types.String `tfsdk:"protocol"`
	Ports    types.List   `tfsdk:"ports"`
}

// ruleType is the type of a block allow or deny.
var ruleType = types.ObjectType{AttrTypes: map[string]attr.Type{"protocol": types.StringType, "ports": types.ListType{ElemType: types.StringType}}}

// rulesOf are the blocks; nil if they are not known yet, or absent.
func rulesOf(l types.List) []ruleModel {
	if all := elementsOf[ruleModel](l); len(all) > 0 {
		return all
	}
	return nil
}

// ports returns the ports in the declared order.
func (r ruleModel) ports() []string { return ordered(r.Ports) }

// ordered are the known texts of a list or a set, as they stand there.
func ordered(v interface{ Elements() []attr.Value }) []string {
	var all []string
	for _, e := range v.Elements() {
		if s, ok := e.(types.String); ok && isGiven(s) {
			all = append(all, s.ValueString())
		}
	}
	return all
}

func rule(protocol string, ports []string) ruleModel {
	r := ruleModel{types.StringValue(protocol), types.ListNull(types.StringType)}
	if len(ports) > 0 {
		r.Ports = listOf(ports)
	}
	return r
}

// sameRules keeps the declared form if it means the same: Google writes
// protocols in lower case, and order has no effect.
func sameRules(was types.List, now []ruleModel) types.List {
	texts := func(all []ruleModel) []string {
		var out []string
		for _, r := range all {
			ports := r.ports()
			slices.Sort(ports)
			out = append(out, strings.ToLower(r.Protocol.ValueString())+" "+strings.Join(ports, ","))
		}
		slices.Sort(out)
		return out
	}
	if declared := rulesOf(was); declared != nil && slices.Equal(texts(declared), texts(now)) {
		return was
	}
	return connect.MustConvert(types.ListValueFrom(context.Background(), ruleType, append([]ruleModel{}, now...)))
}

// check is that of model.
func (m *firewallModel) check(_ context.Context, j job, _ *firewallModel) {
	settleProject(j, &m.Project)
	if m.ID.IsUnknown() && isGiven(m.Name) && isGiven(m.Project) {
		m.ID = types.StringValue(m.path(m.Project.ValueString()))
	}
	if !m.Allow.IsUnknown() && !m.Deny.IsUnknown() && (len(m.Allow.Elements()) > 0) == (len(m.Deny.Elements()) > 0) {
		j.diags.AddError("Neither allow nor deny, or both", "A firewall rule lets in or keeps out: give blocks allow, or blocks deny.")
	}
	m.checkPorts(j, "allow", m.Allow)
	m.checkPorts(j, "deny", m.Deny)
	m.checkRanges(j)
	m.checkSelectors(j)
}

// checkRanges looks at the addresses. Google reads a rule without sources as a rule
// for all sources.
func (m *firewallModel) checkRanges(j job) {
	for name, set := range map[string]types.Set{"source_ranges": m.Sources, "destination_ranges": m.Targets} {
		six := func(text string) bool { return strings.Contains(text, ":") }
		if all := ordered(set); slices.ContainsFunc(all, six) && slices.ContainsFunc(all, func(text string) bool { return !six(text) }) {
			j.diags.AddAttributeError(path.Root(name), "IPv4 and IPv6 in one rule", "Google takes ranges of one kind. Make two rules of it.")
		}
		for _, text := range ordered(set) {
			p, err := netip.ParsePrefix(text)
			if a, alone := netip.ParseAddr(text); alone == nil {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			switch {
			case err != nil:
				j.diags.AddAttributeError(path.Root(name), "Not a range of addresses", fmt.Sprintf("%q is none. Write it as an address, a slash and the number of bits that count, such as 10.0.0.0/8 or 203.0.113.7/32.", text))
			case p != p.Masked():
				j.diags.AddAttributeError(path.Root(name), "Range has bits behind its mask", fmt.Sprintf("Google refuses %s: write %s, or %s/%d for the one address.", text, p.Masked(), p.Addr(), p.Addr().BitLen()))
			case name == "source_ranges" && p.Bits() == 0 && len(m.Allow.Elements()) > 0:
				j.diags.AddAttributeWarning(path.Root(name), "Open to all addresses", text+" is every address of the internet. Name those that are meant.")
			}
		}
	}
	none := func(s types.Set) bool { return !s.IsUnknown() && len(s.Elements()) == 0 }
	if none(m.Sources) && none(m.SourceTags) && none(m.SourceMails) {
		j.diags.AddAttributeError(path.Root("source_ranges"), "Rule would match all addresses",
			"source_ranges is empty, and source_tags and source_service_accounts are missing: Google takes that as "+
				"0.0.0.0/0. Name the sources, or remove the rule, such as with count = 0.")
	}
}

// checkSelectors looks at tags and service accounts, which do not go together.
func (m *firewallModel) checkSelectors(j job) {
	some := func(all ...types.Set) bool {
		return slices.ContainsFunc(all, func(s types.Set) bool { return len(s.Elements()) > 0 })
	}
	if some(m.SourceTags, m.TargetTags) && some(m.SourceMails, m.TargetMails) {
		j.diags.AddError("Tags and service accounts in one rule", "Google takes source_tags and target_tags, or source_service_accounts and target_service_accounts. Make two rules of it.")
	}
}

// ported are the protocols that have ports.
var ported = []string{"tcp", "udp", "sctp", "6", "17", "132"}

func (m *firewallModel) checkPorts(j job, name string, blocks types.List) {
	for n, r := range rulesOf(blocks) {
		at := path.Root(name).AtListIndex(n).AtName("ports")
		if isGiven(r.Protocol) && len(r.Ports.Elements()) > 0 && !slices.Contains(ported, strings.ToLower(r.Protocol.ValueString())) {
			j.diags.AddAttributeError(at, "Protocol has no ports", fmt.Sprintf("Of %s all is meant; tcp, udp and sctp have ports. Leave ports out.", r.Protocol.ValueString()))
		}
		for _, text := range r.ports() {
			if !isPorts(text) {
				j.diags.AddAttributeError(at, "Not a port", fmt.Sprintf(`%q is none. Write a number up to 65535, such as "22", or a range, such as "30000-32767".`, text))
			}
		}
	}
}

// isPorts reports whether a text is a port, or a range of them.
func isPorts(text string) bool {
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	a, err := strconv.ParseUint(from, 10, 16)
	b, again := strconv.ParseUint(to, 10, 16)
	return err == nil && again == nil && a <= b
}
