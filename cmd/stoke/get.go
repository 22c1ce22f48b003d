package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/source"
)

func getCommand(s *session) *cobra.Command {
	var update bool
	cmd := &cobra.Command{
		Use:   "get [options]",
		Short: "Install the modules that the configuration calls",
		Long: `Installs the modules that the configuration calls from outside its folder. stoke
init does this, too.
Installed modules stay as they are, unless -update asks for newer versions.`,
		Args: atMost(0, "; to work in another folder, use the global option -chdir"),
	}
	cmd.Flags().BoolVar(&update, "update", false, "Fetch all modules again, in the newest versions that the "+
		"configuration accepts.")
	s.addNoColor(cmd.Flags())
	addTestDirectory(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := s.signals.untilStopped(cmd.Context())
		defer stop()
		root, err := s.install(ctx, update, false)
		if root == nil && err == nil {
			_, err = s.load(false) // which says that there is nothing
		}
		return err
	}
	return cmd
}

func modulesCommand(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "modules [options]",
		Short: "List the modules that the configuration calls",
		Long: `Shows the modules that the configuration calls and where they come from, as a
tree, or with -json as a list.`,
		Args: atMost(0, "; to work in another folder, use the global option -chdir"),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print JSON, in Terraform's format.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(*cobra.Command, []string) error {
		root, err := s.structure(false)
		if err != nil {
			return err
		}
		if asJSON {
			return s.modulesJSON(root)
		}
		if len(root.Calls) == 0 {
			s.printf("No modules found in configuration.\n")
			return nil
		}
		s.printf("\nModules declared by configuration:\n.\n")
		s.moduleTree(root, "")
		s.printf("\n")
		return nil
	}
	return cmd
}

func (s *session) moduleTree(m *modules.Module, indent string) {
	names := slices.Sorted(maps.Keys(m.Calls))
	for i, name := range names {
		branch, below := "├── ", "│   "
		if i == len(names)-1 {
			branch, below = "└── ", "    "
		}
		call := m.Calls[name]
		text := fmt.Sprintf("%q[%s]", name, call.Address.Redacted())
		if shown := shownVersion(call); shown != "" {
			text += " " + shown
			if call.Version != "" {
				text += " (" + call.Version + ")"
			}
		}
		s.printf("%s%s%s\n", indent, branch, text)
		s.moduleTree(call.Module, indent+below)
	}
}

// shownVersion is the version that somebody has chosen by a number.
func shownVersion(call *modules.Call) string {
	if call.Address.Kind != source.Published {
		return ""
	}
	return call.Installed
}

func (s *session) modulesJSON(root *modules.Module) error {
	type entry struct {
		Key     string `json:"key"`
		Source  string `json:"source"`
		Version string `json:"version"`
	}
	list := []entry{}
	var add func(m *modules.Module)
	add = func(m *modules.Module) {
		for _, name := range slices.Sorted(maps.Keys(m.Calls)) {
			call := m.Calls[name]
			list = append(list, entry{Key: name, Source: call.Address.Redacted(), Version: shownVersion(call)})
			add(call.Module)
		}
	}
	add(root)
	text, err := json.Marshal(map[string]any{"format_version": "1.0", "modules": list})
	if err != nil {
		return err
	}
	s.printf("%s\n", text)
	return nil
}
