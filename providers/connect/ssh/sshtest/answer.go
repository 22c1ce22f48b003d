package sshtest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Asked is a command that a test answers instead of a shell.
type Asked struct {
	Args  []string
	Root  bool // by sudo
	Stdin io.Reader
}

// answer lets the test answer a command. It reads what package ssh sends: its
// wrapping, then sudo, then the mark that begins and ends what a command says.
func (s *Server) answer(line string, channel ssh.Channel) int {
	words, err := unwrapped(line)
	if err != nil {
		io.WriteString(channel.Stderr(), err.Error())
		return 2
	}
	asked := Asked{}
	if words[0] == "sudo" {
		asked.Root = true
		for len(words) > 0 && words[0] != "--" {
			words = words[1:]
		}
		words = words[min(1, len(words)):]
	}
	if len(words) != 6 { // sh -c BEGIN sh MARK LABEL
		return 2
	}
	mark := words[4]
	io.WriteString(channel, mark+"\n")
	io.WriteString(channel.Stderr(), mark+"\n")
	in := bufio.NewReader(channel)
	command, err := in.ReadString('\n')
	if err != nil {
		return 1
	}
	if asked.Args, err = split(strings.TrimSuffix(command, "\n")); err != nil || len(asked.Args) == 0 {
		return 2
	}
	if asked.Stdin = in; len(asked.Args) == 5 && strings.Contains(asked.Args[2], "while IFS=' ' read -r m i l") {
		return s.looks(in, channel)
	}
	out, status := s.given.Answer(asked)
	io.WriteString(channel, out+mark)
	return status
}

// unwrapped are the words of the shell command in a line that any login shell
// hands on.
func unwrapped(line string) ([]string, error) {
	_, text, ok := strings.Cut(line, `' sh '`)
	if !ok {
		return nil, errors.New("it is not wrapped")
	}
	words, err := split(strings.TrimSuffix(text, "'"))
	if err != nil {
		return nil, err
	}
	if len(words) < 2 || words[0] != "exec" {
		return nil, errors.New("it is no command")
	}
	return words[1:], nil
}

// looks answers one command after the other, as the shell for looks does.
func (s *Server) looks(lines *bufio.Reader, channel ssh.Channel) int {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0
		}
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3) // MARK INPUT COMMAND
		if len(fields) < 3 {
			return 2
		}
		mark := fields[0]
		input, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(fields[1], "-"))
		if err != nil {
			return 2
		}
		words, err := split(fields[2])
		if err != nil || len(words) == 0 {
			return 2
		}
		out, status := s.given.Answer(Asked{Args: words, Root: true, Stdin: bytes.NewReader(input)})
		fmt.Fprintf(channel.Stderr(), "%s\n\nend %[1]s\n", mark)
		fmt.Fprintf(channel, "%s\n%s%[1]s\nend %[1]s %[3]d\n", mark, out, status)
	}
}

// split are the words of a shell command in printf's %b.
func split(text string) ([]string, error) {
	var plain strings.Builder
	for text != "" {
		if !strings.HasPrefix(text, `\0`) || len(text) < 5 {
			plain.WriteByte(text[0])
			text = text[1:]
			continue
		}
		c, err := strconv.ParseUint(text[2:5], 8, 8)
		if err != nil {
			return nil, err
		}
		plain.WriteByte(byte(c))
		text = text[5:]
	}
	var words []string
	var word strings.Builder
	begun, quoted, escaped := false, false, false
	for i := range len(plain.String()) {
		c := plain.String()[i]
		switch {
		case escaped:
			escaped = false
			word.WriteByte(c)
		case c == '\'':
			begun, quoted = true, !quoted
		case quoted:
			word.WriteByte(c)
		case c == '\\':
			begun, escaped = true, true
		case c == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
