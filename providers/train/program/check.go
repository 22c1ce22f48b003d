package program

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/stokehq/stoke/runtime/code"
	runtime "github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/spec"
)

// The fields of a specification that these checks report.
const (
	command     = "program.command"
	environment = "program.environment"
	parameters  = "program.parameters"
)

// Check reports parameters that the command names and that are not given, and
// variables that stoke sets. It does not look at fields that are not known yet.
func Check(s *spec.Spec, unknown map[string]bool) (problems []spec.Problem) {
	if !unknown[command] && !unknown[parameters] {
		if _, err := runtime.Substitute(s.Program.Arguments(), s.Program.Values()); err != nil {
			problems = append(problems,
				spec.Problem{Field: command, Summary: "Command and parameters do not fit", Detail: sentence(err.Error())})
		}
	}
	if !unknown[parameters] {
		if err := runtime.CheckNames(s.Program.Values()); err != nil {
			problems = append(problems,
				spec.Problem{Field: parameters, Summary: "Parameters have one variable", Detail: sentence(err.Error())})
		}
	}
	if unknown[environment] {
		return problems
	}
	var reserved []string
	for _, variable := range s.Program.Variables() {
		if name, _, _ := strings.Cut(variable, "="); runtime.Reserved(name) {
			reserved = append(reserved, name)
		}
	}
	if len(reserved) > 0 {
		problems = append(problems, spec.Problem{Field: environment, Summary: "stoke sets this variable itself",
			Detail: fmt.Sprintf("Leave %s out of environment: stoke sets it for each process of a program.", strings.Join(reserved, ", "))})
	}
	return problems
}

func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// CheckCommand reports that this machine cannot start the command: it is not in the
// PATH, not in the code, or not executable. It does not look at fields that are not
// known yet.
func CheckCommand(s *spec.Spec, folder string, snapshot *code.Snapshot, unknown map[string]bool) (problems []spec.Problem) {
	if unknown[command] || unknown[parameters] {
		return nil
	}
	arguments, err := runtime.Substitute(s.Program.Arguments(), s.Program.Values())
	if err != nil || len(arguments) == 0 {
		return nil // Check and Validate report it
	}
	name := arguments[0]
	refuse := func(summary, detail string, args ...any) []spec.Problem {
		return []spec.Problem{{Field: command, Summary: summary, Detail: fmt.Sprintf(detail, args...)}}
	}
	switch {
	case !strings.Contains(name, "/"):
		if unknown[environment] {
			return nil
		}
		if list := searchPath(s); !isInPath(name, list, folder) {
			return refuse("Command is not on the PATH", "No program %q is in %s. Install it, name it with its folder, "+
				"or set PATH in the environment of the program.", name, list)
		}
	case path.IsAbs(name):
		switch info, err := os.Stat(name); {
		case err != nil:
			return refuse("There is no such command", "%s cannot be found: %v. Correct its name, or install it.", name, err)
		case !isProgram(info):
			return refuse("Command is not executable", notExecutable, name)
		}
	case unknown["program.code"]:
	case snapshot == nil:
		return refuse("Command has no folder", "%s is relative to the folder of the code: give code, or the command's absolute name.", name)
	default:
		return checkFile(name, folder, snapshot, refuse)
	}
	return nil
}

// refusal makes a problem of the command.
type refusal func(summary, detail string, args ...any) []spec.Problem

const notExecutable = "%s is not a program: run chmod +x on it, or begin the command with its interpreter, such as python3."

// checkFile reports a relative command that is not an executable file of the code.
func checkFile(name, folder string, snapshot *code.Snapshot, refuse refusal) []spec.Problem {
	for _, f := range snapshot.Files {
		if f.Name != path.Clean(name) {
			continue
		}
		executable := f.Executable
		if f.Link != "" {
			info, err := os.Stat(filepath.Join(folder, f.Name))
			executable = err == nil && isProgram(info)
		}
		if !executable {
			return refuse("Command is not executable", notExecutable, filepath.Join(folder, name))
		}
		return nil
	}
	return refuse("There is no such command", "%s is not a file of the code in %s. Relative commands begin there; "+
		"a file that .stokeignore names is not part of it.", name, folder)
}

// searchPath is the PATH of the program.
func searchPath(s *spec.Spec) string {
	for _, variable := range s.Program.Variables() {
		if list, ok := strings.CutPrefix(variable, "PATH="); ok {
			return list
		}
	}
	return os.Getenv("PATH")
}

// isInPath reports whether a folder of the list has the command. Relative folders
// are below the folder of the code.
func isInPath(name, list, folder string) bool {
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			if folder == "" {
				continue
			}
			dir = filepath.Join(folder, dir)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && isProgram(info) {
			return true
		}
	}
	return false
}

func isProgram(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }
