package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/providers"
)

func logsCommand(s *session) *cobra.Command {
	var look lookFlags
	var o providers.RunLogs
	var asJSON, f bool
	var rank int
	cmd := &cobra.Command{
		Use:   "logs [options] ADDRESS",
		Short: "Show the logs of a run's processes",
		Long: `Shows the logs of the run behind an object of the state: of all processes in the
order of time, each line behind the name of its role, or of one role. A program's
processes are rank-0, rank-1 and so on; the role of a worker has its ranks, too.
With -f it follows new output until the run ends; Ctrl-C leaves the run going. Of
Kubernetes objects it shows what all containers of their pods say. A role is a
pod, one container of it ("web-0/main"), or an object with its pods ("web"). For a
pod that has not started, the reason is printed on the standard error.`,
		Args: atMost(1, "; the logs of one run are shown at a time"),
	}
	cmd.Flags().BoolVar(&f, "f", false, "Follow new output until the run ends.")
	cmd.Flags().BoolVar(&o.Follow, "follow", false, "The same as -f.")
	cmd.Flags().StringVar(&o.Role, "role", "", "Show the lines of one `ROLE`, such as worker-1, ps-0 or coordinator.")
	cmd.Flags().IntVar(&rank, "rank", -1, "Show the lines of one `RANK` of a program, counted from 0.")
	cmd.Flags().StringVar(&o.Stream, "stream", "", "Show the lines of one `STREAM`: stdout or stderr.")
	cmd.Flags().BoolVar(&o.Previous, "previous", false, "Show what containers said before they were last started again. Experiments on this machine have that in their logs anyway.")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print one JSON object per line.")
	look.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Follow = o.Follow || f
		if o.Stream != "" && o.Stream != "stdout" && o.Stream != "stderr" {
			return &usageError{path: cmd.CommandPath(), err: errors.New("-stream is stdout or stderr")}
		}
		if cmd.Flags().Changed("rank") {
			if o.Role != "" || rank < 0 {
				err := errors.New("-rank is the number of a rank, counted from 0, and excludes -role")
				return &usageError{path: cmd.CommandPath(), err: err}
			}
			o.Role = fmt.Sprintf("rank-%d", rank)
		}
		if o.Follow && o.Previous {
			return &usageError{path: cmd.CommandPath(), err: errors.New("-follow and -previous exclude each other: what has ended says nothing more")}
		}
		return s.look(cmd.Context(), runCommand{cmd.CommandPath(), "The run cannot be read", &look}, args, func(ctx context.Context, r *runs, run providers.Run) error {
			if err := s.checkRole(ctx, r, run, o.Role); err != nil {
				return err
			}
			o.Waiting = r.notBegun
			return run.Logs(ctx, o, func(line providers.RunLine) error {
				line.Text = r.clean(line.Text)
				switch {
				case asJSON:
					text, err := json.Marshal(line)
					if err != nil {
						return err
					}
					return s.printOrStop("%s\n", text)
				case o.Role != "":
					return s.printOrStop("%s\n", line.Text)
				}
				return s.printOrStop("%-11s | %s\n", line.Role, line.Text)
			})
		})
	}
	return cmd
}

// checkRole complains of a role that the run does not have.
func (s *session) checkRole(ctx context.Context, r *runs, run providers.Run, role string) error {
	if role == "" || role == "supervisor" || strings.HasPrefix(role, "rank-") { // the ranks are not recorded
		return nil
	}
	names, err := rolesOf(ctx, run)
	if err != nil || len(names) == 0 || slices.Contains(names, role) { // none: it is not recorded which it has
		return nil
	}
	s.complain(problem("No such role", "The run has no %q%s \"stoke status\" lists its roles.", role, sentence(suggest("", role, names))))
	return failed
}

// rolesOf are the names of a run's roles.
func rolesOf(ctx context.Context, run providers.Run) (names []string, err error) {
	if named, ok := run.(providers.RunNames); ok {
		return named.Names(ctx)
	}
	is, err := run.Status(ctx)
	for _, one := range is.Roles {
		names = append(names, one.Name)
	}
	return names, err
}
