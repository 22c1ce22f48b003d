package metal

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/drain"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/providers/metal/packages"
)

func (*gpuDriverModel) kind() kind {
	return kind{name: "gpu_driver", record: gpuDriverRecord, what: "Driver", at: path.Root("host"), schema: gpuDriverSchema, noted: true}
}

func (m *gpuDriverModel) adopt(ctx context.Context, by gpuDriverModel) bool {
	m.Host = hostAsDeclared(ctx, m.Host, by.Host)
	return !m.Source.IsNull()
}

func (m *gpuDriverModel) observe(ctx context.Context, s *settings, on host.Machine, declared gpuDriverModel, diags *diag.Diagnostics) error {
	declared.ID, declared.Host = m.ID, m.Host
	if declared.Source.IsUnknown() {
		declared.Source = m.Source
	}
	*m = declared
	if m.Branch.IsNull() { // imported: the observed driver is the declared one
		have, err := nvidia.Observe(ctx, on, nvidia.Spec{})
		if err != nil {
			return err
		}
		if have.Installed() == "" {
			diags.AddError("No driver to import", fmt.Sprintf("%s has no NVIDIA driver that its packages know of. Remove the import: apply installs one.", on.Name()))
			return errRefused
		}
		m.take(have)
	}
	want := m.spec()
	l, err := s.look(ctx, on, want)
	if err != nil {
		return err
	}
	changes := l.changes(want)
	if by := s.cordonedBy(ctx, on); !by.IsNull() {
		changes = append(changes, host.Change{Fact: "node", Have: "cordoned by " + by.ValueString()})
	}
	if len(changes) == 0 { // else the plan examines the machine again, and warns
		s.warnUnfit(on, l.have, true, diags)
	}
	return failed(m.observed(ctx, l.have, changes))
}

// warnUnfit warns of each unfit GPU of a machine. A plan whose refresh has warned of them
// does not.
func (s *settings) warnUnfit(on host.Machine, have nvidia.State, isRefresh bool, diags *diag.Diagnostics) {
	if isRefresh {
		s.unfit.Store(on.Name(), true)
	} else if _, isTold := s.unfit.LoadAndDelete(on.Name()); isTold {
		return
	}
	for _, p := range nvidia.UnfitGPUs(have) {
		diags.AddAttributeWarning(path.Root("host"), p.Summary, on.Name()+": "+p.Detail)
	}
}

// take declares what is there, and leaves the rest at its defaults.
func (m *gpuDriverModel) take(have nvidia.State) {
	is := have.AsSpec()
	m.Branch, m.Modules, m.Source = types.StringValue(is.Branch), types.StringValue(is.Modules), types.StringValue(is.Source)
	m.Server, m.FabricManager = types.BoolValue(is.Server), types.StringValue(is.FabricManager)
	m.Toolkit, m.Persistence, m.NoNouveau = types.StringValue(is.Toolkit), types.BoolValue(is.Persistence), types.BoolValue(is.NoNouveau)
	m.Reboot = types.StringValue(is.Reboot)
}

func (m *gpuDriverModel) work(ctx context.Context, j job[gpuDriverModel]) (*gpuDriverModel, error) {
	have, err := nvidia.Observe(ctx, j.machine, nvidia.Spec{})
	if err != nil {
		return nil, err
	}
	m.resolve(have)
	l, err := j.settings.look(ctx, j.machine, m.spec())
	if err != nil {
		return nil, err
	}
	if err := driverError(j.machine, nvidia.Check(m.spec(), l.have, l.managed)); err != nil { // before there is anything of ours
		addError(j.diags, path.Root("host"), "Driver cannot be installed", err)
		return nil, errRefused
	}
	rec, err := j.begin()
	if err != nil {
		return nil, err
	}
	err = j.settings.bring(ctx, j.machine, rec, m.spec(), m.policy(), l)
	is := *m // the observed values are stored, as far as they can be read
	if unseen := is.observe(context.WithoutCancel(ctx), j.settings, j.machine, *m, j.diags); unseen != nil {
		is.Installed, is.GPUs = types.StringValue(l.have.Installed()), types.ListNull(m.GPUs.ElementType(ctx))
		is.GPUCount = types.Int64Value(int64(len(l.have.Devices)))
		if err == nil {
			addError(j.diags, path.Empty(), "Driver cannot be examined", unseen)
		}
	}
	return &is, err
}

func driverError(m host.Machine, problems []nvidia.Problem) error {
	var all []string
	for _, p := range problems {
		if !p.Warning {
			all = append(all, fmt.Sprintf("%s: %s", p.Summary, strings.TrimSuffix(p.Detail, ".")))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", m.Name(), strings.Join(all, "\n"))
}

func (s *settings) bring(ctx context.Context, m host.Machine, rec *host.Record, want nvidia.Spec, policy drain.Policy, l driverLook) error {
	install := func(ctx context.Context, w nvidia.Target) error { return s.installed(ctx, m, rec, want, w) }
	changes := func(ctx context.Context) ([]host.Change, error) {
		all, _, err := l.foresee(ctx, m, want)
		return all, err
	}
	// A need that Apply only discovers: the driver cannot be removed without
	// draining.
	drains := func(ctx context.Context) error {
		return drain.Escalate(ctx, []host.Change{{Fact: "driver in the kernel", Disruption: host.Drains}})
	}
	return s.disrupt(ctx, m, changes, policy, func(ctx context.Context) error {
		have, err := nvidia.Apply(ctx, m, rec, want, l.have, nvidia.Hooks{Install: install, Drain: drains, Reboot: reboot(m)})
		if err != nil {
			return err
		}
		w, err := want.Want(have)
		if err != nil {
			return err
		}
		return install(ctx, w)
	})
}

func (s *settings) installed(ctx context.Context, m host.Machine, rec *host.Record, want nvidia.Spec, w nvidia.Target) error {
	have, err := nvidia.Observe(ctx, m, want)
	if err != nil {
		return err
	}
	spec := s.install(w, have)
	spec.Limit = bound(ctx)
	is, err := packages.Observe(ctx, m, spec)
	if err != nil {
		return err
	}
	gone, err := packages.Undoing(ctx, m, rec, &spec)
	if err != nil || len(packages.Diff(spec, is)) == 0 && len(gone) == 0 && len(rec.Keys(packages.Noted)) > 0 {
		return err
	}
	return packages.Apply(ctx, m, rec, spec, is)
}

func reboot(m host.Machine) func(context.Context) error {
	return func(ctx context.Context) error {
		host.Step(ctx, "rebooting %s", m.Name())
		_, err := host.Reboot(ctx, m, host.RebootLimits{})
		return err
	}
}

func (m *gpuDriverModel) restore(ctx context.Context, s *settings, on host.Machine, rec *host.Record) (outcomes []host.Outcome, err error) {
	changes := func(context.Context) ([]host.Change, error) {
		return []host.Change{{Fact: "driver", Disruption: host.Drains}}, nil
	}
	err = s.disrupt(ctx, on, changes, m.policy(), func(ctx context.Context) error {
		host.Step(ctx, "removing the driver")
		outcomes, err = nvidia.Restore(ctx, on, rec, func(ctx context.Context) ([]host.Outcome, error) {
			return packages.Restore(ctx, on, rec)
		})
		return err
	})
	return outcomes, err
}

func (*gpuDriverModel) undoing(ctx context.Context, s *settings, on host.Machine, _ *host.Record, _ *diag.Diagnostics) []host.Change {
	if node, err := s.shared.roll.Look(ctx, on); node == nil && err == nil {
		return nil
	}
	return []host.Change{{Fact: "the driver goes", Disruption: host.Drains}}
}
