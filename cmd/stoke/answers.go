package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// answers reads what people type. One goroutine reads, for as long as the
// process lives: a read from a terminal cannot be called off.
type answers struct {
	in    *os.File
	lines chan string // closed at the end of input
}

func newAnswers(in *os.File) *answers { return &answers{in: in} }

var (
	errNoAnswer = errors.New("there is nobody to answer")
	errStopped  = errors.New("interrupted")
)

// line returns the next line of input, without its end; an interrupt ends
// the wait.
func (a *answers) line(stopping <-chan struct{}) (string, error) {
	if a.lines == nil {
		a.lines = make(chan string)
		go a.read(a.lines)
	}
	select {
	case text, ok := <-a.lines:
		if !ok {
			return "", errNoAnswer
		}
		return text, nil
	case <-stopping:
		return "", errStopped
	}
}

func (a *answers) read(lines chan<- string) {
	defer close(lines)
	const longest = 1 << 20
	r := bufio.NewReader(io.LimitReader(a.in, longest))
	for {
		text, err := r.ReadString('\n')
		if text != "" {
			lines <- strings.TrimRight(text, "\r\n")
		}
		if err != nil {
			return
		}
	}
}

// secret reads a line that is not to be seen on the screen. Where the input
// is no terminal it is like line.
func (a *answers) secret(stopping <-chan struct{}) (string, error) {
	fd := int(a.in.Fd())
	if a.lines != nil || !isTerminal(a.in) {
		return a.line(stopping)
	}
	before, err := term.GetState(fd)
	if err != nil {
		return a.line(stopping)
	}
	type answer struct {
		text []byte
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		got <- answer{text, err}
	}()
	select {
	case x := <-got:
		if x.err != nil {
			return "", errNoAnswer
		}
		return string(x.text), nil
	case <-stopping:
		_ = term.Restore(fd, before) // make typing visible again
		return "", errStopped
	}
}
