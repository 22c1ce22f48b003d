package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/modules"
)

// complete answers a shell that wants to know how a command line may go on.
// Cobra does it in its own way of writing options, with two dashes; people
// write them with one.
func (s *session) complete(root *cobra.Command, args []string) error {
	request, words := args[0], args[1:]
	if len(words) == 0 {
		return exitCode(1)
	}
	typed, last := words[:len(words)-1], words[len(words)-1]
	for len(typed) > 0 && strings.HasPrefix(typed[0], "-") { // global options
		name, value, _ := flagParts(typed[0])
		if name == "chdir" && value != "" {
			if err := os.Chdir(value); err != nil {
				return exitCode(1)
			}
		}
		typed = typed[1:]
	}
	if len(typed) == 0 && strings.HasPrefix(last, "-") {
		s.printf("-chdir=\tWork in another folder\n-help\tShow help\n-version\tShow the version\n:%d\n", cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
		return nil
	}
	line, err := understand(root, typed, func(string) string { return "" })
	if err != nil {
		return exitCode(1)
	}
	if strings.HasPrefix(last, "-") && !strings.HasPrefix(last, "--") {
		last = "-" + last
	}
	completer{s.silenced()}.add(root)
	var answer bytes.Buffer
	root.SetOut(&answer)
	root.SetArgs(append(append([]string{request}, line.args...), last))
	err = root.ExecuteContext(context.Background())
	cmd, _, _ := root.Find(line.args) // cobra has found it too
	s.printf("%s", singleDashes(answer.String(), cmd.Flags()))
	return err
}

// singleDashes renders options in the usual form: an equals sign behind those
// that need a value, =false behind those that are on by default, each with the
// first sentence of its description.
func singleDashes(answer string, flags *pflag.FlagSet) string {
	lines := strings.Split(answer, "\n")
	withValue := map[string]bool{}
	for _, line := range lines {
		if name, _, _ := strings.Cut(line, "\t"); strings.HasPrefix(name, "--") && strings.HasSuffix(name, "=") {
			withValue[strings.TrimSuffix(name, "=")] = true
		}
	}
	kept := lines[:0]
	for _, line := range lines {
		name, text, described := strings.Cut(line, "\t")
		if withValue[name] || name == "-h" {
			continue
		}
		if short, option := strings.CutPrefix(name, "--"); option {
			name = "-" + short
			if f := flags.Lookup(short); f != nil && f.Value.Type() == "bool" && f.DefValue == "true" {
				name += "=false"
			}
		}
		if text, _, _ = strings.Cut(text, ". "); described {
			name += "\t" + strings.ReplaceAll(strings.TrimSuffix(text, "."), "`", "")
		}
		kept = append(kept, name)
	}
	return strings.Join(kept, "\n")
}

// silenced is a session that prints nothing: a shell that asks for completions
// wants those and nothing else.
func (s *session) silenced() *session {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return s
	}
	q := newSession(stage{in: null, out: null, err: null, environ: s.environ, built: s.built})
	q.root, q.signals = s.root, &signals{stopping: make(chan struct{})}
	return q
}

// completer knows what arguments and options may be.
type completer struct{ s *session }

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// add teaches all commands below root what they may be given.
func (c completer) add(root *cobra.Command) {
	files := map[string]bool{"fmt": true, "show": true, "apply": true, "state push": true, "runs": true, "providers mirror": true}
	arguments := map[string]completion{
		"state list": c.addresses, "state show": c.addresses, "state mv": c.addresses, "state rm": c.addresses, "list": c.addresses,
		"taint": c.addresses, "untaint": c.addresses, "import": c.declaredResources, "output": c.outputs,
		"status": c.runAddresses, "logs": c.runAddresses, "metrics": c.runAddresses, "export": c.runAddresses,
		"watch": c.moreRunAddresses, "compare": c.moreRunAddresses, "dashboard": c.moreRunAddresses,
		"kubeconfig": c.clusterAddresses, "proxy": c.clusterAddresses,
		"exec": c.runAddresses, "port-forward": c.runAddresses,
		"workspace select": c.workspaces, "workspace delete": c.workspaces,
	}
	options := map[string]completion{
		"target": c.addresses, "replace": c.addresses, "exclude": c.addresses, "var": c.variables, "format": fixed("dot", "mermaid"),
		"provider": func(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
			return c.clusterAddresses(cmd, nil, typed)
		},
		"over": fixed("step", "time"), "stream": fixed("stdout", "stderr"),
		"type": fixed("apply", "plan", "plan-destroy", "plan-refresh-only"),
	}
	var visit func(cmd *cobra.Command, path string)
	visit = func(cmd *cobra.Command, path string) {
		if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !files[path] && path != "" {
			cmd.ValidArgsFunction = fixed()
			if f := arguments[path]; f != nil {
				cmd.ValidArgsFunction = f
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if complete := options[f.Name]; complete != nil {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // it fails where the command has its own
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub, strings.TrimPrefix(path+" "+sub.Name(), " "))
		}
	}
	visit(root, "")
}

// fixed offers fixed words, and no files.
func fixed(all ...string) completion { return offer(func(*cobra.Command) []string { return all }) }

// offer completes with names, each of which is offered once.
func offer(names func(cmd *cobra.Command) []string) completion {
	return func(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
		var fit []string
		for _, name := range names(cmd) {
			if strings.HasPrefix(name, typed) && !slices.Contains(given, name) {
				fit = append(fit, name)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

func (c completer) addresses(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offer(func(cmd *cobra.Command) []string {
		path := ""
		if f := cmd.Flags().Lookup("state"); f != nil {
			path = f.Value.String()
		}
		file, err := c.s.currentState(context.Background(), path)
		if err != nil {
			return nil
		}
		defer file.close()
		var names []string
		for _, a := range file.State().Instances() {
			names = append(names, a.String())
		}
		return names
	})(cmd, given, typed)
}

func (c completer) runAddresses(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offer(func(*cobra.Command) []string { return c.runs(given) })(cmd, given, typed)
}

// moreRunAddresses completes addresses of any number of runs.
func (c completer) moreRunAddresses(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offer(func(*cobra.Command) []string { return c.runs(nil) })(cmd, given, typed)
}

func (c completer) clusterAddresses(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offer(func(*cobra.Command) []string { return c.clusters(given) })(cmd, given, typed)
}

func (c completer) outputs(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offer(func(*cobra.Command) []string {
		file, err := c.s.currentState(context.Background(), "")
		if err != nil {
			return nil
		}
		defer file.close()
		var names []string
		for name := range file.State().Outputs() {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	})(cmd, given, typed)
}

func (c completer) workspaces(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offer(func(*cobra.Command) []string {
		at, names, err := c.s.workspaces(context.Background())
		if err != nil {
			return nil
		}
		defer at.close()
		return names
	})(cmd, given, typed)
}

// declaredResources offers the resources of the root module, for import.
func (c completer) declaredResources(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offer(func(*cobra.Command) []string {
		root, _, _ := modules.LoadRoot(modules.OnDisk(), ".")
		var names []string
		for name := range root.Resources {
			names = append(names, name.Type+"."+name.Name)
		}
		slices.Sort(names)
		return names
	})(cmd, given, typed)
}

func (c completer) variables(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
	names, _ := offer(func(*cobra.Command) []string {
		root, _, _ := modules.LoadRoot(modules.OnDisk(), ".")
		var names []string
		for name := range root.Variables {
			names = append(names, name+"=")
		}
		slices.Sort(names)
		return names
	})(cmd, given, typed)
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
