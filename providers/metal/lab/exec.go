//go:build e2e && linux

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// Exec runs a command on the machine as root and returns its output without the
// line end. It goes past SSH: it is how a test looks at a machine or changes it
// by hand.
func (m *Machine) Exec(args ...string) string {
	m.t.Helper()
	out, err := m.try(args...)
	if err != nil {
		m.t.Fatalf("%s: %v", m.Name, err)
	}
	return strings.TrimRight(out, "\n")
}

// Try is Exec of a command that may fail: its error holds what it said.
func (m *Machine) Try(args ...string) (string, error) {
	out, err := m.try(args...)
	return strings.TrimRight(out, "\n"), err
}

// Script is Exec of a shell script, which sees args as "$1" and so on.
func (m *Machine) Script(script string, args ...string) string {
	m.t.Helper()
	return m.Exec(append([]string{"sh", "-euc", script, "sh"}, args...)...)
}

func (m *Machine) try(args ...string) (string, error) {
	if m.vm != nil {
		return m.vm.run(m, args)
	}
	leader := m.Leader()
	if leader == 0 {
		return "", errors.New("the machine is off")
	}
	enter := []string{"--target", strconv.Itoa(leader), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--",
		"env", "-i", "-C", "/root", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd := exec.Command("nsenter", append(enter, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%.300s: %w\n%s", strings.Join(args, " "), err, lastLines(errs.String()+out.String(), 20))
	}
	return out.String(), nil
}
