package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Answers reads the lines that people type. One goroutine reads, for as long as the
// process lives: a read from a terminal cannot be called off. It reads a line
// only when one is wanted, so that the next one may be read without an echo.
type Answers struct {
	in      *os.File
	reader  *bufio.Reader // the goroutine's while reading
	wanted  chan struct{}
	lines   chan string // closed at the end of input
	reading bool        // a line is wanted that has not come yet
}

// NewAnswers returns the answers on an input.
func NewAnswers(in *os.File) *Answers { return &Answers{in: in} }

// The ends of a wait: the input has ended, or an interrupt came.
var (
	ErrNoAnswer = errors.New("the input has ended without an answer")
	ErrStopped  = errors.New("interrupted")
)

// Line returns the next line of input, without its end; an interrupt ends
// the wait.
func (a *Answers) Line(stopping <-chan struct{}) (string, error) {
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
			return "", ErrNoAnswer
		}
		a.reading = false
		return text, nil
	case <-stopping:
		return "", ErrStopped
	}
}

func (a *Answers) read() {
	defer close(a.lines)
	for range a.wanted {
		text, err := a.reader.ReadString('\n')
		if text == "" && err != nil {
			return
		}
		a.lines <- strings.TrimRight(text, "\r\n")
	}
}

// Secret reads a line without an echo. Where the input is not a terminal it is like
// Line.
func (a *Answers) Secret(stopping <-chan struct{}) (string, error) {
	fd := int(a.in.Fd())
	if a.reading || !IsTerminal(a.in) || a.reader != nil && a.reader.Buffered() > 0 {
		return a.Line(stopping)
	}
	before, err := term.GetState(fd)
	if err != nil {
		return a.Line(stopping)
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
			return "", ErrNoAnswer
		}
		return string(x.text), nil
	case <-stopping:
		_ = term.Restore(fd, before) // make typing visible again
		return "", ErrStopped
	}
}

// All reads the whole input, unless an interrupt ends the wait.
func (a *Answers) All(most int64, stopping <-chan struct{}) ([]byte, error) {
	type input struct {
		text []byte
		err  error
	}
	got := make(chan input, 1)
	go func() { // for as long as the process lives, as read does
		text, err := io.ReadAll(io.LimitReader(a.in, most+1))
		got <- input{text, err}
	}()
	select {
	case x := <-got:
		if x.err == nil && int64(len(x.text)) > most {
			return nil, fmt.Errorf("it is larger than %d MiB", most>>20)
		}
		return x.text, x.err
	case <-stopping:
		return nil, ErrStopped
	}
}
