package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/providers"
)

func logsCommand(s *session) *cobra.Command {
	var path string
	var o providers.RunLogs
	var asJSON, f bool
	cmd := &cobra.Command{
		Use:   "logs [options] ADDRESS",
		Short: "Show what the processes of a run have said",
		Long: `Shows the logs of the run behind an object of the state: all of its processes'
in the order of time, each line behind the name of its role, or those of one
role. With -f it goes on with what comes, until the run ends; Ctrl-C leaves the
run going.`,
		Args: atMost(1, "; the logs of one run are shown at a time"),
	}
	cmd.Flags().BoolVar(&f, "f", false, "Follow: go on with what comes, until the run ends.")
	cmd.Flags().BoolVar(&o.Follow, "follow", false, "The same as -f.")
	cmd.Flags().StringVar(&o.Role, "role", "", "Show the lines of one `ROLE`, such as worker-1, ps-0 or coordinator.")
	cmd.Flags().StringVar(&o.Stream, "stream", "", "Show the lines of one `STREAM`: stdout or stderr.")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print one JSON object per line.")
	cmd.Flags().StringVar(&path, "state", "", "Read `FILE` in place of terraform.tfstate.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Follow = o.Follow || f
		if o.Stream != "" && o.Stream != "stdout" && o.Stream != "stderr" {
			return &usageError{path: cmd.CommandPath(), err: errors.New("-stream is stdout or stderr")}
		}
		return s.look(cmd.Context(), path, args, cmd.CommandPath(), func(ctx context.Context, r *runs, run providers.Run) error {
			if err := s.known(ctx, r, run, o.Role); err != nil {
				return err
			}
			return run.Logs(ctx, o, func(line providers.RunLine) error {
				line.Text = r.clean(line.Text)
				switch {
				case asJSON:
					text, err := json.Marshal(line)
					if err != nil {
						return err
					}
					return s.said("%s\n", text)
				case o.Role != "":
					return s.said("%s\n", line.Text)
				}
				return s.said("%-11s | %s\n", line.Role, line.Text)
			})
		})
	}
	return cmd
}

// known complains of a role that the run does not have.
func (s *session) known(ctx context.Context, r *runs, run providers.Run, role string) error {
	if role == "" || role == "supervisor" {
		return nil
	}
	is, err := run.Status(ctx)
	if err != nil || len(is.Roles) == 0 { // it is not recorded which it has
		return nil
	}
	var names []string
	for _, one := range is.Roles {
		if one.Name == role {
			return nil
		}
		names = append(names, one.Name)
	}
	s.complain(problem("No such role", "The run has no %q%s \"stoke status\" lists its roles.", role, sentence(suggest("", role, names))))
	return failed
}
