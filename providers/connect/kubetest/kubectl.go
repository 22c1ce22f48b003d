package kubetest

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
)

// Kubectl runs kubectl as the administrator, with something to read ("" for
// nothing), and returns what it printed. The test fails where it does.
func (c *Cluster) Kubectl(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	out, err := c.TryKubectl(t, c.Kubeconfig(), stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TryKubectl is Kubectl with any kubeconfig, and may fail. out has what was
// printed to either stream.
func (c *Cluster) TryKubectl(t testing.TB, kubeconfig, stdin string, args ...string) (out string, err error) {
	t.Helper()
	var all bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), patience) // also where a test cleans up, and its context has ended
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Program("kubectl"), args...)
	home := t.TempDir()
	cmd.Dir = home
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &all, &all
	err = cmd.Run()
	return all.String(), err
}
