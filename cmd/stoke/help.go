package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// printHelp prints what a command is for, its commands and its options.
func printHelp(cmd *cobra.Command) {
	w := cmd.OutOrStdout()
	if !cmd.HasParent() {
		rootHelp(w, cmd)
		return
	}
	fmt.Fprintf(w, "Usage: stoke [global options] %s\n\n", strings.TrimPrefix(cmd.UseLine(), "stoke "))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fmt.Fprintln(w, strings.TrimRight("  "+line, " "))
	}
	if names := commandNames(cmd); len(names) > 0 {
		width := 14
		for _, name := range names {
			width = max(width, len(name)+2)
		}
		fmt.Fprintln(w, "\nSubcommands:")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-*s%s\n", width, c.Name(), c.Short)
			}
		}
	}
	optionHelp(w, cmd.LocalFlags())
}

func rootHelp(w io.Writer, root *cobra.Command) {
	fmt.Fprintf(w, "Usage: stoke [global options] <subcommand> [args]\n\n%s.\nThe first commands below are the usual way of working.\n", root.Short)
	for _, g := range root.Groups() {
		fmt.Fprintf(w, "\n%s\n", g.Title)
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && c.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-14s%s\n", c.Name(), c.Short)
			}
		}
	}
	fmt.Fprint(w, `
Global options (they stand before the subcommand):
  -chdir=DIR    Work in another folder.
  -help         Show this text, or the text of a subcommand.
  -version      The same as the subcommand "version".
  -install-autocomplete
                Teach your shells (bash, zsh, fish) to complete commands,
                options, addresses, outputs and workspaces;
                -uninstall-autocomplete takes it back.
`)
}

// group of options in a help text; the annotation's key on a flag.
const optionGroup = "group"

// optionHelp lists options by group, in the order in which they were defined.
func optionHelp(w io.Writer, flags *pflag.FlagSet) {
	flags.SortFlags = false
	var titles []string
	byTitle := make(map[string][]*pflag.Flag)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		title := "Options"
		if a := f.Annotations[optionGroup]; len(a) > 0 {
			title = a[0]
		}
		if byTitle[title] == nil {
			titles = append(titles, title)
		}
		byTitle[title] = append(byTitle[title], f)
	})
	for _, title := range titles {
		fmt.Fprintf(w, "\n%s:\n\n", title)
		for _, f := range byTitle[title] {
			describeOption(w, f)
		}
	}
}

func describeOption(w io.Writer, f *pflag.Flag) {
	const column = 22
	value, usage := pflag.UnquoteUsage(f)
	name := "-" + f.Name
	switch {
	case f.Value.Type() == "bool" && f.DefValue == "true":
		name += "=false"
	case f.Value.Type() != "bool":
		name += "=" + value
	}
	indent := strings.Repeat(" ", column+2)
	text := indent + strings.Join(folded(usage, 78-column-2), "\n"+indent)
	if len(name) < column {
		fmt.Fprintf(w, "  %-*s%s\n", column, name, strings.TrimLeft(text, " "))
		return
	}
	fmt.Fprintf(w, "  %s\n%s\n", name, text)
}

// folded breaks text into lines of at most width characters.
func folded(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
