package gke

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// firewallModel is the value of a gke_firewall_rule.
type firewallModel struct {
	ID       types.String   `tfsdk:"id"`
	Project  types.String   `tfsdk:"project"`
	Status   types.String   `tfsdk:"status"`
	Timeouts timeouts.Value `tfsdk:"timeouts"`

	Name        types.String `tfsdk:"name"`
	Network     types.String `tfsdk:"network"`
	Description types.String `tfsdk:"description"`
	Sources     types.Set    `tfsdk:"source_ranges"`
	SourceTags  types.Set    `tfsdk:"source_tags"`
	SourceMails types.Set    `tfsdk:"source_service_accounts"`
	Targets     types.Set    `tfsdk:"destination_ranges"`
	TargetTags  types.Set    `tfsdk:"target_tags"`
	TargetMails types.Set    `tfsdk:"target_service_accounts"`
	Log         types.Bool   `tfsdk:"log"`
	Priority    types.Int64  `tfsdk:"priority"`
	Disabled    types.Bool   `tfsdk:"disabled"`
	Allow       types.List   `tfsdk:"allow"`
	Deny        types.List   `tfsdk:"deny"`
}

func (m *firewallModel) kind() kind {
	return kind{name: "firewall_rule", what: "Firewall rule", limit: 10 * time.Minute, schema: firewallSchema}
}

func (m *firewallModel) head() head { return head{&m.ID, &m.Project, &m.Status, m.Timeouts, nil, nil} }

func firewallSchema(context.Context) schema.Schema {
	rules := func(description string) schema.Block {
		return schema.ListNestedBlock{Description: description, NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
			"protocol": schema.StringAttribute{Required: true, Description: "tcp, udp, icmp, all, or a number."},
			"ports":    schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: `Ports and ranges of them, such as "22" and "30000-32767". Default: all.`},
		}}}
	}
	sources := optionalSet("Ranges of addresses that it is about, such as 10.0.0.0/8. 0.0.0.0/0 matches all " +
		"addresses; the plan warns of it.")
	sources.Optional, sources.Required = false, true
	return schema.Schema{
		Description: "A firewall rule of a VPC network, for incoming connections. It is either of allow or of deny.",
		Attributes: map[string]schema.Attribute{
			"name":          requiredName("Its name.", 63),
			"network":       referenceAttribute(servers("VPC network, by name or in full. Default: default."), sameIn(networks)),
			"description":   servers("Its purpose, for readers."),
			"source_ranges": sources,
			"source_tags": tagSet("Network tags of source machines, in addition to source_ranges: one of the two has " +
				"to match."),
			"target_tags": tagSet("Network tags of the machines that it is for. Default: all of the network."),
			"priority":    serversNumber("0 to 65535; lower ones count first. Default: 1000."),
			"disabled":    serversFlag("Whether it is without effect."),
			"log":         serversFlag("Whether connections are logged, which bills."),

			"source_service_accounts": optionalSet("Service accounts of source machines, in addition to source_ranges: " +
				"one of the two has to match. Not together with tags."),
			"target_service_accounts": optionalSet("Service accounts of the machines that it is for. Not together with tags."),
			"destination_ranges":      optionalSet("Ranges of the addresses that are called. Default: all."),
		},
		Blocks: map[string]schema.Block{"allow": rules("Allowed traffic."), "deny": rules("Denied traffic.")},
	}
}

func (m *firewallModel) path(project string) string {
	return fmt.Sprintf("projects/%s/global/firewalls/%s", project, m.Name.ValueString())
}

// parseImportID is that of model.
func (m *firewallModel) parseImportID(j job, id string) (map[string]string, error) {
	return globally(j, id, "firewalls", "firewall rule")
}

func (m *firewallModel) get(ctx context.Context, c *cloud.Cloud) (*compute.Firewall, error) {
	f, err := cloud.Read(ctx, c, func(ctx context.Context) (*compute.Firewall, error) {
		return c.Compute.Firewalls.Get(c.Project, m.Name.ValueString()).Context(ctx).Do()
	})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil, nil
	}
	return f, err
}

// ruleFields are the changeable fields of a rule, each with its request. A patch
// sends the differing ones, also empty ones; undeclared fields, such as fields of
// an imported rule, stay.
var ruleFields = []struct {
	name string // in the API's client
	of   func(m *firewallModel) any
	set  func(f *compute.Firewall, m *firewallModel, mark string)
}{
	{"Description", func(m *firewallModel) any { return m.Description }, func(f *compute.Firewall, m *firewallModel, mark string) {
		f.Description = cloud.Describe(m.Description.ValueString(), mark)
	}},
	{"SourceRanges", func(m *firewallModel) any { return list(m.Sources) }, func(f *compute.Firewall, m *firewallModel, _ string) { f.SourceRanges = list(m.Sources) }},
	{"SourceTags", func(m *firewallModel) any { return list(m.SourceTags) }, func(f *compute.Firewall, m *firewallModel, _ string) { f.SourceTags = list(m.SourceTags) }},
	{"SourceServiceAccounts", func(m *firewallModel) any { return list(m.SourceMails) }, func(f *compute.Firewall, m *firewallModel, _ string) { f.SourceServiceAccounts = list(m.SourceMails) }},
	{"DestinationRanges", func(m *firewallModel) any { return list(m.Targets) }, func(f *compute.Firewall, m *firewallModel, _ string) { f.DestinationRanges = list(m.Targets) }},
	{"TargetTags", func(m *firewallModel) any { return list(m.TargetTags) }, func(f *compute.Firewall, m *firewallModel, _ string) { f.TargetTags = list(m.TargetTags) }},
	{"TargetServiceAccounts", func(m *firewallModel) any { return list(m.TargetMails) }, func(f *compute.Firewall, m *firewallModel, _ string) { f.TargetServiceAccounts = list(m.TargetMails) }},
	{"Priority", func(m *firewallModel) any { return m.Priority }, func(f *compute.Firewall, m *firewallModel, _ string) { f.Priority = m.Priority.ValueInt64() }},
	{"Disabled", func(m *firewallModel) any { return m.Disabled }, func(f *compute.Firewall, m *firewallModel, _ string) { f.Disabled = m.Disabled.ValueBool() }},
	{"LogConfig", func(m *firewallModel) any { return m.Log }, func(f *compute.Firewall, m *firewallModel, _ string) {
		f.LogConfig = &compute.FirewallLogConfig{Enable: m.Log.ValueBool(), ForceSendFields: []string{"Enable"}}
	}},
	{"Allowed", func(m *firewallModel) any { return rulesOf(m.Allow) }, func(f *compute.Firewall, m *firewallModel, _ string) {
		for _, r := range rulesOf(m.Allow) {
			f.Allowed = append(f.Allowed, &compute.FirewallAllowed{IPProtocol: r.Protocol.ValueString(), Ports: r.ports()})
		}
	}},
	{"Denied", func(m *firewallModel) any { return rulesOf(m.Deny) }, func(f *compute.Firewall, m *firewallModel, _ string) {
		for _, r := range rulesOf(m.Deny) {
			f.Denied = append(f.Denied, &compute.FirewallDenied{IPProtocol: r.Protocol.ValueString(), Ports: r.ports()})
		}
	}},
}

// render renders the request for the rule, with a mark below its description.
func (m *firewallModel) render(c *cloud.Cloud, mark string) *compute.Firewall {
	f := &compute.Firewall{Name: m.Name.ValueString(), Direction: "INGRESS", Network: m.Network.ValueString()}
	for _, field := range ruleFields {
		if v, ok := field.of(m).(attr.Value); !ok || isGiven(v) {
			field.set(f, m, mark)
			if ok { // priority 0 is one
				f.ForceSendFields = append(f.ForceSendFields, field.name)
			}
		}
	}
	f.Description = cloud.Describe(m.Description.ValueString(), mark) // the mark has to be there
	f.Network = inFull(firstNonEmpty(f.Network, "default"), c.Project, networks)
	return f
}

// patch is what changes of a rule; nil if nothing does.
func (m *firewallModel) patch(prior *firewallModel, mark string) *compute.Firewall {
	var f *compute.Firewall
	for _, field := range ruleFields {
		is, was := field.of(m), field.of(prior)
		if v, ok := is.(attr.Value); ok && v.IsUnknown() || reflect.DeepEqual(is, was) {
			continue
		}
		if f == nil {
			f = &compute.Firewall{}
		}
		field.set(f, m, mark)
		f.ForceSendFields = append(f.ForceSendFields, field.name)
	}
	return f
}

// create is that of model.
func (m *firewallModel) create(ctx context.Context, j job, mark string, started func()) error {
	c, wanted := j.cloud, m.render(j.cloud, mark)
	return creation[compute.Firewall, *compute.Operation]{
		what: "firewall rule",
		path: m.path(c.Project),
		get:  func(ctx context.Context) (*compute.Firewall, error) { return m.get(ctx, c) },
		markOf: func(f *compute.Firewall) string {
			_, theirs := cloud.Description(f.Description)
			return theirs
		},
		insert: func(ctx context.Context, id string) (*compute.Operation, error) {
			return c.Compute.Firewalls.Insert(c.Project, wanted).RequestId(id).Context(ctx).Do()
		},
		wait: func(ctx context.Context, op *compute.Operation) error {
			return c.WaitCompute(ctx, op, "making the firewall rule "+wanted.Name)
		},
		ready: func(context.Context) error { return nil }, // it is there at once, or not at all
	}.run(ctx, c, mark, started)
}

// read is that of model.
func (m *firewallModel) read(ctx context.Context, j job) (bool, string, error) {
	f, err := m.get(ctx, j.cloud)
	if f == nil || err != nil {
		return false, "", err
	}
	if f.Direction == "EGRESS" {
		return false, "", fmt.Errorf("the firewall rule %s is for outgoing connections (EGRESS), and "+
			"gke_firewall_rule is for incoming ones: manage it elsewhere, and take it out of the state with `stoke state "+
			"rm` if it is there", m.Name.ValueString())
	}
	text, mark := cloud.Description(f.Description)
	m.ID, m.Project, m.Status = types.StringValue(m.path(j.cloud.Project)), types.StringValue(j.cloud.Project), types.StringValue("READY")
	m.Network = link(m.Network, strings.TrimPrefix(f.Network, "https://www.googleapis.com/compute/v1/"))
	m.Description = textAs(m.Description, text)
	m.Sources, m.TargetTags = setOf(append([]string{}, f.SourceRanges...)), setOrNull(m.TargetTags, f.TargetTags)
	m.SourceTags, m.SourceMails = setOrNull(m.SourceTags, f.SourceTags), setOrNull(m.SourceMails, f.SourceServiceAccounts)
	m.Targets, m.TargetMails = setOrNull(m.Targets, f.DestinationRanges), setOrNull(m.TargetMails, f.TargetServiceAccounts)
	m.Priority, m.Disabled, m.Log = types.Int64Value(f.Priority), types.BoolValue(f.Disabled), types.BoolValue(f.LogConfig != nil && f.LogConfig.Enable)
	var allow, deny []ruleModel
	for _, a := range f.Allowed {
		allow = append(allow, rule(a.IPProtocol, a.Ports))
	}
	for _, d := range f.Denied {
		deny = append(deny, rule(d.IPProtocol, d.Ports))
	}
	m.Allow, m.Deny = sameRules(m.Allow, allow), sameRules(m.Deny, deny)
	return true, mark, nil
}

// update implements model: one call for all changes.
func (m *firewallModel) update(ctx context.Context, j job, prior *firewallModel) error {
	if m.patch(prior, "") == nil {
		return nil
	}
	c, id := j.cloud, m.path(j.cloud.Project)
	there, err := m.get(ctx, c)
	if err != nil {
		return err
	}
	if there == nil {
		return fmt.Errorf("the firewall rule %s is gone; the next plan recreates it", m.Name.ValueString())
	}
	_, mark := cloud.Description(there.Description)
	wanted := m.patch(prior, mark)
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*compute.Operation, error) {
		return c.Compute.Firewalls.Patch(c.Project, m.Name.ValueString(), wanted).RequestId(cloud.Request(ctx, "patch "+id)).Context(ctx).Do()
	})
	if err == nil {
		err = c.WaitCompute(ctx, op, "changing the firewall rule "+m.Name.ValueString())
	}
	return err
}

// remove is that of model.
func (m *firewallModel) remove(ctx context.Context, j job) error {
	c, id := j.cloud, m.path(j.cloud.Project)
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*compute.Operation, error) {
		return c.Compute.Firewalls.Delete(c.Project, m.Name.ValueString()).RequestId(cloud.Request(ctx, "delete "+id)).Context(ctx).Do()
	})
	if err == nil {
		err = c.WaitCompute(ctx, op, "deleting the firewall rule "+m.Name.ValueString())
	}
	if cloud.KindOf(err) == cloud.NotFound {
		return nil
	}
	return err
}
