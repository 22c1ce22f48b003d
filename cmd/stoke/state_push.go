package main

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan/state"
)

func statePushCommand(s *session) *cobra.Command {
	var l lockFlags
	var force bool
	cmd := &cobra.Command{
		Use:   "push [options] PATH",
		Short: "Replace the state by the state in a file",
		Long: `Replaces the state of the selected workspace, wherever it is kept, by the one in a
file, or on the standard input when PATH is -. It rejects a state of another
lineage and a state older than the stored one. It refuses to write if an
interrupted run has left a journal.`,
		Args: exactArgs(1, "PATH"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "Write the state even if its lineage is another one or what is there is newer.")
	l.add(cmd.Flags())
	cmd.Flags().Bool("ignore-remote-version", false, "Accepted and without effect.")
	_ = cmd.Flags().MarkHidden("ignore-remote-version") // it is there
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := s.readStateText(args[0])
		if err != nil {
			return err
		}
		return s.push(cmd.Context(), text, l, force)
	}
	return cmd
}

func (s *session) push(ctx context.Context, text []byte, l lockFlags, force bool) error {
	pushed, err := state.Decode("the pushed state", text)
	if err != nil {
		s.complain(stateProblem(err))
		return failed
	}
	file, err := s.findState(ctx, "")
	if err != nil {
		return err
	}
	if file, err = s.lockFile(ctx, file, l, "StatePush"); err != nil {
		return err
	}
	defer file.close()
	if file.Unfolded() {
		s.complain(problem("State has an open journal", "A run was cut short and has left a journal, which a pushed state would contradict. Run \"stoke apply -refresh-only\" first, which settles it."))
		return failed
	}
	old, version, err := file.store.ReadSnapshot(ctx)
	if err != nil {
		s.complain(stateProblem(err))
		return failed
	}
	if version != "" && !force {
		there, err := state.Decode("the state", old)
		if err != nil {
			s.complain(stateProblem(err))
			return failed
		}
		if reason := pushRefusal(there, pushed); reason != "" {
			s.complain(problem("State not pushed", "%s Push it with -force if you are sure.", reason))
			return failed
		}
	}
	if b, ok := file.store.(state.Backuper); ok && version != "" {
		if err := b.Backup(ctx, old); err != nil {
			s.complain(stateProblem(err))
			return failed
		}
	}
	if _, err := file.store.WriteSnapshot(ctx, pushed.Encode(pushed.Serial()), version); err != nil {
		s.complain(unwritten(err))
		return failed
	}
	return nil
}

// pushRefusal returns the reason why a state may not replace the stored one; ""
// if it may.
func pushRefusal(there, pushed *state.State) string {
	empty := there.Serial() == 0 && len(there.Instances()) == 0 && len(there.Outputs()) == 0
	switch {
	case empty:
	case pushed.Lineage() != "" && there.Lineage() != pushed.Lineage(): // one written by hand has none
		return "It has the lineage \"" + pushed.Lineage() + "\" and the stored state has \"" + there.Lineage() + "\": " +
			"they are states of different things."
	case there.Serial() > pushed.Serial():
		return "The stored state has a newer serial: it was changed since the pushed state was read."
	case there.Serial() == pushed.Serial() && !bytes.Equal(there.Encode(0), pushed.Encode(0)):
		return "The stored state has the same serial and another content: both have changed since they were one."
	}
	return ""
}

func readAll(f *os.File) ([]byte, error) { return io.ReadAll(f) }
