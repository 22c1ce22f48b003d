package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

const commandsPage = moduleRoot + "docs/commands.md"

const commandsHead = `# Commands

The ` + "`-help`" + ` texts of all commands. This page is made of those texts: after a change of one, run
` + "`go test ./cmd/stoke -run TestDocsCommands -update`" + `.

Options may have one dash or two. The global options stand before the command.
`

// TestDocsCommands holds the page that lists all commands to their help texts.
func TestDocsCommands(t *testing.T) {
	var out bytes.Buffer
	root := newRoot(newSession(stage{in: os.Stdin}))
	root.SetOut(&out)
	out.WriteString(commandsHead)
	writeHelp(&out, root)
	want := out.String()
	for _, line := range strings.Split(strings.TrimPrefix(want, commandsHead), "\n") {
		if len(line) > 85 {
			t.Errorf("a help text has a line of %d columns; break it at 80: %s", len(line), line)
		}
	}
	if *rewrite {
		if err := os.WriteFile(commandsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/commands.md is not what the commands say; run this test with -update (-help +page):\n%s", diff)
	}
}

// writeHelp writes the help text of a command and of those below it.
func writeHelp(out *bytes.Buffer, cmd *cobra.Command) {
	if cmd.Name() == "completion" { // made by the library, for shells
		return
	}
	out.WriteString("\n" + strings.Repeat("#", min(strings.Count(cmd.CommandPath(), " ")+2, 3)) + " " + cmd.CommandPath() + "\n\n```text\n")
	printHelp(cmd)
	out.WriteString("```\n")
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			writeHelp(out, c)
		}
	}
}
