package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// version reads what the installed module "m" says about itself.
func version(t *testing.T, in *Installer) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(in.DataDir, "modules", "m", "version.tf"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(text)), "# ")
}

func (s *site) publishes(versions ...string) {
	s.mu.Lock()
	s.versions["a/b/c"] = versions
	s.mu.Unlock()
	for _, v := range versions {
		s.has("/a/b/c/"+v+".tgz", map[string]string{"version.tf": "# " + v + "\n", "sub/main.tf": leaf})
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct{ constraint, want string }{
		{"", "2.10.0"},
		{"~> 1.2", "1.9.0"},
		{"~> 1.2.0", "1.2.4"},
		{">= 1.0, < 1.9, != 1.2.4", "1.2.0"},
		{"1.2.0", "1.2.0"},
		{"= 3.0.0-beta", "3.0.0-beta"},
		{"3.0.0-beta", "3.0.0-beta"},
		{">= 3.0.0-beta", "No version is accepted"},
		{"> 4", "No version is accepted"},
		{"< 0.1", "The newest is 3.0.0-beta"},
	} {
		s := newSite(t)
		s.publishes("1.9.0", "2.9.0", "odd", "3.0.0-beta", "2.10.0", "1.2.0", "1.2.4")
		in := s.installer(calls("m", s.host()+"/a/b/c "+c.constraint, "n", s.host()+"/a/b/c//sub "+c.constraint))
		diags := install(t, in)
		if strings.Contains(c.want, " ") {
			mustSay(t, diags, c.want)
			continue
		}
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if got := version(t, in); got != c.want {
			t.Errorf("%q: got %s, want %s", c.constraint, got, c.want)
		}
		if n := s.times("/v1/a/b/c/versions") + s.times("/v1/a/b/c/"+c.want+"/download"); n != 2 {
			t.Errorf("%q: %d questions, want 2", c.constraint, n)
		}
	}
}

// What is installed stays until it no longer fits or somebody asks for newer.
func TestUpgrade(t *testing.T) {
	s := newSite(t)
	s.publishes("1.0.0")
	in := s.installer(calls("m", s.host()+"/a/b/c ~> 1.0"))
	step := func(want string, questions int) {
		t.Helper()
		before := s.times("/v1/a/b/c/versions")
		if diags := install(t, in); diags.HasErrors() {
			t.Fatal(diags)
		}
		if got := version(t, in); got != want || s.times("/v1/a/b/c/versions")-before != questions {
			t.Errorf("got %s after %d questions, want %s after %d", got, s.times("/v1/a/b/c/versions")-before, want, questions)
		}
	}
	step("1.0.0", 1)
	s.publishes("1.0.0", "1.1.0", "2.0.0")
	step("1.0.0", 0)
	in.Upgrade = true
	step("1.1.0", 1)
	step("1.1.0", 1)
	if n := s.times("/a/b/c/1.1.0.tgz"); n != 1 {
		t.Errorf("the same version was fetched %d times", n)
	}
	in.Upgrade = false
	rewrite(t, in.Dir, calls("m", s.host()+"/a/b/c >= 2.0"))
	step("2.0.0", 1)
}
