package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandLine is what the arguments ask for, in the form that cobra reads.
type commandLine struct {
	chdir   string
	install string // "install" or "uninstall": what to do with completion in the user's shells
	args    []string
}

// understand makes Terraform's way of writing arguments fit for cobra: global
// options before the command, long flags with one dash or two, and what the
// environment adds (TF_CLI_ARGS, TF_CLI_ARGS_plan and so on).
func understand(root *cobra.Command, args []string, getenv func(string) string) (commandLine, error) {
	var line commandLine
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		name, value, given := flagParts(args[0])
		args = args[1:]
		switch name {
		case "chdir":
			if !given && len(args) > 0 {
				value, args = args[0], args[1:]
			}
			switch {
			case value == "":
				return line, errors.New("the option -chdir needs a folder: -chdir=DIR")
			case line.chdir != "":
				return line, errors.New("the option -chdir is given twice, and a command works in one folder")
			}
			line.chdir = value
		case "h", "help":
			args = append([]string{"help"}, args...)
		case "v", "version":
			args = append([]string{"version"}, args...)
		case "install-autocomplete", "uninstall-autocomplete":
			line.install, _, _ = strings.Cut(name, "-")
		default:
			return line, fmt.Errorf("-%s is not a global option%s", name, suggest("-", name, []string{"chdir", "help", "version", "install-autocomplete", "uninstall-autocomplete"}))
		}
	}
	if len(args) == 0 {
		return line, nil
	}
	cmd, path := root, []string(nil)
	for len(args) > 0 {
		next := child(cmd, args[0])
		if next == nil {
			break
		}
		path = append(path, next.Name())
		cmd, args = next, args[1:]
	}
	extra, err := environmentArguments(path, getenv)
	if err != nil {
		return line, err
	}
	line.args = append(path, dashed(cmd.Flags(), append(extra, args...))...)
	return line, nil
}

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}

// environmentArguments are those that the environment puts before the ones
// that were typed.
func environmentArguments(path []string, getenv func(string) string) ([]string, error) {
	if len(path) == 0 {
		return nil, nil
	}
	var extra []string
	for _, name := range []string{"TF_CLI_ARGS", "TF_CLI_ARGS_" + strings.Join(path, "_")} {
		words, err := shellWords(getenv(name))
		if err != nil {
			return nil, fmt.Errorf("the environment variable %s cannot be read: %w", name, err)
		}
		extra = append(extra, words...)
	}
	return extra, nil
}

// flagParts takes a flag apart: -name, --name, -name=value.
func flagParts(arg string) (name, value string, given bool) {
	name = strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	return strings.Cut(name, "=")
}

// dashed gives long flags their two dashes and joins them with their values,
// so that a value may begin with a dash.
func dashed(flags *pflag.FlagSet, args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if len(arg) < 2 || arg[0] != '-' {
			out = append(out, arg)
			continue
		}
		name, value, given := flagParts(arg)
		if name == "h" {
			name = "help"
		}
		f := flags.Lookup(name)
		if !given && f != nil && f.NoOptDefVal == "" && i+1 < len(args) {
			i++
			value, given = args[i], true
		}
		text := "--" + name
		if given {
			text += "=" + value
		}
		out = append(out, text)
	}
	return out
}

// shellWords splits text as a shell would: white space, single and double
// quotes, backslashes; nothing is expanded.
func shellWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quotation is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
