package metal

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/firewall"
)

// everybody is the default of ssh_from, as before.
var everybody = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// specReader turns a model's values into a Spec. It continues after a fault and
// after an unknown value, so that the user sees all faults.
type specReader struct {
	ctx     context.Context
	diags   *diag.Diagnostics
	unknown bool
}

// spec is what the model declares. known is false while some of it is unknown;
// what is wrong is reported, and then known is false, too.
func (m *firewallModel) spec(ctx context.Context, diags *diag.Diagnostics) (s firewall.Spec, known bool) {
	mistakes := diags.ErrorsCount()
	r := &specReader{ctx: ctx, diags: diags}
	s.Role = firewall.Role(r.text(m.Role))
	s.Nodes = read(r, "peers", m.Peers, parseNode)
	s.ControlPlanes = read(r, "control_planes", m.ControlPlanes, parseNode)
	s.Pods = read(r, "pod_network", m.PodNetwork, firewall.ParseRange)
	if cni := r.text(m.CNI); cni != "" {
		s.CNI, _ = firewall.CNIPorts(cni) // its validator knows the names
	}
	s.CNI = append(s.CNI[:len(s.CNI):len(s.CNI)], read(r, "cni_ports", m.CNIPorts, firewall.ParseOpening)...)
	s.APIClients = read(r, "api_clients", m.APIClients, firewall.ParseRange)
	s.SSH = read(r, "ssh_from", m.SSHFrom, firewall.ParseRange)
	if m.SSHFrom.IsNull() {
		s.SSH = everybody
	}
	s.SSHPort = r.sshPort(m)
	s.NodePorts = r.rules("node_port", m.NodePorts)
	s.Rules = r.rules("rule", m.Rules)
	if text := r.text(m.ConfirmWithin); text != "" {
		var err error
		if s.Confirm, err = time.ParseDuration(text); err != nil {
			r.wrong(path.Root("confirm_within"), fmt.Errorf("%q is not a duration such as 30s or 2m", text))
		}
	}
	if r.unknown || diags.ErrorsCount() > mistakes {
		return s, false
	}
	for _, p := range s.Problems() {
		name, _, _ := strings.Cut(p.Argument, "[")
		r.wrong(path.Root(strings.Replace(name, "node_ports", "node_port", 1)), fmt.Errorf("%s", p.Text))
	}
	return s, diags.ErrorsCount() == mistakes
}

func (r *specReader) wrong(at path.Path, err error) {
	text := strings.ToUpper(err.Error()[:1]) + err.Error()[1:]
	if !strings.HasSuffix(text, "?") {
		text += "."
	}
	r.diags.AddAttributeError(at, "Invalid firewall rules", text)
}

func (r *specReader) text(s types.String) string {
	r.unknown = r.unknown || s.IsUnknown()
	return s.ValueString()
}

// texts are the elements of a set that are known.
func (r *specReader) texts(at path.Path, set types.Set) []string {
	r.unknown = r.unknown || set.IsUnknown()
	if set.IsUnknown() || set.IsNull() {
		return nil
	}
	var elements []types.String
	r.diags.Append(set.ElementsAs(r.ctx, &elements, false)...)
	var known []string
	for _, e := range elements {
		switch {
		case e.IsUnknown():
			r.unknown = true
		case e.IsNull():
			r.wrong(at, fmt.Errorf("an element is null"))
		default:
			known = append(known, e.ValueString())
		}
	}
	return known
}

func read[T any](r *specReader, argument string, set types.Set, parse func(string) (T, error)) []T {
	return readAt(r, path.Root(argument), set, parse)
}

func readAt[T any](r *specReader, at path.Path, set types.Set, parse func(string) (T, error)) []T {
	var values []T
	for _, text := range r.texts(at, set) {
		v, err := parse(text)
		if err != nil {
			r.wrong(at, err)
			continue
		}
		values = append(values, v)
	}
	return values
}

func parseNode(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address: rules need addresses, so a metal_host with a host "+
			"name needs a private_address", s)
	}
	return a, nil
}

func (r *specReader) sshPort(m *firewallModel) uint16 {
	r.unknown = r.unknown || m.SSHPort.IsUnknown()
	port := m.SSHPort.ValueInt64()
	if m.SSHPort.IsNull() {
		way, known := connect.MachineFromObject(r.ctx, m.Host)
		r.unknown = r.unknown || !known && !m.Host.IsNull()
		port = int64(way.Port)
	}
	if port < 0 || port > 65535 || port == 0 && !m.SSHPort.IsNull() && !m.SSHPort.IsUnknown() {
		r.wrong(path.Root("ssh_port"), fmt.Errorf("%d is no port", port))
		return 0
	}
	return uint16(port)
}

func (r *specReader) rules(block string, list types.List) []firewall.Rule {
	r.unknown = r.unknown || list.IsUnknown()
	if list.IsUnknown() || list.IsNull() {
		return nil
	}
	var models []firewallRuleModel
	r.diags.Append(list.ElementsAs(r.ctx, &models, false)...)
	var rules []firewall.Rule
	for i, m := range models {
		at := path.Root(block).AtListIndex(i)
		if !m.From.IsNull() && !m.From.IsUnknown() && len(m.From.Elements()) == 0 {
			r.wrong(at.AtName("from"), errors.New("it is empty, so that no address could connect: leave it out to allow "+
				"all addresses"))
		}
		rules = append(rules, firewall.Rule{
			Ports:   readAt(r, at.AtName("ports"), m.Ports, firewall.ParseOpening),
			From:    readAt(r, at.AtName("from"), m.From, firewall.ParseSource),
			Comment: r.text(m.Comment),
		})
	}
	return rules
}
