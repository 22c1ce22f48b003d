package metal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/packages"
)

type packagesModel struct {
	Repositories types.Map  `tfsdk:"apt_repositories"`
	Packages     types.Map  `tfsdk:"packages"`
	Absent       types.List `tfsdk:"absent_packages"`
	Allow        types.List `tfsdk:"allow_package_changes"`
}

type declaredPackages struct {
	repositories  map[string]repositoryModel
	packages      map[string]packageModel
	absent, allow []types.String
}

func (m *packagesModel) read(ctx context.Context, diags *diag.Diagnostics) (d declaredPackages, ok bool) {
	if !isWhollyKnown(ctx, m.Repositories, m.Packages, m.Absent, m.Allow) {
		return d, false
	}
	diags.Append(m.Repositories.ElementsAs(ctx, &d.repositories, false)...)
	diags.Append(m.Packages.ElementsAs(ctx, &d.packages, false)...)
	diags.Append(m.Absent.ElementsAs(ctx, &d.absent, false)...)
	diags.Append(m.Allow.ElementsAs(ctx, &d.allow, false)...)
	return d, !diags.HasError()
}

// write is read backwards.
func (m *packagesModel) write(ctx context.Context, d declaredPackages) diag.Diagnostics {
	var diags, more diag.Diagnostics
	m.Repositories, diags = types.MapValueFrom(ctx, m.Repositories.ElementType(ctx), d.repositories)
	m.Packages, more = types.MapValueFrom(ctx, m.Packages.ElementType(ctx), d.packages)
	diags.Append(more...)
	m.Absent, more = types.ListValueFrom(ctx, types.StringType, d.absent)
	diags.Append(more...)
	return diags
}

type repositoryModel struct {
	URIs          []types.String `tfsdk:"uris"`
	Suites        []types.String `tfsdk:"suites"`
	Components    []types.String `tfsdk:"components"`
	Architectures []types.String `tfsdk:"architectures"`
	KeyURL        types.String   `tfsdk:"key_url"`
	Key           types.String   `tfsdk:"key"`
	Fingerprints  []types.String `tfsdk:"key_fingerprints"`
}

type packageModel struct {
	Version types.String `tfsdk:"version"`
	Hold    types.Bool   `tfsdk:"hold"`
}

type packagesSection struct{ settings *settings }

func (packagesSection) attributes() map[string]schema.Attribute {
	texts := func(required bool, description string) schema.ListAttribute {
		return schema.ListAttribute{Required: required, Optional: !required, ElementType: types.StringType, Description: description}
	}
	all := map[string]schema.Attribute{
		"apt_repositories": schema.MapNestedAttribute{
			Optional: true, Description: "Extra package repositories, by name. The key is fetched by the machine and taken only if its fingerprint is a declared one.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"uris":             texts(true, "Where it is: http, https or file."),
				"suites":           texts(true, `Suites such as "bookworm", or one flat path that ends in "/".`),
				"components":       texts(false, "Components such as main; none for a flat path."),
				"architectures":    texts(false, "Architectures; the machine's when left out."),
				"key_url":          schema.StringAttribute{Optional: true, Description: "Where the signing key is."},
				"key":              schema.StringAttribute{Optional: true, Description: "The signing key itself, armored."},
				"key_fingerprints": texts(true, "Fingerprints in full of the primary keys that it may hold."),
			}},
		},
		"packages": schema.MapNestedAttribute{
			Optional: true, Description: "Packages that have to be installed, by name.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"version": schema.StringAttribute{Optional: true, Description: `Exact version, or a pattern such as "1.36.3-*"; any when left out.`},
				"hold":    schema.BoolAttribute{Optional: true, Description: "Whether neither apt nor unattended upgrades change its version."},
			}},
		},
		"absent_packages": texts(false, "Packages that must not be installed."),
		"allow_package_changes": texts(false, "Packages that apt may remove, upgrade or downgrade where what is declared needs that. "+
			"Any other change is refused."),
	}
	maps.Copy(all, softwareAttributes())
	return all
}

func (m declaredPackages) spec(on *settings) packages.Spec {
	s := packages.Spec{Owner: hostRecord, Absent: texts(m.absent), Allow: texts(m.allow)}
	if on != nil {
		s.Proxy = on.proxy
	}
	s.Repositories = mapped(m.repositories, func(_ string, r repositoryModel) packages.Repository {
		return packages.Repository{
			URIs: texts(r.URIs), Suites: texts(r.Suites), Components: texts(r.Components), Architectures: texts(r.Architectures),
			Key: packages.Key{URL: r.KeyURL.ValueString(), Inline: r.Key.ValueString()}, Fingerprints: texts(r.Fingerprints),
		}
	})
	s.Packages = mapped(m.packages, func(_ string, p packageModel) packages.Package {
		return packages.Package{Version: p.Version.ValueString(), Hold: p.Hold.ValueBool(), Exclude: p.Hold.ValueBool()}
	})
	return s
}

// all is what packages and software mean on a machine together. ok is false
// while something of it is unknown.
func (s packagesSection) all(ctx context.Context, m host.Machine, want *hostModel) (d declaredPackages, w declaredSoftware, spec packages.Spec, ok bool, err error) {
	var diags diag.Diagnostics
	d, ok = want.packagesModel.read(ctx, &diags)
	w, known := want.softwareModel.read(ctx, &diags)
	if err = failed(diags); err != nil || !ok || !known {
		return d, w, spec, false, err
	}
	software, err := w.spec(ctx, s.settings, m)
	if err == nil {
		if spec, err = packages.Merge(d.spec(s.settings), software); err != nil {
			err = contradiction{err}
		}
	}
	return d, w, spec, err == nil, err
}

// contradiction is a fault of a declaration, independent of the machine.
type contradiction struct{ error }

func (packagesSection) plan(context.Context, *hostModel, *hostModel, *diag.Diagnostics) {}

func (packagesSection) validate(ctx context.Context, config *hostModel, diags *diag.Diagnostics) {
	declared, ok := config.packagesModel.read(ctx, diags)
	if !ok {
		return
	}
	spec := declared.spec(nil)
	addPartly(diags, "Invalid packages", spec.Validate(),
		partialError{"packages", packages.Spec{Owner: spec.Owner, Packages: spec.Packages}.Validate()},
		partialError{"absent_packages", packages.Spec{Owner: spec.Owner, Absent: spec.Absent}.Validate()},
		partialError{"apt_repositories", packages.Spec{Owner: spec.Owner, Repositories: spec.Repositories}.Validate()},
		partialError{"allow_package_changes", packages.Spec{Owner: spec.Owner, Allow: spec.Allow}.Validate()})
	if software, ok := config.softwareModel.read(ctx, diags); ok {
		software.validate(diags)
	}
}

func (s packagesSection) observe(ctx context.Context, m host.Machine, declared, into *hostModel) error {
	into.packagesModel, into.softwareModel = declared.packagesModel, declared.softwareModel
	d, software, want, ok, err := s.all(ctx, m, declared)
	if err != nil || !ok || isEmptySpec(want) {
		return err
	}
	have, err := packages.Observe(ctx, m, want)
	if err != nil {
		return err
	}
	diags := into.packagesModel.write(ctx, observedPackages(d, want, have))
	diags.Append(into.softwareModel.observed(ctx, software, want, have)...)
	return failed(diags)
}

func isEmptySpec(s packages.Spec) bool {
	return len(s.Packages) == 0 && len(s.Repositories) == 0 && len(s.Absent) == 0 && s.Proxy == nil
}

func observedPackages(declared declaredPackages, want packages.Spec, have packages.State) declaredPackages {
	is := have.Spec(want)
	var m declaredPackages
	if declared.repositories != nil {
		m.repositories = map[string]repositoryModel{}
	}
	for name, r := range is.Repositories {
		d, ours := declared.repositories[name]
		if !ours {
			continue // the software's
		}
		m.repositories[name] = repositoryModel{
			URIs: sameElements(d.URIs, r.URIs), Suites: sameElements(d.Suites, r.Suites), Components: sameElements(d.Components, r.Components), Architectures: sameElements(d.Architectures, r.Architectures),
			KeyURL: d.KeyURL, Key: d.Key, Fingerprints: sameElements(d.Fingerprints, r.Fingerprints),
		}
	}
	if declared.packages != nil {
		m.packages = map[string]packageModel{}
	}
	for name, p := range is.Packages {
		d, ours := declared.packages[name]
		if !ours {
			continue
		}
		if p.Version != d.Version.ValueString() {
			d.Version = types.StringValue(p.Version)
		}
		if i := have.Packages[name]; i.Status != 'i' {
			d.Version = types.StringValue(i.Version + " (not configured)")
		}
		if p.Hold != d.Hold.ValueBool() {
			d.Hold = types.BoolValue(p.Hold)
		}
		m.packages[name] = d
	}
	m.absent = sameElements(declared.absent, is.Absent)
	return m
}

// How many of apt's actions a plan lists, and how long a line of them gets.
const (
	maxActions  = 20
	actionsLine = 90
)

// actionLines are apt's actions as one list: what they have in common is said
// once, "install curl 8.1, jq 1.6".
func actionLines(actions []packages.Action) []string {
	var lines []string
	last := ""
	for i, a := range actions {
		verb, what, _ := strings.Cut(a.String(), " ")
		if i == maxActions {
			return append(lines, fmt.Sprintf("and %d more", len(actions)-i))
		}
		if n := len(lines) - 1; verb == last && len(lines[n])+len(what) < actionsLine {
			lines[n] += ", " + what
			continue
		}
		last, lines = verb, append(lines, verb+" "+what)
	}
	return lines
}

func (s packagesSection) changes(ctx context.Context, m host.Machine, want *hostModel, diags *diag.Diagnostics) []host.Change {
	declared, software, spec, ok, err := s.all(ctx, m, want)
	if err == nil && (!ok || isEmptySpec(spec)) {
		return nil
	}
	var have packages.State
	if err == nil {
		have, err = packages.Observe(ctx, m, spec)
	}
	var forecast packages.Forecast
	if err == nil {
		forecast, err = packages.Foresee(ctx, m, spec, have)
	}
	if wrong := (contradiction{}); errors.As(err, &wrong) {
		diags.AddAttributeError(path.Root("packages"), "Packages contradict each other", list(wrong.error))
		return nil
	}
	if err != nil {
		diags.AddWarning("The forecast of apt is not known", fmt.Sprintf("%s.", err))
		return nil
	}
	for _, why := range forecast.Refusals {
		diags.AddAttributeError(path.Root("packages"), "Package change refused",
			why+"\n\nDeclare what is to become of it, or name it in allow_package_changes.")
	}
	software.unavailable(declared, spec, forecast, diags)
	noteFacts(ctx, diags, "packages", append(actionLines(forecast.Actions), forecast.Notes...))
	changes := packages.Diff(spec, have)
	for i, c := range changes {
		changes[i].Path = software.place(declared, c.Path)
	}
	return forecastChanges(changes, forecast, []string{"packages"})
}

func (s packagesSection) apply(ctx context.Context, m host.Machine, rec *host.Record, want *hostModel) error {
	_, _, spec, _, err := s.all(ctx, m, want)
	if err != nil {
		return err
	}
	spec.Limit = bound(ctx)
	have, err := packages.Observe(ctx, m, spec)
	if err != nil {
		return err
	}
	return packages.Apply(ctx, m, rec, spec, have)
}

func (s packagesSection) undoing(ctx context.Context, m host.Machine, rec *host.Record, want *hostModel) ([]host.Change, error) {
	if want == nil {
		return packages.Undoing(ctx, m, rec, nil)
	}
	_, _, spec, ok, err := s.all(ctx, m, want)
	if err != nil || !ok {
		return nil, nil // as changes says
	}
	return packages.Undoing(ctx, m, rec, &spec)
}

func (packagesSection) restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error) {
	return packages.Restore(ctx, m, rec)
}

func texts(l []types.String) []string {
	var all []string
	for _, s := range l {
		all = append(all, s.ValueString())
	}
	return all
}

// sameElements returns the declared list if the machine has the same elements in any
// order, and otherwise the observed one: order is not drift.
func sameElements(declared []types.String, has []string) []types.String {
	d := texts(declared)
	slices.Sort(d)
	if slices.Equal(d, slices.Sorted(slices.Values(has))) {
		return declared
	}
	return values(has)
}

func values(has []string) []types.String {
	l := make([]types.String, len(has))
	for i, s := range has {
		l[i] = types.StringValue(s)
	}
	return l
}

// list is an error that joins several, one to a line.
func list(err error) string {
	var several interface{ Unwrap() []error }
	if !errors.As(err, &several) {
		return err.Error() + "."
	}
	all := several.Unwrap()
	if len(all) == 1 {
		return list(all[0])
	}
	text := "All that is wrong:"
	for _, e := range all {
		text += "\n  - " + strings.TrimSuffix(e.Error(), ".")
	}
	return text
}
