package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Groups of commands in the help text.
const (
	mainCommands  = "main"
	otherCommands = "other"
)

// exitCode is how a command ends when that has been said already.
type exitCode int

func (e exitCode) Error() string { return "exit" }

// failed ends a command whose errors are on the screen.
const failed exitCode = 1

// usageError is a command line that cannot be understood.
type usageError struct {
	path string // of the command, "" for none
	err  error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// execute carries out one command line and returns the exit code.
func execute(args []string, st stage) int {
	s := newSession(st)
	root := newRoot(s)
	if len(args) > 0 && strings.HasPrefix(args[0], "__complete") {
		return s.exit(s.complete(root, args))
	}
	line, err := understand(root, args, st.getenv)
	if err != nil {
		return s.exit(&usageError{err: err})
	}
	if line.chdir != "" {
		if err := os.Chdir(line.chdir); err != nil {
			return s.exit(&usageError{err: fmt.Errorf("-chdir=%s does not work: %w", line.chdir, err)})
		}
	}
	if line.install != "" {
		return s.exit(s.autocomplete(root, line.install == "install"))
	}
	if len(line.args) == 0 {
		printHelp(root)
		return 127
	}
	var diags hcl.Diagnostics
	s.logs, diags = openLogs(st)
	defer s.logs.close()
	s.stderr().Diagnostics(diags, s.source(), false) // standard output may be for JSON
	s.logs.logStart(line.args)
	root.SetArgs(line.args)
	if cmd, _, err := root.Find(line.args); err == nil && cmd == root && len(line.args) > 1 && !strings.HasPrefix(line.args[0], "-") {
		root.SetArgs(line.args[:1]) // the options of a command that is not there, -help too, are as absent as itself
	}
	if streams(line.args) {
		s.speakJSON()
	}
	ctx, stop := s.interruptible(context.Background())
	defer stop()
	return s.exit(root.ExecuteContext(ctx))
}

// exit prints the errors that were not printed yet and returns the exit code.
func (s *session) exit(err error) int {
	lost := s.results.writeError()
	if lost == nil {
		return s.verdict(err)
	}
	if !errors.Is(err, lost) {
		_ = s.verdict(err) // which says what else went wrong
	}
	s.stderr().Diagnostics(hcl.Diagnostics{problem("Output cannot be written",
		"%s What was printed is not complete; what the command did otherwise is not affected.", asSentence(lost.Error()))}, s.source(), false)
	return 1
}

// verdict is exit where the standard output is sound.
func (s *session) verdict(err error) int {
	var code exitCode
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		s.complain(problem("Command line not understood", "%s", asSentence(usage.err.Error())))
		s.hint(usage.path)
	default:
		s.complain(problem("Command failed", "%s.", err))
	}
	return 1
}

// keepOrder lets help list commands in the order in which they are added, which is the order
// of work. cobra has one variable for all trees of commands.
var keepOrder = sync.OnceFunc(func() { cobra.EnableCommandSorting = false })

func newRoot(s *session) *cobra.Command {
	root := &cobra.Command{
		Use:           "stoke",
		Short:         "Declare machines, clusters and training runs, and create them",
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if reason := absent(args[0]); reason != "" {
				return &usageError{err: errors.New(reason)}
			}
			return unknownCommand("stoke", args[0], commandNames(s.root))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { printHelp(cmd); return exitCode(127) },
	}
	s.root = root
	keepOrder()
	root.SetOut(s.results)
	root.SetErr(s.stage.err)
	root.AddGroup(&cobra.Group{ID: mainCommands, Title: "Main commands:"}, &cobra.Group{ID: otherCommands, Title: "All other commands:"})
	root.SetCompletionCommandGroupID(otherCommands)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printHelp(cmd) })
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{path: cmd.CommandPath(), err: flagError(cmd, err)}
	})
	addCommands(s, root)
	inOrder(root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("completion")
	return root
}

// addCommands adds the commands in the order in which the help lists them.
func addCommands(s *session, root *cobra.Command) {
	for _, add := range []func(*session) *cobra.Command{
		initCommand,
		validateCommand,
		planCommand,
		applyCommand,
		destroyCommand,
	} {
		group(root, mainCommands, add(s))
	}
	for _, add := range []func(*session) *cobra.Command{
		formatCommand,
		getCommand,
		modulesCommand,
		showCommand,
		outputCommand,
		runsCommand,
		watchCommand,
		statusCommand,
		logsCommand,
		execCommand,
		portForwardCommand,
		metricsCommand,
		dashboardCommand,
		compareCommand,
		exportCommand,
		benchCommand,
		kubeconfigCommand,
		proxyCommand,
		consoleCommand,
		graphCommand,
		refreshCommand,
		importCommand,
		taintCommand,
		untaintCommand,
		stateCommand,
		listCommand,
		workspaceCommand,
		forceUnlockCommand,
		providersCommand,
		metadataCommand,
		versionCommand,
	} {
		group(root, otherCommands, add(s))
	}
}

// inOrder lists options as they were defined, below every command.
func inOrder(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	cmd.Flags().SortFlags = false
	for _, c := range cmd.Commands() {
		inOrder(c)
	}
}

func group(root *cobra.Command, id string, cmd *cobra.Command) {
	cmd.GroupID = id
	root.AddCommand(cmd)
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// flagError puts a parse error in the words of this command line, with the
// flag that was most likely meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		given := unknown.GetSpecifiedName()
		return errors.New("there is no option -" + given + suggest("-", given, names))
	case errors.As(err, &invalid):
		reason := invalid.Unwrap()
		switch invalid.GetFlag().Value.Type() { // whose own words are a programmer's
		case "bool":
			reason = errors.New("true or false is needed")
		case "duration":
			reason = errors.New("a number with its unit is needed, such as 30s, 5m or 1h")
		}
		return fmt.Errorf("%q is not a value for -%s: %w", invalid.GetValue(), invalid.GetFlag().Name, reason)
	case errors.As(err, &missing):
		return errors.New("the option -" + missing.GetSpecifiedName() + " needs a value")
	}
	return err
}

func unknownCommand(parent, name string, names []string) error {
	return &usageError{path: parent, err: errors.New(parent + " has no command named \"" + name + "\"" + suggest("", name, names))}
}

// atMost is the check of how many arguments a command takes beside its flags.
func atMost(n int, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return &usageError{path: cmd.CommandPath(), err: errors.New("there are too many arguments: \"" + args[n] + "\" is not expected" + hint)}
	}
}

// problem is an error for people, without a place.
func problem(summary, format string, args ...any) *hcl.Diagnostic {
	return diagnostic(hcl.DiagError, summary, format, args...)
}
