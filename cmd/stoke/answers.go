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
// process lives: a read from a terminal cannot be called off. It reads a line
// only when one is wanted, so that the next one may be read without an echo.
type answers struct {
	in      *os.File
	reader  *bufio.Reader // the goroutine's while reading
	wanted  chan struct{}
	lines   chan string // closed at the end of input
	reading bool        // a line is wanted that has not come yet
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
		const longest = 1 << 20
		a.reader = bufio.NewReader(io.LimitReader(a.in, longest))
		a.wanted, a.lines = make(chan struct{}, 1), make(chan string)
		go a.read()
	}
	if !a.reading {
		a.reading = true
		a.wanted <- struct{}{}
	}
	select {
	case text, ok := <-a.lines:
		if !ok { // it stays so
			return "", errNoAnswer
		}
		a.reading = false
		return text, nil
	case <-stopping:
		return "", errStopped
	}
}

func (a *answers) read() {
	defer close(a.lines)
	for range a.wanted {
		text, err := a.reader.ReadString('\n')
		if text == "" && err != nil {
			return
		}
		a.lines <- strings.TrimRight(text, "\r\n")
	}
}

// secret reads a line that is not to be seen on the screen. Where the input
// is no terminal it is like line.
func (a *answers) secret(stopping <-chan struct{}) (string, error) {
	fd := int(a.in.Fd())
	if a.reading || !isTerminal(a.in) || a.reader != nil && a.reader.Buffered() > 0 {
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
