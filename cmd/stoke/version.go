package main

import (
	"cmp"
	"encoding/json"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

func versionCommand(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version [options]",
		Short: "Show the version of Stoke and of its providers",
		Args:  atMost(0, ""),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print the versions as JSON.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(*cobra.Command, []string) error {
		if asJSON {
			return s.versionJSON()
		}
		s.printf("Stoke v%s\non %s_%s\n", version, runtime.GOOS, runtime.GOARCH)
		for _, source := range sources(s.built) {
			if v := ownVersion(s.built[source]); v != "" {
				s.printf("+ provider %s v%s\n", source, v)
			}
		}
		s.printf("Speaks the language, state and plan formats of Terraform %s.\n", terraformVersion)
		return nil
	}
	return cmd
}

func (s *session) versionJSON() error {
	text, err := json.MarshalIndent(map[string]any{
		"terraform_version": terraformVersion, "stoke_version": version,
		"platform": runtime.GOOS + "_" + runtime.GOARCH, "provider_selections": s.selections(), "terraform_outdated": false,
	}, "", "  ")
	if err != nil {
		return err
	}
	s.printf("%s\n", text)
	return nil
}

// selections are the versions of the providers that the configuration needs.
// A configuration that cannot be read needs none: the command works everywhere.
func (s *session) selections() map[string]string {
	selected := make(map[string]string)
	root, diags := s.read()
	if diags.HasErrors() {
		return selected
	}
	needs, _ := providerNeeds(root, s.built)
	for _, source := range needs {
		entry, ok := s.built[source]
		if !ok || strings.HasPrefix(source, "terraform.io/builtin/") { // a part of the language
			continue
		}
		selected[source] = cmp.Or(ownVersion(entry), version)
	}
	return selected
}
