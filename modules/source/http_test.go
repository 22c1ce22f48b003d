package source

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// shop is a server of archives with the habits of many.
func shop(t testing.TB) *httptest.Server {
	t.Helper()
	packed := gz(t, tarOf(t, item{name: "top-1.0/main.tf", text: "# top\n"}, item{name: "top-1.0/sub/x.tf", text: "# sub\n"}))
	mux := http.NewServeMux()
	serve := func(path string, content []byte) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	}
	serve("/x.tar.gz", packed)
	serve("/unnamed", packed)
	serve("/page.zip", []byte("<html>Please sign in</html>"))
	serve("/blank", []byte("<html><head></head></html>"))
	pointer := func(path, location string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("terraform-get") != "1" {
				http.Error(w, "not asked for a module", http.StatusBadRequest)
				return
			}
			w.Header().Set("X-Terraform-Get", location)
		})
	}
	pointer("/header", "./x.tar.gz//*")
	pointer("/absolute", "/x.tar.gz//top-1.0")
	pointer("/loop", "/loop")
	pointer("/local", "file:///etc")
	pointer("/path", "git::/srv/x")
	pointer("/plain", "http://example.com/x.zip")
	pointer("/option", "git::ssh://-oProxyCommand=x/y")
	serve("/meta", []byte(`<html><head><meta charset="utf-8"><META content="./x.tar.gz//top-1.0" name='terraform-get' /></head></html>`))
	mux.HandleFunc("GET /cut.tar.gz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(packed)))
		_, _ = w.Write(packed[:len(packed)/2])
	})
	mux.HandleFunc("GET /moved.tar.gz", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x.tar.gz", http.StatusFound) })
	mux.HandleFunc("GET /down.tar.gz", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/x.tar.gz", http.StatusFound)
	})
	mux.HandleFunc("GET /secret.tar.gz", func(w http.ResponseWriter, r *http.Request) {
		if login, password, _ := r.BasicAuth(); login != "me" || password != "s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(packed)
	})
	mux.HandleFunc("GET /endless.tar.gz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 10<<20))
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	return server
}

type zeros struct{}

func (zeros) Read(into []byte) (int, error) { clear(into); return len(into), nil }

func shopper(t testing.TB, server *httptest.Server) *Fetcher {
	t.Helper()
	client := NewHTTPClient()
	client.Transport = server.Client().Transport
	return &Fetcher{HTTP: client, Environ: environ(t), wait: time.Microsecond, limits: limits{download: 1 << 20, bytes: 1 << 20, files: 100}}
}

func TestHTTP(t *testing.T) {
	server := shop(t)
	f := shopper(t, server)
	res, err := server.Client().Get(server.URL + "/x.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	packed, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(packed))
	for _, path := range []string{
		"/x.tar.gz//top-1.0", "/x.tar.gz//*", "/x.tar.gz//top-*?archive=tar.gz", "/unnamed//top-1.0?archive=tgz", "/moved.tar.gz//top-1.0",
		"/header", "/absolute", "/meta", "/header//.", "/x.tar.gz//top-1.0?checksum=sha256:" + sum, "/x.tar.gz//top-1.0?checksum=" + sum,
	} {
		dir, err := fetched(t, f, server.URL+path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if text, err := os.ReadFile(filepath.Join(dir, "main.tf")); string(text) != "# top\n" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	dir, err := fetched(t, f, server.URL+"/header//sub")
	if err != nil || filepath.Base(dir) != "sub" {
		t.Errorf("%s, %v", dir, err)
	}
}

func TestHTTPErrors(t *testing.T) {
	server := shop(t)
	f := shopper(t, server)
	for path, want := range map[string]string{
		"/none.tar.gz":    "404",
		"/none":           "404",
		"/x.tar.gz//nope": `no folder "nope"`,
		"/x.tar.gz//no*":  "0 folders",
		"/page.zip":       "not a sound zip archive",
		"/blank":          "?archive=",
		"/unnamed":        "?archive=",
		"/cut.tar.gz":     "middle of the archive",
		"/loop":           "yet another",
		"/local":          "a file of this machine",
		"/path":           "a file of this machine",
		"/plain":          "not encrypted",
		"/option":         "begins with a dash",
		"/down.tar.gz":    "from https to http",
		"/secret.tar.gz":  "401",
		"/endless.tar.gz": "more than 1 MiB",
		"/x?archive=rar":  `"rar"`,
		"/x.tar.gz?checksum=md5:00000000000000000000000000000000": "another archive",
	} {
		parent := t.TempDir()
		a, err := Parse(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.Fetch(t.Context(), a, filepath.Join(parent, "into")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if left, _ := filepath.Glob(filepath.Join(parent, ".*")); len(left) > 0 {
			t.Errorf("%s leaves %q", path, left)
		}
	}
	if _, err := fetched(t, &Fetcher{HTTP: NewHTTPClient()}, server.URL+"/x.tar.gz"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
}

// What the network does to a connection is tried again, and no more than that.
func TestHTTPAgain(t *testing.T) {
	server := shop(t)
	res, err := server.Client().Get(server.URL + "/x.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	packed, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	flaky := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		w.Header().Set("Content-Length", strconv.Itoa(len(packed)))
		switch {
		case r.URL.Path == "/none.tar.gz":
			w.Header().Del("Content-Length")
			w.WriteHeader(http.StatusNotFound)
		case n == 1:
			_, _ = w.Write(packed[:len(packed)-5])
			panic(http.ErrAbortHandler)
		case n == 2 && r.URL.Path == "/busy.tar.gz":
			w.Header().Del("Content-Length")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = w.Write(packed)
		}
	}))
	defer flaky.Close()
	for path, want := range map[string]int32{"/cut.tar.gz": 2, "/busy.tar.gz": 3, "/none.tar.gz": 1} {
		asked.Store(0)
		dir, err := fetched(t, shopper(t, flaky), flaky.URL+path+"//top-1.0")
		if asked.Load() != want || (err == nil) == (path == "/none.tar.gz") {
			t.Errorf("%s: asked %d times, want %d: %v", path, asked.Load(), want, err)
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "main.tf")); err == nil && string(text) != "# top\n" {
			t.Errorf("%s: %q", path, text)
		}
	}
}

func TestNetrc(t *testing.T) {
	server := shop(t)
	f := shopper(t, server)
	home := t.TempDir()
	f.Environ = append(f.Environ, "HOME="+home)
	write(t, filepath.Join(home, ".netrc"), "# machine 127.0.0.1 login no\nmachine example.com login x password y\nmachine 127.0.0.1\n  login me\n  password s3cret\ndefault login z password z\n")
	if _, err := fetched(t, f, server.URL+"/secret.tar.gz"); err != nil {
		t.Error(err)
	}
	for host, want := range map[string]string{"127.0.0.1": "me s3cret", "EXAMPLE.com": "x y", "else.example.com": "z z"} {
		login, password, ok := netrc(f.Environ, host)
		if got := login + " " + password; !ok || got != want {
			t.Errorf("%s: %q", host, got)
		}
	}
	if _, _, ok := netrc([]string{"HOME=" + t.TempDir()}, "127.0.0.1"); ok {
		t.Error("a login without a file")
	}
}

func TestLocalFolderAndArchive(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m", "main.tf"), "# here\n")
	write(t, filepath.Join(dir, "m.zip"), string(zipOf(t, item{name: "main.tf", text: "# packed\n"})))
	write(t, filepath.Join(dir, "text"), "x")
	f := &Fetcher{}
	got, err := fetched(t, f, filepath.Join(dir, "m"))
	if info, lstatErr := os.Lstat(got); err != nil || lstatErr != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, %v, %v", info, err, lstatErr)
	}
	if got, err = fetched(t, f, "file://"+filepath.Join(dir, "m.zip")); err != nil {
		t.Error(err)
	} else if text, _ := os.ReadFile(filepath.Join(got, "main.tf")); string(text) != "# packed\n" {
		t.Errorf("%q", text)
	}
	for name, want := range map[string]string{"nowhere": "no such file", "text": "neither a folder nor an archive"} {
		if _, err := fetched(t, f, filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCopy(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	write(t, filepath.Join(from, "a", ".hidden"), "x")
	if err := os.Symlink("a/.hidden", filepath.Join(from, "l")); err != nil {
		t.Fatal(err)
	}
	if err := Copy(from, to); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(filepath.Join(to, "l")); err != nil || target != "a/.hidden" {
		t.Error(target, err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "l")); string(text) != "x" {
		t.Error(text, err)
	}
	if err := Copy(from, to); err == nil {
		t.Error("it copies over what is there")
	}
}

// counter counts requests by path.
type counter struct {
	http.Handler
	n atomic.Int32
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.n.Add(1)
	c.Handler.ServeHTTP(w, r)
}
