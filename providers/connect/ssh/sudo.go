package ssh

import (
	"context"
	"errors"
)

// sudoPassword tries a password for sudo on a machine by one command before any
// other: of many that run at the same time, each would have a wrong one counted,
// and the machine might lock the account.
type sudoPassword struct {
	turn  chan struct{} // one token: whoever has it may look at the rest
	taken bool
	wrong error
}

// try does so once for all.
func (s *sudoPassword) try(ctx context.Context, c *Client) error {
	if !c.credential.Sudo || c.credential.SudoPassword == "" {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	if s.taken || s.wrong != nil {
		return s.wrong
	}
	_, err := c.Run(ctx, Command{Args: []string{"true"}, Root: true})
	var wrong wrongPassword
	switch {
	case err == nil:
		s.taken = true
	case errors.As(err, &wrong):
		s.wrong = err
	}
	return err
}
