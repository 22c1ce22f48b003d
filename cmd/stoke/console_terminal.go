package main

import (
	"errors"
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/stokehq/stoke/modules/syntax"
)

// prompt is a terminal with line editing and a history. It is in raw mode
// only while a line is typed, so that Ctrl-C interrupts an evaluation.
type prompt struct {
	s        *session
	terminal *term.Terminal
}

func newPrompt(s *session) *prompt {
	both := struct {
		io.Reader
		io.Writer
	}{s.stage.in, s.stage.out}
	return &prompt{s: s, terminal: term.NewTerminal(both, "")}
}

// line returns what is typed until enter is pressed; the end of input and
// Ctrl-C are io.EOF.
func (p *prompt) line(text string) (string, error) {
	fd := int(p.s.stage.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, before) }()
	if width, height, err := term.GetSize(int(p.s.stage.out.Fd())); err == nil && width > 0 && height > 0 {
		_ = p.terminal.SetSize(width, height)
	}
	p.terminal.SetPrompt(text)
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // a read from a terminal cannot be called off
		text, err := p.terminal.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		got <- answer{text, err}
	}()
	select {
	case x := <-got:
		return x.text, x.err
	case <-p.s.signals.stopping:
		return "", errStopped
	}
}

// interact evaluates what is typed until somebody has had enough. Mistakes
// are shown, and do not end it.
func (c *console) interact() error {
	p := newPrompt(c.s)
	var pending []byte
	for {
		text := "> "
		if len(pending) > 0 {
			text = ": "
		}
		line, err := p.line(text)
		switch {
		case errors.Is(err, io.EOF):
			c.s.say("\n")
			return nil
		case err != nil:
			return failed
		}
		pending = append(append(pending, line...), '\n')
		whole, rest := syntax.Statements(pending)
		for _, statement := range whole {
			text := strings.TrimSpace(string(statement))
			if text == "exit" {
				return nil
			}
			if shown, ok := c.evaluate(text); ok {
				c.s.say("%s\n\n", shown)
			}
		}
		pending = append(pending[:0], rest...)
		if c.s.signals.interrupted() {
			return failed
		}
	}
}
