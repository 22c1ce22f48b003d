package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// acceptedOptions is the group of options that scripts give to Terraform and
// that have nothing to do here.
const acceptedOptions = "Accepted for the sake of scripts, without effect"

// addAccepted accepts the options of terraform init that make sense where
// providers are installed, so that scripts need no change.
func addAccepted(cmd *cobra.Command, f *backendFlags) {
	flags := cmd.Flags()
	flags.Var(&lockfileMode{}, "lockfile", "`MODE` readonly: providers are part of the program, and no file locks their versions.")
	flags.StringArray("plugin-dir", nil, "`FOLDER` of plugins: none is looked for.")
	in(flags, acceptedOptions, "lockfile", "plugin-dir")
	addTestDirectory(flags)
	flags.BoolVar(&f.backend, "cloud", true, "The same as -backend.")
	flags.Bool("ignore-remote-version", false, "Nothing.")
	for _, name := range []string{"cloud", "ignore-remote-version"} {
		flags.Lookup(name).Hidden = true
	}
}

// addTestDirectory accepts the option that says where Terraform's tests are.
func addTestDirectory(flags *pflag.FlagSet) {
	flags.String("test-directory", "tests", "`FOLDER` of tests: they are not looked at.")
	in(flags, acceptedOptions, "test-directory")
}

// lockfileMode takes the one mode that Terraform has.
type lockfileMode struct{ text string }

func (m *lockfileMode) String() string { return m.text }
func (m *lockfileMode) Type() string   { return "string" }

func (m *lockfileMode) Set(text string) error {
	if text != "readonly" {
		return errors.New("readonly is the only mode")
	}
	m.text = text
	return nil
}
