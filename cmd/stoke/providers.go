package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/view"
	"github.com/stokehq/stoke/providers"
)

func providersCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "providers [subcommand]",
		Short: "Show the providers that the configuration needs",
		Long: `Shows the providers that each module of the configuration needs, with their
versions, and the providers that the state needs.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd.CommandPath(), args[0], commandNames(cmd))
		},
	}
	s.addNoColor(cmd.Flags())
	addTestDirectory(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.providers(cmd.Context()) }
	cmd.AddCommand(providersSchemaCommand(s), providersLockCommand(s), providersMirrorCommand(s))
	return cmd
}

func (s *session) providers(ctx context.Context) error {
	root, err := s.structure(false)
	if err != nil {
		return err
	}
	s.printf("\nProviders required by configuration:\n.\n")
	if err := s.providerTree(root, ""); err != nil {
		return err
	}
	s.printf("\n")
	file, err := s.currentState(ctx, "")
	if err != nil {
		return err
	}
	defer file.close()
	if needs := stateProviders(file.State()); len(needs) > 0 {
		s.printf("Providers required by state:\n\n")
		for _, source := range needs {
			s.printf("    provider[%s]\n\n", source)
		}
	}
	return nil
}

// providerTree prints what a module needs, and below it the modules that it
// calls.
func (s *session) providerTree(m *modules.Module, indent string) error {
	needs, diags := moduleNeeds(m, s.built)
	s.complain(diags...)
	if diags.HasErrors() {
		return failed
	}
	calls := make([]string, 0, len(m.Calls))
	for name, c := range m.Calls {
		if c.Module != nil {
			calls = append(calls, name)
		}
	}
	slices.Sort(calls)
	branch := func(last bool) (here, below string) {
		if last {
			return "└── ", "    "
		}
		return "├── ", "│   "
	}
	for i, need := range needs {
		here, _ := branch(i == len(needs)-1 && len(calls) == 0)
		s.printf("%s%s%s\n", indent, here, need)
	}
	for i, name := range calls {
		here, below := branch(i == len(calls)-1)
		s.printf("%s%smodule.%s\n", indent, here, name)
		if err := s.providerTree(m.Calls[name].Module, indent+below); err != nil {
			return err
		}
	}
	return nil
}

// moduleNeeds lists the providers of one module, with the versions it allows.
func moduleNeeds(m *modules.Module, c providers.Catalogue) ([]string, hcl.Diagnostics) {
	needs := map[string]string{} // source → versions
	var diags hcl.Diagnostics
	for name, required := range m.Settings.RequiredProviders {
		source, more := requiredSource(name, required, c)
		if source == "" {
			diags = append(diags, more...)
			continue
		}
		needs[source] = canonicalVersions(required.Version)
	}
	implied := func(name string) {
		if _, ok := m.Settings.RequiredProviders[name]; ok {
			return
		}
		if source := impliedSource(name, c); needs[source] == "" {
			needs[source] = ""
		}
	}
	for _, r := range m.Resources {
		implied(r.Provider.Name)
	}
	for _, p := range m.Providers {
		implied(p.Name)
	}
	list := make([]string, 0, len(needs))
	for source, versions := range needs {
		list = append(list, strings.TrimRight("provider["+source+"] "+versions, " "))
	}
	slices.Sort(list)
	return list, diags
}

// canonicalVersions writes version constraints in full and in order.
func canonicalVersions(text string) string {
	constraints, err := goversion.NewConstraint(text)
	if text == "" || err != nil {
		return text
	}
	var parts []string
	for _, c := range constraints {
		one := strings.TrimSpace(c.String())
		number := strings.TrimLeft(one, "=!<>~ ")
		operator := strings.TrimSpace(strings.TrimSuffix(one, number))
		v, err := goversion.NewVersion(number)
		switch {
		case err != nil:
			parts = append(parts, one)
		case operator == "~>":
			if !strings.Contains(number, ".") {
				number += ".0"
			}
			parts = append(parts, "~> "+number)
		case operator == "" || operator == "=":
			parts = append(parts, v.String())
		default:
			parts = append(parts, operator+" "+v.String())
		}
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	slices.SortStableFunc(parts, func(a, b string) int { // lower bounds first, as people write them
		return strings.Compare(strings.TrimLeft(a, "=!<>~ "), strings.TrimLeft(b, "=!<>~ "))
	})
	return strings.Join(parts, ", ")
}

// stateProviders lists the providers of what the state holds.
func stateProviders(st *state.State) []string {
	needs := map[string]bool{}
	for _, a := range st.Instances() {
		if o := st.Current(a); o != nil {
			needs[view.ProviderSource(o.Provider)] = true
		}
		for _, o := range st.Deposed(a) {
			needs[view.ProviderSource(o.Provider)] = true
		}
	}
	list := make([]string, 0, len(needs))
	for source := range needs {
		list = append(list, source)
	}
	slices.Sort(list)
	return list
}

func providersSchemaCommand(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "schema -json",
		Short: "Print what the providers offer, as JSON",
		Long: `Prints the schemas of the providers that the configuration or the state needs, in
Terraform's published format; without a configuration, the schemas of all built-in
providers.`,
		Args: atMost(0, ""),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Required: JSON is the only form.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !asJSON {
			return &usageError{path: cmd.CommandPath(), err: errors.New("the option -json is required")}
		}
		return s.providerSchemas(cmd.Context())
	}
	return cmd
}

func (s *session) providerSchemas(ctx context.Context) error {
	root, err := s.structure(true)
	if err != nil {
		return err
	}
	needs, diags := providerNeeds(root, s.built)
	if len(needs) == 0 {
		needs = sources(s.built)
	}
	s.complain(diags...)
	if diags.HasErrors() {
		return failed
	}
	schemas := make(map[string]*providers.Schema, len(needs))
	for _, source := range needs {
		if schemas[source] = schemaOf(ctx, s.built, source); schemas[source] == nil {
			return fmt.Errorf("the provider %s does not say what it offers", source)
		}
	}
	text, err := view.SchemasJSON(schemas, s.built)
	if err != nil {
		return err
	}
	s.printf("%s\n", text)
	return nil
}

// builtIn answers requests to fetch or pin providers: there is nothing to do
// for those that are part of the program, and nothing to be had of others.
func (s *session) builtIn(what string) error {
	root, err := s.structure(false)
	if err != nil {
		return err
	}
	needs, diags := providerNeeds(root, s.built)
	s.complain(diags...)
	if diags.HasErrors() {
		return failed
	}
	for _, source := range needs {
		s.printf("- %s is built in to Stoke\n", source)
	}
	s.printf("\n%s\n", what)
	return nil
}

func providersLockCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock [options] [PROVIDER...]",
		Short: "List the built-in providers",
		Long: `Terraform pins the packages of providers with this command. Stoke's providers are
part of the program, so its version pins them, and no lock file is written. It
fails where the configuration needs a provider that is not built in.`,
	}
	for _, f := range [][2]string{{"platform", "`OS_ARCH`"}, {"fs-mirror", "`FOLDER`"}, {"net-mirror", "`URL`"}} {
		cmd.Flags().StringArray(f[0], nil, "Accepted for the sake of scripts, without effect: "+f[1]+".")
	}
	cmd.Flags().Bool("enable-plugin-cache", false, "Accepted for the sake of scripts, without effect.")
	cmd.RunE = func(*cobra.Command, []string) error {
		return s.builtIn("There is nothing to lock: the version of Stoke fixes its providers on every platform.")
	}
	return cmd
}

func providersMirrorCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mirror [options] FOLDER",
		Short: "List the built-in providers",
		Long: `Terraform copies the packages of providers into a folder with this command.
Stoke's providers are part of the program, so there is nothing to copy and
nothing is written. It fails where the configuration needs another provider.`,
		Args: atMost(1, ""),
	}
	cmd.Flags().StringArray("platform", nil, "Accepted for the sake of scripts, without effect: `OS_ARCH`.")
	cmd.Flags().Bool("lock-file", true, "Accepted for the sake of scripts, without effect.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return &usageError{path: cmd.CommandPath(), err: errors.New("the name of a folder is needed")}
		}
		return s.builtIn("There is nothing to mirror: the program holds its providers.")
	}
	return cmd
}
