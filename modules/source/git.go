package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/pattern"
)

// plainRef is a name that a server can be asked for by itself.
var plainRef = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9._/+-]*$`)

// git clones a repository into a folder that does not exist yet: only the
// commit that is asked for, where the server gives it by itself.
func (f *Fetcher) git(ctx context.Context, a Address, into string) error {
	u := *a.url
	query := u.Query()
	ref, depth := query.Get("ref"), query.Get("depth")
	query.Del("ref")
	query.Del("depth")
	u.RawQuery = query.Encode()
	if depth == "" {
		depth = "1"
	}
	g := &gitRun{dir: into, from: &u, environ: f.environ(u.Scheme)}
	if err := g.start(ctx); err != nil {
		return err
	}
	wanted := "HEAD"
	if ref != "" {
		wanted = ref
	}
	commit := "FETCH_HEAD"
	err := errors.New("the ref is an expression")
	if plainRef.MatchString(wanted) {
		err = g.run(ctx, "fetch", "--quiet", "--no-tags", "--depth="+depth, "--", u.String(), wanted)
	}
	if err != nil && ctx.Err() == nil {
		// The server may only allow fetching whole branches, and an abbreviated
		// commit can only be resolved with all of them.
		if err := g.run(ctx, "fetch", "--quiet", "--", u.String(), "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*", "+HEAD:refs/remotes/origin/HEAD"); err != nil {
			return err
		}
		commit = g.resolve(ctx, ref)
		if commit == "" {
			return fmt.Errorf("the repository has no branch, tag or commit %q", ref)
		}
	}
	if err := g.run(ctx, "checkout", "--quiet", "--detach", commit, "--"); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(into, ".gitmodules")); err == nil {
		if err := g.run(ctx, "submodule", "update", "--quiet", "--init", "--recursive"); err != nil {
			return err
		}
	}
	return checkLinks(into)
}

// gitRun is one use of git in a repository of its own.
type gitRun struct {
	dir     string
	from    *url.URL
	environ []string
}

func (g *gitRun) start(ctx context.Context) error {
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("the program git is needed for this, and it is not installed")
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return err
	}
	if err := g.run(ctx, "init", "--quiet", "--template="); err != nil {
		return err
	}
	// Relative addresses of submodules start from there.
	return g.run(ctx, "config", "remote.origin.url", g.from.String())
}

// resolve finds the commit of what a person wrote, "" where there is none.
func (g *gitRun) resolve(ctx context.Context, ref string) string {
	if ref == "" {
		return "refs/remotes/origin/HEAD"
	}
	for _, name := range []string{"refs/tags/" + ref, "refs/remotes/origin/" + ref, ref} {
		if err := g.run(ctx, "rev-parse", "--quiet", "--verify", name+"^{commit}"); err == nil {
			return name
		}
	}
	return ""
}

// run runs git without a terminal, without hooks, and with no more ways to
// reach others than the address asks for.
func (g *gitRun) run(ctx context.Context, args ...string) error {
	said := &bytes.Buffer{}
	args = append([]string{
		"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
		"-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=120",
	}, args...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = g.dir, g.environ, said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	text := strings.TrimSpace(said.String())
	if text == "" {
		text = err.Error()
	}
	text = withoutSecrets(text, g.from)
	if len(text) > 2000 {
		text = "…" + strings.ToValidUTF8(text[len(text)-2000:], "")
	}
	return errors.New("git says: " + text)
}

// environ is git's environment: the person's own, so that keys and helpers
// are found, without what would point git at a repository around us.
func (f *Fetcher) environ(scheme string) []string {
	protocols := "https:ssh"
	if scheme != "https" && scheme != "ssh" {
		protocols += ":" + scheme
	}
	env := make([]string, 0, len(f.Environ)+4)
	for _, entry := range f.Environ {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
			"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_ALLOW_PROTOCOL", "GIT_TERMINAL_PROMPT", "LC_ALL":
		default:
			env = append(env, entry)
		}
	}
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL="+protocols, "LC_ALL=C")
}
