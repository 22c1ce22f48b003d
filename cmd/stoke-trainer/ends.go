package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// usageError is about arguments, environment or specification: the same ones
// would be wrong again.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func badUsage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// endOf is the exit status of a process whose work ended with err.
func endOf(err error) spec.End {
	var how wire.Leave
	switch {
	case err == nil:
		return spec.EndFinished
	case errors.As(err, &how):
		return how.End
	case errors.As(err, new(usageError)), errors.Is(err, wire.ErrRefused): // the token is wrong
		return spec.EndUsage
	}
	return spec.EndError
}

// endError returns the error that the process ends with, from a run's outcome.
// asked reports whether the user or a signal requested the end.
func endError(phase spec.Phase, message string, asked bool) error {
	end := spec.EndOf(phase)
	switch {
	case end == spec.EndFinished:
		return nil
	case asked || !phase.Final():
		end = spec.EndAsked
	}
	return reportedError{wire.Leave{End: end, Reason: message}}
}

// ends is the table of exit statuses for the help of a command.
func ends() string {
	var b strings.Builder
	b.WriteString("Exit status:\n")
	for _, row := range spec.Ends {
		fmt.Fprintf(&b, "  %2d  %s\n", row.End, row.Meaning)
	}
	return b.String()
}

// markUsageErrors makes each error of cobra about arguments a usageError, in cmd
// and all commands below it.
func markUsageErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	for _, c := range append([]*cobra.Command{cmd}, cmd.Commands()...) {
		if check := c.Args; check != nil {
			c.Args = func(cmd *cobra.Command, args []string) error {
				if err := check(cmd, args); err != nil {
					return usageError{err}
				}
				return nil
			}
		}
		if c != cmd {
			markUsageErrors(c)
		}
	}
}
