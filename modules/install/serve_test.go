package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stokehq/stoke/modules/source"
)

// site is a server of archives, which is a registry too. What it has, and
// what it does before it answers, can be changed while it runs.
type site struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	packages map[string]map[string]string // by path, files by name
	versions map[string][]string          // by module a/b/c
	asked    map[string]int
	before   func(w http.ResponseWriter, r *http.Request)
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, packages: map[string]map[string]string{}, versions: map[string][]string{}, asked: map[string]int{}}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) host() string { return strings.TrimPrefix(s.URL, "https://") }

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked[r.URL.Path]++
	before, files, versions := s.before, s.packages[r.URL.Path], s.versions
	s.mu.Unlock()
	if before != nil {
		before(w, r)
	}
	module, isList := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1/"), "/versions")
	switch {
	case r.URL.Path == "/.well-known/terraform.json":
		fmt.Fprint(w, `{"modules.v1": "/v1/"}`)
	case isList && versions[module] != nil:
		fmt.Fprintf(w, `{"modules": [{"versions": [{"version": "%s"}]}]}`, strings.Join(versions[module], `"}, {"version": "`))
	case strings.HasSuffix(r.URL.Path, "/download"):
		w.Header().Set("X-Terraform-Get", strings.TrimSuffix(strings.Replace(r.URL.Path, "/v1", "", 1), "/download")+".tgz")
		w.WriteHeader(http.StatusNoContent)
	case files != nil:
		_, _ = w.Write(packed(s.t, files))
	default:
		http.NotFound(w, r)
	}
}

// has gives the site a package.
func (s *site) has(path string, files map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packages[path] = files
}

func (s *site) times(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

func packed(t *testing.T, files map[string]string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Error(err)
		}
		_, _ = w.Write([]byte(text))
	}
	for _, err := range []error{w.Close(), z.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	return b.Bytes()
}

// installer works in a new folder with a configuration.
func (s *site) installer(main string) *Installer {
	s.t.Helper()
	dir := s.t.TempDir()
	rewrite(s.t, dir, main)
	client := s.Client()
	return &Installer{
		Dir: dir, DataDir: filepath.Join(dir, ".terraform"),
		Fetcher: &source.Fetcher{HTTP: client, Environ: []string{"HOME=" + dir}, Registry: &source.Registry{HTTP: client}},
	}
}

func rewrite(t *testing.T, dir, main string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
}

// calls is a configuration that calls modules: name, source, and so on.
func calls(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		address, version, versioned := strings.Cut(pairs[i+1], " ")
		fmt.Fprintf(&b, "module %q {\n  source = %q\n", pairs[i], address)
		if versioned {
			fmt.Fprintf(&b, "  version = %q\n", version)
		}
		b.WriteString("}\n")
	}
	return b.String()
}
