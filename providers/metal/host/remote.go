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
	var in input
	defer in.close()
	if cmd.Open != nil {
		// An input that cannot be opened is an error at once; later tries find it out
		// by reading.
		if in = (input{open: cmd.Open}); in.begin() != nil {
			return ssh.Output{}, in.err
		}
	}
	tried := false
	return r.Pool.Run(ctx, r.Target, func() ssh.Command {
		var stdin io.Reader
		switch {
		case cmd.Open != nil:
			if tried {
				in.close()
			}
			tried, stdin = true, &in
		case cmd.Stdin != nil:
			stdin = bytes.NewReader(cmd.Stdin)
		}
		return ssh.Command{Args: cmd.Args, Stdin: stdin, Root: !cmd.Unprivileged, Look: cmd.Look}
	}, !cmd.Once)
}

type input struct {
	open func() (io.ReadCloser, error)
	from io.ReadCloser
	err  error
}

func (in *input) begin() error {
	if in.from == nil && in.err == nil {
		in.from, in.err = in.open()
	}
	return in.err
}

// Read reads the stream from its beginning after close.
func (in *input) Read(p []byte) (int, error) {
	if err := in.begin(); err != nil {
		return 0, ssh.Permanent{Err: err}
	}
	return in.from.Read(p)
}

func (in *input) close() {
	if in.from != nil {
		in.from.Close()
	}
	in.from, in.err = nil, nil
}

// Put writes a file there.
func (r *Remote) Put(ctx context.Context, f ssh.File) error {
	f.Root = true
	return r.Pool.Put(ctx, r.Target, f)
}
