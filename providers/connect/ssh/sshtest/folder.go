package sshtest

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
)

// Etc answers commands that read a script from standard input: they run here,
// with a folder in place of /etc.
func Etc(folder string) func(Asked) (stdout string, status int) {
	return func(a Asked) (string, int) {
		script, err := io.ReadAll(a.Stdin)
		if err != nil || len(a.Args) == 0 {
			return "", 255
		}
		cmd := exec.Command(a.Args[0], a.Args[1:]...)
		cmd.Stdin = strings.NewReader(strings.ReplaceAll(string(script), "/etc/", folder+"/"))
		var out bytes.Buffer
		cmd.Stdout = &out
		err = cmd.Run()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit):
			return out.String(), exit.ExitCode() & 0xff
		case err != nil:
			return "", 255
		}
		return out.String(), 0
	}
}
