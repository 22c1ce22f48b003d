package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
)

func importCommand(s *session) *cobra.Command {
	f := &planFlags{scopeFlags: scopeFlags{refresh: refreshAll}}
	cmd := &cobra.Command{
		Use:   "import [options] ADDRESS ID",
		Short: "Import an existing object into the state",
		Long: `Looks up an existing object by the ID that its provider knows it by, and stores it
under ADDRESS, which the configuration must have. The object itself is not touched.
An import block does the same as part of a plan, which shows it first.`,
		Args: exactArgs(2, "ADDRESS and ID are needed"),
	}
	cmd.Flags().StringVar(&s.configDir, "config", "", "Read the configuration in `FOLDER` in place of the working directory.")
	f.addVariables(cmd.Flags())
	f.addRun(s, cmd.Flags())
	cmd.Flags().StringVar(&f.backup, "backup", "", "Keep the state before this run in `FILE`; - keeps none. It is FILE.backup unless said otherwise.")
	cmd.Flags().Bool("ignore-remote-version", false, "Accepted and without effect.")
	_ = cmd.Flags().MarkHidden("ignore-remote-version") // it is there
	addFlagGroup(cmd.Flags(), planOptions, "config", "var", "var-file")
	addFlagGroup(cmd.Flags(), otherOptions, "backup")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		addr, err := address.ParseInstance(args[0])
		if err != nil {
			s.complain(problem("Invalid address", "%q is not the address of an object: %s.", args[0], err))
			return failed
		}
		if addr.Mode == address.Data {
			s.complain(problem("Data sources cannot be imported", "%s is a data source, which is read anyway. Only managed resources are imported.", addr))
			return failed
		}
		if args[1] == "" {
			s.complain(problem("Invalid import id", "The id is empty. Give the name that the object has in its system."))
			return failed
		}
		return s.importObject(cmd.Context(), f, addr, args[1])
	}
	return cmd
}

func (s *session) importObject(ctx context.Context, f *planFlags, addr address.Instance, id string) error {
	o := newOperation(s, f)
	if err := o.open(ctx, "Import"); err != nil {
		return err
	}
	defer o.close()
	r := o.request()
	r.State = o.state.State()
	r.Listen = s.display().begin()
	object, diags := plan.Import(ctx, r, addr, id)
	s.display().end()
	s.complain(diags...)
	if object == nil || diags.HasErrors() {
		return failed
	}
	if err := s.write(ctx, o.state, []state.Change{{Address: addr, Object: object}}); err != nil {
		return err
	}
	tell := s.printf
	if f.json {
		tell = func(format string, args ...any) { s.display().printText(fmt.Sprintf(format, args...)) }
	}
	tell("\nImport successful!\n\nThe object is in the state as %s and is managed from now on. Run \"stoke plan\"\nto see how it differs from the configuration.\n", addr)
	return nil
}
