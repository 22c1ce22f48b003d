package kubetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// processes stands for the container runtime: commands are processes of this
// machine, and ports are its own.
type processes struct{}

// ExecInContainer runs a command, which finds the pod and the container that it is
// to be in as POD and CONTAINER in its environment.
func (processes) ExecInContainer(ctx context.Context, pod, _, container string, command []string, in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = os.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "POD=" + pod, "CONTAINER=" + container, "TERM=dumb"}
	var err error
	if tty {
		err = onTerminal(cmd, in, out, resize)
	} else {
		err = onPipes(cmd, in, out, errs)
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", ended.ExitCode()), Code: ended.ExitCode()}
	}
	return err
}

func onPipes(cmd *exec.Cmd, in io.Reader, out, errs io.Writer) error {
	if out != nil {
		cmd.Stdout = out
	}
	if errs != nil {
		cmd.Stderr = errs
	}
	var stdin io.WriteCloser
	if in != nil {
		var err error
		if stdin, err = cmd.StdinPipe(); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if stdin != nil { // the copy lasts as long as the caller writes; the command does not wait for it
		go func() {
			_, _ = io.Copy(stdin, in)
			stdin.Close()
		}()
	}
	return cmd.Wait()
}

// onTerminal runs a command on a pseudo-terminal.
func onTerminal(cmd *exec.Cmd, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) error {
	person, program, err := terminal()
	if err != nil {
		return err
	}
	defer person.Close()
	ends, err := person.SyscallConn() // which may be used while the file is closed
	if err != nil {
		return err
	}
	size := func(s remotecommand.TerminalSize) {
		_ = ends.Control(func(fd uintptr) {
			_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Height, Col: s.Width})
		})
	}
	if resize != nil {
		select { // the present size comes at once, before the command may ask for it
		case s := <-resize:
			size(s)
		case <-time.After(patience):
		}
		go func() {
			for s := range resize {
				size(s)
			}
		}()
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		program.Close()
		return err
	}
	program.Close()
	if in != nil {
		go func() { _, _ = io.Copy(person, in) }()
	}
	if out != nil {
		_, _ = io.Copy(out, person) // it ends with an error when the last process has
	}
	return cmd.Wait()
}

// PortForward connects to a port of this machine.
func (processes) PortForward(ctx context.Context, pod, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	var d net.Dialer
	to, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		return fmt.Errorf("failed to connect to localhost:%d inside the pod %s: %w", port, pod, err)
	}
	defer to.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(to, stream)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, to)
	stream.Close()
	<-sent
	return err
}
