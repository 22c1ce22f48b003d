package host

import (
	"bytes"
	"context"
	"io"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// Remote is a machine behind SSH.
type Remote struct {
	Pool   *ssh.Pool
	Target ssh.Target
}

// Name is the machine's address.
func (r *Remote) Name() string { return r.Target.Address }

// Run runs a command there.
func (r *Remote) Run(ctx context.Context, cmd Command) (ssh.Output, error) {
	return r.Pool.Run(ctx, r.Target, func() ssh.Command {
		var stdin io.Reader
		if cmd.Stdin != nil {
			stdin = bytes.NewReader(cmd.Stdin)
		}
		return ssh.Command{Args: cmd.Args, Stdin: stdin, Root: !cmd.Unprivileged}
	}, !cmd.Once)
}

// Put writes a file there.
func (r *Remote) Put(ctx context.Context, f ssh.File) error {
	f.Root = true
	return r.Pool.Put(ctx, r.Target, f)
}
