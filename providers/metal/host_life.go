package metal

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/system"
)

const hostRecord = "host"

func (*hostModel) kind() kind {
	return kind{name: "host", record: hostRecord, what: "Machine", at: path.Root("address"), schema: hostSchema, noted: true}
}

func (m *hostModel) id() *types.String { return &m.ID }

func (m *hostModel) leads(context.Context) (connect.SSH, error) {
	way, known := m.way()
	if !known {
		return way, connect.ErrUnknown
	}
	return way, nil
}

func (*hostModel) importValues(_ context.Context, way connect.SSH) (map[string]any, diag.Diagnostics) {
	at := namedHop(way.Hop)
	named := map[string]any{"address": at.Address, "port": at.Port, "user": at.User, "credential": at.Credential, "host_key": at.HostKey}
	if len(way.Hops) > 0 {
		var bastions []bastionModel
		for _, h := range way.Hops {
			bastions = append(bastions, namedHop(h))
		}
		named["bastion"] = bastions
	}
	return named, nil
}

func namedHop(h connect.Hop) bastionModel {
	at := bastionModel{Address: types.StringValue(h.Address), HostKey: types.StringValue(h.HostKey)}
	if h.Port != 0 {
		at.Port = types.Int64Value(int64(h.Port))
	}
	if h.User != "" {
		at.User = types.StringValue(h.User)
	}
	if h.Credential != "" {
		at.Credential = types.StringValue(h.Credential)
	}
	return at
}

func (m *hostModel) adopt(_ context.Context, by hostModel) bool {
	m.wayAsDeclared(by)
	_, known := m.way()
	return known
}

func (m *hostModel) observe(ctx context.Context, s *settings, on host.Machine, declared hostModel, diags *diag.Diagnostics) error {
	if err := observeAll(ctx, s, on, &declared, m); err != nil {
		return err
	}
	m.CordonedBy = s.cordonedBy(ctx, on)
	way, _ := m.way()
	m.derive(ctx, way, diags)
	return nil
}

func (m *hostModel) work(ctx context.Context, j job[hostModel]) (*hostModel, error) {
	rec, err := j.begin()
	if err != nil {
		return nil, err
	}
	m.prior, m.config = j.prior, j.config
	way, _ := m.way()
	m.derive(ctx, way, j.diags)
	m.CordonedBy = types.StringNull()
	have := *m
	parts := sections(j.settings)
	err = j.settings.disrupt(ctx, j.machine, func(ctx context.Context) ([]host.Change, error) {
		var changes []host.Change
		for _, s := range parts {
			changes = append(changes, s.changes(ctx, j.machine, m, j.diags)...)
		}
		changes = append(changes, plannedRestores(ctx, j.settings, j.machine, rec, m, j.diags)...)
		if j.diags.HasError() {
			return nil, errRefused
		}
		return changes, nil
	}, m.policy(), func(ctx context.Context) error {
		return applyAll(ctx, parts, j.machine, rec, m)
	})
	// The observed values are stored, as far as they can be read.
	if err != nil && have.observe(context.WithoutCancel(ctx), j.settings, j.machine, *m, j.diags) == nil {
		return &have, err
	}
	return m, err
}

// applyAll has all sections apply what they declare, behind the host name.
func applyAll(ctx context.Context, parts []section, on host.Machine, rec *host.Record, m *hostModel) error {
	if name := m.Hostname.ValueString(); name != "" {
		if err := system.ApplyName(ctx, on, rec, name); err != nil {
			return err
		}
	}
	for _, s := range parts {
		if err := s.apply(ctx, on, rec, m); err != nil {
			return err
		}
	}
	return nil
}

func (m *hostModel) restore(ctx context.Context, s *settings, on host.Machine, rec *host.Record) (outcomes []host.Outcome, err error) {
	err = s.leaveDrained(ctx, on, "what stoke prepared it with", m.policy(), func(ctx context.Context) error {
		for _, part := range slices.Backward(sections(s)) {
			did, err := part.restore(ctx, on, rec)
			if outcomes = append(outcomes, did...); err != nil {
				return err
			}
		}
		return nil
	})
	return outcomes, err
}

func (*hostModel) undoing(ctx context.Context, s *settings, on host.Machine, rec *host.Record, diags *diag.Diagnostics) []host.Change {
	return plannedRestores(ctx, s, on, rec, nil, diags)
}
