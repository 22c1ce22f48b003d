package install

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"
	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
)

const leaf = "output \"x\" {\n  value = 1\n}\n"

func install(t *testing.T, in *Installer) hcl.Diagnostics {
	t.Helper()
	_, _, diags := in.Install(t.Context())
	return diags
}

// mustSay finds one error that says all of the words.
func mustSay(t *testing.T, diags hcl.Diagnostics, words ...string) {
	t.Helper()
	for _, d := range diags {
		text := d.Summary + ": " + d.Detail
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			return
		}
	}
	t.Errorf("%q is not in %v", words, diags)
}

// installed is what lies in the folder of modules beside the manifest.
func installed(t *testing.T, in *Installer) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(in.DataDir, "modules"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != ".lock" && e.Name() != "modules.json" {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

// usable reports whether other commands find all modules.
func usable(t *testing.T, in *Installer) {
	t.Helper()
	if _, _, diags := modules.Load(modules.OnDiskWith(in.DataDir), in.Dir); diags.HasErrors() {
		t.Error(diags)
	}
}

// No more than atOnce downloads run at the same time, and as many do.
func TestDownloadsAreBounded(t *testing.T) {
	s := newSite(t)
	var pairs []string
	for i := range 3 * atOnce {
		path := fmt.Sprintf("/p%d.tgz", i)
		s.has(path, map[string]string{"main.tf": leaf})
		pairs = append(pairs, fmt.Sprintf("m%d", i), s.URL+path)
	}
	var mu sync.Mutex
	running, most := 0, 0
	full := make(chan struct{})
	s.before = func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		if running++; running > most {
			if most = running; most == atOnce {
				close(full)
			}
		}
		mu.Unlock()
		<-full // the first ones wait for each other
		mu.Lock()
		running--
		mu.Unlock()
	}
	in := s.installer(calls(pairs...))
	if diags := install(t, in); diags.HasErrors() {
		t.Fatal(diags)
	}
	if most != atOnce {
		t.Errorf("%d at once, want %d", most, atOnce)
	}
	usable(t, in)
}

// A package is fetched once, however many calls and runs use it.
func TestPackagesAreShared(t *testing.T) {
	s := newSite(t)
	s.has("/p.tgz", map[string]string{"main.tf": calls("inner", "./a"), "a/a.tf": calls("beside", "../b"), "b/b.tf": leaf})
	s.has("/b.tgz", map[string]string{"main.tf": calls("again", s.URL+"/p.tgz//b")})
	in := s.installer(calls("one", s.URL+"/p.tgz", "two", s.URL+"/p.tgz//a", "three", s.URL+"/b.tgz"))
	var begun []string
	in.Listen = func(e Event) {
		if e.Download {
			begun = append(begun, e.Source)
		}
	}
	for range 2 {
		if diags := install(t, in); diags.HasErrors() {
			t.Fatal(diags)
		}
	}
	if s.times("/p.tgz") != 1 || s.times("/b.tgz") != 1 || len(begun) != 2 {
		t.Errorf("fetched %d and %d times, said %q", s.times("/p.tgz"), s.times("/b.tgz"), begun)
	}
	if got, want := installed(t, in), "one three three.again two"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	usable(t, in)
}

// What goes wrong with one module costs the others nothing.
func TestOneFails(t *testing.T) {
	s := newSite(t)
	s.has("/good.tgz", map[string]string{"main.tf": leaf})
	in := s.installer(calls("good", s.URL+"/good.tgz", "late", s.URL+"/late.tgz", "evil", s.URL+"/evil.tgz"))
	s.has("/evil.tgz", map[string]string{"../../out.tf": leaf})
	diags := install(t, in)
	mustSay(t, diags, "Module cannot be fetched", `"late"`, "404")
	mustSay(t, diags, "Module cannot be fetched", `"evil"`, "leads out of the archive")
	if got := installed(t, in); got != "good" {
		t.Errorf("there is %s", got)
	}
	s.has("/late.tgz", map[string]string{"main.tf": leaf})
	rewrite(t, in.Dir, calls("good", s.URL+"/good.tgz", "late", s.URL+"/late.tgz"))
	if diags := install(t, in); diags.HasErrors() {
		t.Fatal(diags)
	}
	if n := s.times("/good.tgz"); n != 1 {
		t.Errorf("the good one was fetched %d times", n)
	}
	usable(t, in)
}

// An end in the middle of a download leaves what was there, and no parts.
func TestInterruptedDownload(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"/one.tgz", "/two.tgz"} {
		s.has(name, map[string]string{"main.tf": leaf})
	}
	in := s.installer(calls("one", s.URL+"/one.tgz"))
	if diags := install(t, in); diags.HasErrors() {
		t.Fatal(diags)
	}
	manifest, err := os.ReadFile(in.manifestName())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.before = func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("\x1f\x8b\x08"))
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}
	rewrite(t, in.Dir, calls("one", s.URL+"/one.tgz", "two", s.URL+"/two.tgz"))
	_, _, diags := in.Install(ctx)
	mustSay(t, diags, "Module cannot be fetched", `"two"`, "interrupted")
	if got := installed(t, in); got != "one" {
		t.Errorf("there is %s", got)
	}
	if now, err := os.ReadFile(in.manifestName()); err != nil || string(now) != string(manifest) {
		t.Errorf("the manifest became %s, %v", now, err)
	}
}

// Two installations in one folder do not mix; what a killed one has left goes.
func TestTwoInstallations(t *testing.T) {
	s := newSite(t)
	s.has("/one.tgz", map[string]string{"main.tf": leaf})
	in := s.installer(calls("one", s.URL+"/one.tgz"))
	torn := filepath.Join(in.folder(), partial+"1", "package")
	if err := os.MkdirAll(torn, 0o755); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			own := *in
			if _, _, diags := own.Install(t.Context()); diags.HasErrors() {
				t.Error(diags)
			}
		})
	}
	wg.Wait()
	if n := s.times("/one.tgz"); n != 1 {
		t.Errorf("fetched %d times", n)
	}
	if got := installed(t, in); got != "one" {
		t.Errorf("there is %s", got)
	}

	held := flock.New(filepath.Join(in.folder(), ".lock"))
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	defer held.Unlock() //nolint:errcheck // the test ends
	in.Upgrade = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, diags := in.Install(ctx)
	mustSay(t, diags, "Modules cannot be installed", "another installation is at work")
}

// Modules that lead to themselves end, and not by the disk being full.
func TestEndlessModules(t *testing.T) {
	s := newSite(t)
	s.has("/self.tgz", map[string]string{"main.tf": calls("again", s.URL+"/self.tgz")})
	s.has("/a.tgz", map[string]string{"main.tf": calls("b", s.URL+"/b.tgz")})
	s.has("/b.tgz", map[string]string{"main.tf": calls("a", s.URL+"/a.tgz")})
	s.has("/out.tgz", map[string]string{"main.tf": calls("up", "../../../..")})
	diags := install(t, s.installer(calls("self", s.URL+"/self.tgz", "a", s.URL+"/a.tgz", "out", s.URL+"/out.tgz")))
	mustSay(t, diags, "Module calls itself", "self.tgz")
	mustSay(t, diags, "Module calls itself", "a.tgz")
	mustSay(t, diags, "Module leaves its package")
}
