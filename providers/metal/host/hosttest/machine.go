package hosttest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Answer is what a command says.
type Answer struct {
	Stdout, Stderr string
	Status         int
	Err            error // instead of an end of the command: a connection that is lost, say
}

// Machine is a double of a machine. Put and what package host does to files
// (host.ReadFile, host.Remove, records) work on Files; every other command has
// to be answered by Answer, or it fails as a program does that is not there.
type Machine struct {
	// Answer is asked about every command; ok is false for one that it does not
	// know.
	Answer func(cmd host.Command) (a Answer, ok bool)

	mu    sync.Mutex
	Files map[string]ssh.File
	Ran   []string // every command, quoted, in order
	// Input is what commands got by Command.Open, by the quoted command.
	Input map[string][]byte
}

// Name is the machine's name.
func (m *Machine) Name() string { return "192.0.2.1" }

// Put writes a file.
func (m *Machine) Put(_ context.Context, f ssh.File) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Files == nil {
		m.Files = map[string]ssh.File{}
	}
	m.Files[f.Path] = f
	return nil
}

// Run asks Answer.
func (m *Machine) Run(ctx context.Context, cmd host.Command) (ssh.Output, error) {
	if err := context.Cause(ctx); err != nil {
		return ssh.Output{}, err
	}
	if err := named(cmd); err != nil {
		return ssh.Output{}, err
	}
	line := ssh.QuoteAll(cmd.Args...)
	m.mu.Lock()
	m.Ran = append(m.Ran, line)
	m.mu.Unlock()
	if err := m.read(line, cmd.Open); err != nil {
		return ssh.Output{}, err
	}
	a, ok := Answer{}, false
	if m.Answer != nil {
		a, ok = m.Answer(cmd)
	}
	if !ok {
		a, ok = m.file(cmd)
	}
	if !ok {
		a = Answer{Stderr: fmt.Sprintf("%s: command not found", cmd.Args[0]), Status: 127}
	}
	out := ssh.Output{Stdout: []byte(a.Stdout), Stderr: []byte(a.Stderr)}
	switch {
	case a.Err != nil:
		return out, a.Err
	case a.Status != 0:
		return out, &ssh.CommandError{Host: m.Name(), Command: line, Status: a.Status, Output: a.Stderr}
	}
	return out, nil
}

// named is an error for a script of several lines that does not say what it is for:
// its first line is what people read in errors and in sudo's log.
func named(cmd host.Command) error {
	if len(cmd.Args) < 3 || cmd.Args[1] != "-c" || !strings.Contains(cmd.Args[2], "\n") || strings.HasPrefix(cmd.Args[2], "# ") {
		return nil
	}
	return fmt.Errorf("the first line of a script is a comment with its purpose: %.80q", cmd.Args[2])
}

// read keeps what a command gets on standard input.
func (m *Machine) read(line string, open func() (io.ReadCloser, error)) error {
	if open == nil {
		return nil
	}
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Input == nil {
		m.Input = map[string][]byte{}
	}
	m.Input[line] = b
	return nil
}

// file does what package host does to files.
func (m *Machine) file(cmd host.Command) (Answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	args := cmd.Args
	switch {
	case len(args) == 4 && args[0] == "rm" && args[1] == "-f":
		delete(m.Files, args[3])
		return Answer{}, true
	case args[0] == "install" && len(args) > 1 && args[1] == "-d":
		return Answer{}, true
	case len(args) < 5 || args[0] != "sh" || args[1] != "-c":
		return Answer{}, false
	}
	name := args[4]
	f, exists := m.Files[name]
	switch {
	case strings.Contains(args[2], "exec cat --"):
		if !exists {
			return Answer{Stdout: "n"}, true
		}
		return Answer{Stdout: "y" + string(f.Content)}, true
	case strings.Contains(args[2], "cp -a -- \"$1\" \"$2.new\""):
		if !exists {
			return Answer{Stdout: "absent\n"}, true
		}
		m.Files[args[5]] = f
		return Answer{Stdout: "there\n"}, true
	case strings.Contains(args[2], "stoke-new"):
		if args[6] == "absent" {
			delete(m.Files, name)
		} else {
			m.Files[name] = m.Files[args[5]]
			delete(m.Files, args[5])
		}
		return Answer{}, true
	case strings.HasPrefix(args[2], "rm -rf --"):
		for p := range m.Files {
			if strings.HasPrefix(p, name+"/") {
				delete(m.Files, p)
			}
		}
		return Answer{}, true
	}
	return Answer{}, false
}
