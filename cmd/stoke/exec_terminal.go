package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/stokehq/stoke/providers"
)

// raw hands the terminal over to a command: keys go to it as they are, and so do
// changes of the size, the present one first. The function that is returned
// takes it back.
func (s *session) raw(ctx context.Context) (<-chan providers.RunSize, func(), error) {
	fd := int(s.stage.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, nil, fmt.Errorf("hand the terminal over: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	changed, sizes, done := make(chan os.Signal, 1), make(chan providers.RunSize), make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		defer close(done)
		for {
			columns, rows, err := term.GetSize(int(s.stage.out.Fd()))
			if err == nil && columns > 0 && rows > 0 {
				select {
				case sizes <- providers.RunSize{Columns: uint16(columns), Rows: uint16(rows)}:
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return sizes, func() {
		signal.Stop(changed)
		cancel()
		<-done
		_ = term.Restore(fd, before)
	}, nil
}
