package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/providers"
)

func portForwardCommand(s *session) *cobra.Command {
	var f lookFlags
	var role string
	cmd := &cobra.Command{
		Use:   "port-forward [options] ADDRESS [LOCAL:]REMOTE...",
		Short: "Forward local ports to a pod",
		Long: `Listens on ports of 127.0.0.1, and forwards connections to a pod behind an object
of the state, until Ctrl-C. REMOTE is a number, or the pod's name for the port.
LOCAL defaults to REMOTE. If you write :REMOTE, or if REMOTE is a name, stoke
chooses a free port. Without a role the command selects a pod that runs and is
ready, and another pod when that one ends.`,
	}
	cmd.Flags().StringVar(&role, "role", "", "Forward to `ROLE`: a pod, or an object (\"web\").")
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var ports []providers.RunPort
		for _, text := range args[min(1, len(args)):] {
			p, err := parsePort(text)
			if err != nil {
				return &usageError{path: cmd.CommandPath(), err: err}
			}
			ports = append(ports, p)
		}
		if len(args) == 1 {
			return &usageError{path: cmd.CommandPath(), err: errors.New("a port is needed: stoke port-forward " + args[0] + " 8080:80")}
		}
		return s.look(cmd.Context(), runCommand{cmd.CommandPath(), "The ports cannot be forwarded", &f}, args, func(ctx context.Context, r *runs, run providers.Run) error {
			to, ok := run.(providers.RunForwarder)
			if !ok {
				s.complain(problem("No ports to forward", "%s runs as processes of a machine, whose ports are there.", args[0]))
				return failed
			}
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			err := to.Forward(ctx, role, ports, providers.RunForward{
				Ready: func(role string, ports []providers.RunPort) {
					for _, p := range ports {
						if err := s.printOrStop("127.0.0.1:%d -> %s:%s\n", p.Local, r.clean(role), p.Remote); err != nil {
							cancel(err)
						}
					}
				},
				Trouble: func(text string) { fmt.Fprintln(s.stage.err, r.clean(asSentence(text))) },
			})
			if err == nil {
				err = s.results.writeError()
			}
			return err
		})
	}
	return cmd
}

// parsePort reads LOCAL:REMOTE.
func parsePort(text string) (p providers.RunPort, err error) {
	local, remote, both := strings.Cut(text, ":")
	if !both {
		local, remote = text, text
	}
	if remote == "" {
		return p, fmt.Errorf("%q has no port behind the colon", text)
	}
	p.Remote = remote
	if n, err := strconv.Atoi(remote); err == nil && (n < 1 || n > 65535) {
		return p, fmt.Errorf("%s is not a port: ports are numbers from 1 to 65535", remote)
	}
	n, err := strconv.ParseUint(local, 10, 16)
	switch {
	case local == "": // any
	case err != nil && !both: // a name
	case err != nil:
		return p, fmt.Errorf("%q is not a port of this machine: ports are numbers from 1 to 65535", local)
	default:
		p.Local = uint16(n)
	}
	return p, nil
}
