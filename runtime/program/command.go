package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// resolve returns the file of a command, as a shell in the working folder finds it:
// by the PATH of the program's environment, not by the PATH of this process.
func (s *Spec) resolve(command string, environment []string) (string, error) {
	if err := checkFolder(s.Folder); err != nil {
		return "", err
	}
	if strings.Contains(command, "/") {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Folder, path)
		}
		return path, checkExecutable(command, path)
	}
	search := ""
	for _, v := range environment {
		if list, ok := strings.CutPrefix(v, "PATH="); ok {
			search = list
		}
	}
	var found error
	for _, dir := range filepath.SplitList(search) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(s.Folder, dir)
		}
		path := filepath.Join(dir, command)
		err := checkExecutable(command, path)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, ErrNotExecutable) && found == nil {
			found = err
		}
	}
	if found != nil {
		return "", found
	}
	return "", &StartError{Kind: ErrNotFound, What: fmt.Sprintf("the command %q is not in the PATH %q", command, search),
		Advice: "install it, name it with its folder, or set PATH in the program's environment"}
}

func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return nil
	}
	what := fmt.Sprintf("the working folder %s is not a folder", dir)
	if errors.Is(err, fs.ErrNotExist) {
		what, err = fmt.Sprintf("the working folder %s does not exist", dir), nil
	}
	return &StartError{Kind: ErrFolder, What: what, Err: err}
}

func checkExecutable(command, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &StartError{Kind: ErrNotFound, What: fmt.Sprintf("the command %q does not exist: the file %s is missing", command, path),
			Advice: "names of commands begin in the working folder"}
	case err != nil:
		return &StartError{Kind: ErrNotExecutable, What: fmt.Sprintf("the command %q cannot be used", command), Err: err}
	case info.IsDir():
		return &StartError{Kind: ErrNotExecutable, What: fmt.Sprintf("the command %q is a folder", command),
			Advice: "name the program in it"}
	case info.Mode()&0o111 == 0:
		return &StartError{Kind: ErrNotExecutable, What: fmt.Sprintf("the command %q is not executable", command),
			Advice: fmt.Sprintf("run chmod +x %s, or begin the command with its interpreter, such as python3", path)}
	}
	return nil
}

// explainStart returns what an error of the system means, now that the file and
// the folder are known to exist.
func explainStart(command string, err error) error {
	e := &StartError{Kind: ErrStart, What: fmt.Sprintf("the command %q cannot be started", command), Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Kind, e.Err = ErrNotFound, nil
		e.What = fmt.Sprintf("the interpreter of %q does not exist", command)
		e.Advice = "install the program that its first line names, or the loader that it was linked for"
	case errors.Is(err, syscall.ENOEXEC):
		e.Kind, e.Err = ErrNotExecutable, nil
		e.What = fmt.Sprintf("%q is not a program for this machine", command)
		e.Advice = "begin a script with #! and its interpreter, or build the program for this processor"
	case errors.Is(err, fs.ErrPermission):
		e.Kind = ErrNotExecutable
		e.Advice = "give the user of the run the right to execute it, on a file system that is not mounted noexec"
	case errors.Is(err, syscall.E2BIG):
		e.Kind = ErrParameter
		e.Advice = "arguments and environment are too long: read large parameters from the file $" + parametersVariable
	}
	return e
}
