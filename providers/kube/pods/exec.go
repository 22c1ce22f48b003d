package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// Exec runs a command in a container: of the pod, or "pod/container", or object
// that role names, or of any. It returns the command's exit code.
func (s *Set) Exec(ctx context.Context, role string, command []string, streams providers.RunStreams) (int, error) {
	in, err := s.choose(ctx, role)
	if err != nil {
		return 0, err
	}
	if in.others && streams.Chosen != nil {
		streams.Chosen(in.role)
	}
	query := url.Values{"container": {in.container.name}, "command": command, "stdout": {"true"}}
	o := remotecommand.StreamOptions{Stdin: streams.In, Stdout: streams.Out, Tty: streams.Terminal}
	if streams.In != nil {
		query.Set("stdin", "true")
	}
	if streams.Terminal {
		query.Set("tty", "true")
		o.TerminalSizeQueue = &sizes{ctx, streams.Sizes}
	} else {
		query.Set("stderr", "true")
		o.Stderr = streams.Err
	}
	run, err := s.Client.Executor(ctx, s.url(in.pod, "exec", query))
	if err != nil {
		return 0, err
	}
	err = run.StreamWithContext(ctx, o)
	var ended exec.CodeExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &ended):
		return ended.Code, nil
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, &providers.RunError{Summary: "Connection cut", Detail: fmt.Sprintf("The connection to %s was cut; the command's end is unknown. It may run still.", in.role), Err: err}
	}
	return 0, streamRefusal("run commands", in, err)
}

// url returns the URL of a subresource of a pod.
func (s *Set) url(p *core.Pod, subresource string, query url.Values) *url.URL {
	u := s.Client.REST().Get().AbsPath("/api/v1/namespaces", p.Namespace, "pods", p.Name, subresource).URL()
	u.RawQuery = query.Encode()
	return u
}

// streamRefusal is the error for a server that did not open a stream.
func streamRefusal(what string, in *chosen, err error) error {
	cause := kubernetes.Refusal(err)
	if apierrors.IsForbidden(cause) {
		return &providers.RunError{Summary: "Not allowed in this cluster", Detail: fmt.Sprintf("The API server refuses to %s in %s: %s.", what, in.role, cause), Err: cause}
	}
	return fmt.Errorf("%s: %w", in.role, cause)
}

// sizes provides the sizes of a terminal.
type sizes struct {
	ctx context.Context
	of  <-chan providers.RunSize
}

// Next waits for another size; nil means that no other will follow.
func (s *sizes) Next() *remotecommand.TerminalSize {
	select {
	case size, ok := <-s.of:
		if !ok {
			return nil
		}
		return &remotecommand.TerminalSize{Width: size.Columns, Height: size.Rows}
	case <-s.ctx.Done():
		return nil
	}
}
