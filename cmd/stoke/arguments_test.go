package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnderstand(t *testing.T) {
	for _, c := range []struct {
		args string // separated by spaces
		env  map[string]string
		dir  string
		want string
		err  string
	}{
		{args: "", want: ""},
		{args: "plan", want: "plan"},
		{args: "plan -out=f -var a=b -no-color", want: "plan --out=f --var=a=b --no-color"},
		{args: "plan --out f -var=-x=1 -target module.m", want: "plan --out=f --var=-x=1 --target=module.m"},
		{args: "plan -var -x=1", want: "plan --var=-x=1"},
		{args: "plan -lock=false -refresh=0", want: "plan --lock=false --refresh=0"},
		{args: "apply -auto-approve f", want: "apply --auto-approve f"},
		{args: "apply -- -f", want: "apply -- -f"},
		{args: "-chdir=d plan", dir: "d", want: "plan"},
		{args: "-chdir d plan", dir: "d", want: "plan"},
		{args: "-chdir=d -help plan", dir: "d", want: "help plan"},
		{args: "-version", want: "version"},
		{args: "plan -h", want: "plan --help"},
		{args: "state list -id x a", want: "state list --id=x a"},
		{args: "plna -x", want: "plna --x"},
		{args: "__complete plan -", want: "__complete plan -"},
		{args: "-chdir plan -", dir: "plan", want: "-"},
		{args: "-bogus plan", err: "-bogus is not a global option"},
		{args: "-chdri=x plan", err: `-chdri is not a global option. Did you mean "-chdir"?`},
		{args: "-chdir=", err: "the option -chdir needs a folder: -chdir=DIR"},
		{
			args: "plan -out=f",
			env:  map[string]string{"TF_CLI_ARGS": "-no-color", "TF_CLI_ARGS_plan": `-var 'a=b c' -var="d=\"e\""`},
			want: `plan --no-color --var=a=b c --var=d="e" --out=f`,
		},
		{args: "state list", env: map[string]string{"TF_CLI_ARGS_state_list": "-id=x", "TF_CLI_ARGS_plan": "-no"}, want: "state list --id=x"},
		{args: "plan", env: map[string]string{"TF_CLI_ARGS": "'x"}, err: "the environment variable TF_CLI_ARGS cannot be read: a quotation is not closed"},
	} {
		root := newRoot(newSession(stage{}))
		got, err := understand(root, strings.Fields(c.args), func(name string) string { return c.env[name] })
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != c.err || got.chdir != c.dir || strings.Join(got.args, " ") != c.want && c.err == "" {
			t.Errorf("%q: got %q in %q, error %q; want %q in %q, error %q", c.args, got.args, got.chdir, text, c.want, c.dir, c.err)
		}
	}
}

func TestShellWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                    nil,
		"  a  b\t":            {"a", "b"},
		`a'b c'd ""`:          {"ab cd", ""},
		`"a\"b" '\' \\ \ x`:   {`a"b`, `\`, `\`, " x"},
		`-var 'x=["a", "b"]'`: {"-var", `x=["a", "b"]`},
	} {
		got, err := shellWords(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{`"a`, `'`, `a\`} {
		if _, err := shellWords(text); err == nil {
			t.Errorf("%q has no error", text)
		}
	}
}

// Every option of every command has a text, and its default is not told
// wrong by the way it is listed.
func TestOptionsAreDescribed(t *testing.T) {
	root := newRoot(newSession(stage{}))
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: its short description is %q", cmd.Name(), cmd.Short)
		}
		if cmd.Args == nil && !cmd.HasSubCommands() && !strings.Contains(cmd.Use, "...") {
			t.Errorf("%s takes any number of arguments", cmd.Name())
		}
	}
}
