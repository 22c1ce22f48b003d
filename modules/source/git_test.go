package source

import (
	"context"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// environ keeps git away from the configuration of whoever runs the tests.
func environ(t testing.TB, more ...string) []string {
	t.Helper()
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}, more...)
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, environ(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// repository has three commits: v1, v2, and one of a branch alone. It
// returns the folder and the first commit.
func repository(t testing.TB) (dir, first string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir = filepath.Join(t.TempDir(), "repository")
	write(t, filepath.Join(dir, "main.tf"), "# one\n")
	write(t, filepath.Join(dir, "sub", "deep", "x.tf"), "# deep\n")
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	git(t, dir, "tag", "v1")
	first = git(t, dir, "rev-parse", "HEAD")
	write(t, filepath.Join(dir, "main.tf"), "# two\n")
	git(t, dir, "commit", "-qam", "two")
	git(t, dir, "tag", "-a", "v2", "-m", "two")
	git(t, dir, "checkout", "-qb", "side/branch")
	write(t, filepath.Join(dir, "main.tf"), "# side\n")
	git(t, dir, "commit", "-qam", "side")
	git(t, dir, "checkout", "-q", "main")
	return dir, first
}

func fetched(t testing.TB, f *Fetcher, text string) (dir string, err error) {
	t.Helper()
	a, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(t.TempDir(), "into")
	sub, err := f.Fetch(t.Context(), a, into)
	return filepath.Join(into, sub), err
}

func TestGit(t *testing.T) {
	dir, first := repository(t)
	f := &Fetcher{Environ: environ(t)}
	for query, want := range map[string]string{
		"": "# two\n", "?ref=v1": "# one\n", "?ref=v2": "# two\n", "?ref=side/branch": "# side\n", "?ref=refs/tags/v1": "# one\n",
		"?ref=" + first: "# one\n", "?ref=" + first[:9]: "# one\n", "?ref=v2~1": "# one\n", "?depth=2&ref=v2": "# two\n", "?ref=HEAD": "# two\n",
	} {
		got, err := fetched(t, f, "git::file://"+dir+query)
		if err != nil {
			t.Errorf("%q: %v", query, err)
			continue
		}
		text, _ := os.ReadFile(filepath.Join(got, "main.tf"))
		if string(text) != want {
			t.Errorf("%q: %q, want %q", query, text, want)
		}
		if _, err := os.Lstat(filepath.Join(got, ".git")); err == nil {
			t.Errorf("%q: .git stays", query)
		}
	}
	got, err := fetched(t, f, "git::file://"+dir+"//sub/*?ref=v1")
	if err != nil || filepath.Base(got) != "deep" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestGitErrors(t *testing.T) {
	dir, _ := repository(t)
	f := &Fetcher{Environ: environ(t)}
	for text, want := range map[string]string{
		"git::file://" + dir + "?ref=nope":         `no branch, tag or commit "nope"`,
		"git::file://" + dir + "?ref=v1:main.tf":   "no branch, tag or commit",
		"git::file://" + dir + "//nope":            `no folder "nope"`,
		"git::file://" + dir + "//main.tf":         `no folder "main.tf"`,
		"git::file://" + dir + "/nowhere":          "git says",
		"git::http://127.0.0.1:1/x.git":            "git says",
		"git::http://u:s3cret@127.0.0.1:1/x.git":   "git says",
		"git::http://s3cret@127.0.0.1:1/x.git":     "git says",
		"git::http://u:s3%2Fcret@127.0.0.1:1/x":    "git says",
		"git::ssh://git@127.0.0.1:1/x.git?depth=3": "git says",
	} {
		_, err := fetched(t, f, text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	a, _ := Parse("git::file://" + dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Fetch(ctx, a, filepath.Join(t.TempDir(), "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	none := &Fetcher{Environ: environ(t)}
	t.Setenv("PATH", t.TempDir())
	if _, err := fetched(t, none, "git::file://"+dir); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("without git: %v", err)
	}
}

// A repository can hold links that lead anywhere; hooks and configuration of
// the person stay out of it, and the person's repository around us too.
func TestGitHostile(t *testing.T) {
	dir, _ := repository(t)
	for target, want := range map[string]string{"../../../secret": "leads out", "/etc/passwd": "leads out", "sub/deep": ""} {
		if err := os.Symlink(target, filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-qm", "link")
		_, err := fetched(t, &Fetcher{Environ: environ(t, "GIT_DIR="+t.TempDir(), "GIT_WORK_TREE=/nowhere")}, "git::file://"+dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
		if err := os.Remove(filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
	}
	// A submodule could reach for a file of this machine, or run a program.
	other, _ := repository(t)
	for _, address := range []string{"ext::sh -c touch% ran", "file://" + other} {
		write(t, filepath.Join(dir, ".gitmodules"), "[submodule \"s\"]\n\tpath = s\n\turl = "+address+"\n")
		git(t, dir, "add", "-A")
		git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+git(t, other, "rev-parse", "HEAD")+",s")
		git(t, dir, "commit", "-qm", "submodule")
		server := gitServer(t, dir)
		if _, err := fetched(t, &Fetcher{Environ: environ(t)}, "git::"+server.URL+"/repository"); err == nil || !strings.Contains(err.Error(), "not allowed") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestGitSubmodule(t *testing.T) {
	dir, _ := repository(t)
	other := filepath.Join(filepath.Dir(dir), "other")
	git(t, filepath.Dir(dir), "clone", "-q", dir, other)
	write(t, filepath.Join(dir, ".gitmodules"), "[submodule \"s\"]\n\tpath = s\n\turl = ../other\n")
	git(t, dir, "add", "-A")
	git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+git(t, other, "rev-parse", "HEAD")+",s")
	git(t, dir, "commit", "-qm", "submodule")
	got, err := fetched(t, &Fetcher{Environ: environ(t)}, "git::file://"+dir+"//s/sub")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(got, "deep", "x.tf")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(got), ".git")); err == nil {
		t.Error("the submodule's .git stays")
	}
}

// gitServer serves a folder of repositories by git's own program.
func gitServer(t testing.TB, dir string) *httptest.Server {
	t.Helper()
	core, err := exec.Command("git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(core)), "git-http-backend")
	if err == nil {
		_, err = os.Stat(backend)
	}
	if err != nil {
		t.Skip("git http-backend is not installed")
	}
	handler := &cgi.Handler{
		Path: backend, Dir: filepath.Dir(dir),
		Env: append(environ(t), "GIT_PROJECT_ROOT="+filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1"),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if login, password, _ := r.BasicAuth(); strings.Contains(r.URL.Path, "private") && (login != "me" || password != "s3cret") {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.URL.Path = strings.Replace(r.URL.Path, "/private", "", 1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestGitOverHTTP(t *testing.T) {
	dir, first := repository(t)
	server := gitServer(t, dir)
	f := &Fetcher{Environ: environ(t)}
	host := strings.TrimPrefix(server.URL, "http://")
	for _, text := range []string{
		"git::" + server.URL + "/repository?ref=v1",
		"git::" + server.URL + "/repository?ref=" + first,
		"git::http://me:s3cret@" + host + "/private/repository//sub?ref=v1",
	} {
		if _, err := fetched(t, f, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	// Without a password git would ask for one; nobody is there to answer.
	if _, err := fetched(t, f, "git::"+server.URL+"/private/repository"); err == nil || !strings.Contains(err.Error(), "terminal prompts disabled") {
		t.Error(err)
	}
}

// The SSH program is the person's own; here it is one that stays on this
// machine and writes down what it was called with.
func TestGitOverSSH(t *testing.T) {
	dir, _ := repository(t)
	script := filepath.Join(t.TempDir(), "ssh.sh")
	log := filepath.Join(t.TempDir(), "log")
	text := "#!/bin/sh\nprintf '%s\\n' \"$@\" >> '" + log + "'\nfor last; do :; done\nexec sh -c \"$last\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	f := &Fetcher{Environ: environ(t, "GIT_SSH_COMMAND="+script, "GIT_SSH_VARIANT=ssh")}
	for _, text := range []string{"git::ssh://git@example.com:2222" + dir + "?ref=v1", "git@example.com:" + dir + ".git//sub?ref=v1"} {
		if strings.Contains(text, ".git//") {
			if err := os.Symlink(dir, dir+".git"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := fetched(t, f, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	called, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(called), "git@example.com") || !strings.Contains(string(called), "2222") {
		t.Errorf("ssh was called with %s, %v", called, err)
	}
}
