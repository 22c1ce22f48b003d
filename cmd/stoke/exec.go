package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/cmd/stoke/terminal"
	"github.com/stokehq/stoke/providers"
)

// interruptedCode is the exit code of a command that an interrupt has ended, as
// shells have it: 128 and the number of SIGINT.
const interruptedCode exitCode = 130

func execCommand(s *session) *cobra.Command {
	var f lookFlags
	var role string
	var noTerminal, noInput bool
	cmd := &cobra.Command{
		Use:   "exec [options] ADDRESS -- COMMAND [ARGUMENT...]",
		Short: "Run a command in a pod",
		Long: `Runs a command in a container of the pods behind an object of the state, and ends
with the command's exit code. Where no role is named, one is taken that runs and
is ready. The command gets the standard input, and a terminal where this has
one: then keys such as Ctrl-C go to the command.`,
	}
	cmd.Flags().StringVar(&role, "role", "", "Run it in `ROLE`: a pod, one container of it (\"web-0/main\"), or an object (\"web\").")
	cmd.Flags().BoolVar(&noTerminal, "no-tty", false, "Give the command no terminal: what it writes stays as it is, and stderr apart.")
	cmd.Flags().BoolVar(&noInput, "no-stdin", false, "Give the command no input, for scripts that read theirs themselves.")
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dash := cmd.ArgsLenAtDash()
		switch {
		case dash < 0 && len(args) > 0:
			dash = 1
		case dash > 1:
			return &usageError{path: cmd.CommandPath(), err: fmt.Errorf("one address is expected before --, and %q is another", args[1])}
		}
		if dash <= 0 {
			return &usageError{path: cmd.CommandPath(), err: errors.New("the address of a run is needed")}
		}
		command := args[dash:]
		if len(command) == 0 {
			return &usageError{path: cmd.CommandPath(), err: errors.New("the command is needed, behind --: stoke exec " + args[0] + " -- sh")}
		}
		return s.look(cmd.Context(), runCommand{cmd.CommandPath(), "The command cannot be run", &f}, args, func(ctx context.Context, r *runs, run providers.Run) error {
			in, ok := run.(providers.RunExecutor)
			if !ok {
				s.complain(problem("No place for commands", "%s runs as processes of a machine: log in there to run other "+
					"commands.", args[0]))
				return failed
			}
			return s.exec(ctx, in, role, command, noTerminal, noInput)
		})
	}
	return cmd
}

// exec runs a command and ends as it does.
func (s *session) exec(ctx context.Context, in providers.RunExecutor, role string, command []string, noTerminal, noInput bool) error {
	streams := providers.RunStreams{Out: s.results, Err: s.stage.err}
	if !noInput {
		streams.In = s.stage.in
	}
	streams.Chosen = func(role string) {
		fmt.Fprintf(s.stage.err, "In %s; -role names another one.\n", role)
	}
	if !noTerminal && !noInput && isTerminal(s.stage.in) && isTerminal(s.stage.out) {
		given := terminal.Give(ctx, s.stage.in, s.stage.out)
		defer given.TakeBack()
		streams.Terminal, streams.In, streams.Sizes = true, given, given.Sizes
		streams.Chosen = nil // it would be in the way of what is drawn
	}
	code, err := in.Exec(ctx, role, command, streams)
	switch {
	case err != nil:
		return err
	case code != 0:
		return exitCode(code)
	}
	return s.results.writeError()
}
