package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	tfaddr "github.com/hashicorp/terraform-registry-address"
	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/providers"
)

func initCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init [options]",
		Short: "Prepare a folder: modules, backend, providers",
		Long: `Installs the modules that the configuration calls from elsewhere, prepares the
backend, and checks the required providers and versions.

Stoke's own providers are part of the program, so a configuration whose modules
are folders of its own can be planned without init. It is safe to run at any
time: what is there already stays as it is, unless -upgrade asks for newer.`,
		Args: atMost(0, "; to initialise another folder, use the global option -chdir"),
	}
	s.addNoColor(cmd.Flags())
	f, m := &backendFlags{}, &moduleFlags{}
	m.add(s, cmd.Flags())
	f.add(cmd)
	addAccepted(cmd, f)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.initialise(cmd.Context(), f, m) }
	return s.withJSON(cmd)
}

func (s *session) initialise(ctx context.Context, f *backendFlags, m *moduleFlags) error {
	root, err := s.initModules(ctx, m)
	if err != nil {
		return err
	}
	if root == nil {
		return nil // an empty folder, which was said
	}
	if err := s.initBackend(ctx, root, f); err != nil {
		return err
	}
	needs, diags := providerNeeds(root, s.built)
	s.complain(diags...)
	if diags.HasErrors() {
		return failed
	}
	s.printf("Initializing provider plugins...\n")
	for _, source := range needs {
		text := "- " + source + " is built in to Stoke"
		if v := ownVersion(s.built[source]); v != "" {
			text += " (v" + v + ")"
		}
		s.printf("%s\n", text)
	}
	if err := os.MkdirAll(filepath.Clean(s.dataDir()), 0o755); err != nil {
		s.complain(problem("Folder not made", "%s", asSentence(err.Error())))
		return failed
	}
	s.printf("\nStoke has been successfully initialized!\n")
	if !s.automated() {
		s.printf("\nNext, \"stoke plan\" shows what would be made, and \"stoke apply\" makes it.\n")
	}
	return nil
}

// providerNeeds lists the source addresses of all providers that the modules
// require or use, and says which of them are not there.
func providerNeeds(root *modules.Module, c providers.Catalogue) ([]string, hcl.Diagnostics) {
	needs := make(map[string]bool)
	var diags hcl.Diagnostics
	for _, m := range everyModule(root) {
		for name, required := range m.Settings.RequiredProviders {
			source, d := requiredSource(name, required, c)
			diags = append(diags, d...)
			if source != "" {
				needs[source] = true
			}
		}
		for _, r := range m.Resources {
			if _, declared := m.Settings.RequiredProviders[r.Provider.Name]; declared {
				continue
			}
			source := impliedSource(r.Provider.Name, c)
			if _, ok := c[source]; !ok && !needs[source] {
				diags = append(diags, notBuiltIn(source, r.TypeRange, c))
			}
			needs[source] = true
		}
	}
	list := make([]string, 0, len(needs))
	for source := range needs {
		list = append(list, source)
	}
	sort.Strings(list)
	return list, diags
}

func requiredSource(name string, r modules.RequiredProvider, c providers.Catalogue) (string, hcl.Diagnostics) {
	source := impliedSource(name, c)
	if r.Source != "" {
		p, err := tfaddr.ParseProviderSource(r.Source)
		if err != nil {
			return "", hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Invalid provider source", Detail: err.Error() + ".", Subject: r.Range.Ptr()}}
		}
		source = p.String()
	}
	entry, ok := c[source]
	if !ok {
		return source, hcl.Diagnostics{notBuiltIn(source, r.Range, c)}
	}
	if r.Version == "" || ownVersion(entry) == "" {
		return source, nil
	}
	return source, versionFits(source, entry.Version, r)
}

func versionFits(source, have string, r modules.RequiredProvider) hcl.Diagnostics {
	fail := func(summary, detail string) hcl.Diagnostics {
		return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: r.Range.Ptr()}}
	}
	constraints, err := goversion.NewConstraint(r.Version)
	if err != nil {
		return fail("Invalid version constraint", fmt.Sprintf("%q cannot be read as a version constraint, such as \"~> 1.0\".", r.Version))
	}
	if !constraints.Check(goversion.Must(goversion.NewVersion(have)).Core()) {
		return fail("Unsuitable provider version", fmt.Sprintf("Version %s of %s is built in, and the module requires %q. Widen the constraint, or use a stoke that fits it.", have, source, r.Version))
	}
	return nil
}

// impliedSource is the source of a provider that no required_providers names.
func impliedSource(name string, c providers.Catalogue) string {
	if name == "terraform" {
		return "terraform.io/builtin/terraform"
	}
	if ours := "registry.terraform.io/stokehq/" + name; hasEntry(c, ours) {
		return ours
	}
	return "registry.terraform.io/hashicorp/" + name
}

func hasEntry(c providers.Catalogue, source string) bool {
	_, ok := c[source]
	return ok
}

func notBuiltIn(source string, at hcl.Range, c providers.Catalogue) *hcl.Diagnostic {
	detail := "No provider " + source + " is built in to this version of stoke, and it cannot install others yet. It has:"
	for _, s := range sources(c) {
		detail += "\n    " + s
	}
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Provider not available", Detail: detail, Subject: &at}
}
