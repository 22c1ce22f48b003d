package program

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	proc "github.com/stokehq/stoke/runtime/process"
)

// The streams of a rank.
const (
	standardOutput = iota
	standardError
)

// drainTime is how long the outputs of ended processes are read for: a process that
// could not be ended may keep its end of a pipe open.
const drainTime = time.Second

// rank is one process of the program with its outputs.
type rank struct {
	local, number int
	cmd           *exec.Cmd
	log           *rankLog
	tail          tail
	outputs       []*os.File // our ends of the pipes
	readers       sync.WaitGroup
	metrics       follower
	reports       func(line []byte, cut bool) // of a line that is for stoke
	output        func(rank int, line []byte) // gets each line; may be nil

	mu        sync.Mutex
	reaped    bool
	malformed int
}

// newRank prepares a rank; nothing is started.
func newRank(local int, s *Spec, path string, args, environment []string) *rank {
	r := &rank{local: local, number: s.Member.Rank + local}
	r.cmd = &exec.Cmd{Path: path, Args: args, Dir: s.Folder, Env: environment, SysProcAttr: attributes()}
	r.metrics = follower{path: s.metricsFile(local)}
	r.output = s.Output
	return r
}

// start starts the process. Its standard input is /dev/null.
func (r *rank) start(on *proc.Thread) error {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	for range []int{standardOutput, standardError} {
		ours, other, err := os.Pipe()
		if err != nil {
			r.closeOutputs()
			return &StartError{Kind: ErrStart, What: "the machine cannot make a pipe", Err: err}
		}
		r.outputs, theirs = append(r.outputs, ours), append(theirs, other)
	}
	r.cmd.Stdout, r.cmd.Stderr = theirs[standardOutput], theirs[standardError]
	if err := on.Do(r.cmd.Start); err != nil {
		r.closeOutputs()
		return explainStart(r.cmd.Args[0], err)
	}
	return nil
}

func (r *rank) readOutputs() {
	for stream, from := range r.outputs {
		r.readers.Go(func() { r.read(stream, from) })
	}
}

func (r *rank) closeOutputs() {
	for _, f := range r.outputs {
		f.Close()
	}
	r.outputs = nil
}

// read copies a stream into the log until all processes that have it are gone.
func (r *rank) read(stream int, from *os.File) {
	lines := splitter{take: func(line []byte, cut bool) {
		r.tail.add(line)
		if r.output != nil {
			r.output(r.number, line)
		}
		if rest, ok := cutPrefix(line, reportPrefix); ok && stream == standardOutput {
			r.reports(rest, cut)
		}
	}}
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.log.write(stream, buffer[:n])
		lines.Write(buffer[:n])
		if err != nil { // io.EOF, or the time to drain is over
			lines.flush()
			return
		}
	}
}

func cutPrefix(line []byte, prefix string) ([]byte, bool) {
	if len(line) < len(prefix) || string(line[:len(prefix)]) != prefix {
		return nil, false
	}
	return line[len(prefix):], true
}

// drain reads the rest of the outputs, for a limited time.
func (r *rank) drain() {
	for _, f := range r.outputs {
		f.SetReadDeadline(time.Now().Add(drainTime))
	}
	r.readers.Wait()
	r.closeOutputs()
}

// await returns the end of the process. Until then its group can be signalled.
func (r *rank) await() End {
	awaitExit(r.cmd.Process.Pid)
	r.mu.Lock()
	r.reaped = true
	r.mu.Unlock()
	e := End{Rank: r.number, PID: r.cmd.Process.Pid}
	r.cmd.Wait()                   // the state has it all
	if r.cmd.ProcessState == nil { // another part of this process has reaped it
		e.Lost = true
		return e
	}
	if status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal, e.Core = status.Signal(), status.CoreDump()
	} else {
		e.Code = r.cmd.ProcessState.ExitCode()
	}
	return e
}

// signal sends a signal to the group while its number still belongs to the rank, and
// reports whether it did.
func (r *rank) signal(signal syscall.Signal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.reaped {
		signalGroup(r.cmd.Process.Pid, signal)
	}
	return !r.reaped
}
