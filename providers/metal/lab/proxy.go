//go:build e2e && linux

package lab

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// proxyPort is where machines find the proxy for apt, on the lab's gateway.
const proxyPort = "3142"

// fresh is for how long a mirror is not asked again for what may change.
const fresh = time.Hour

// proxy is the way of machines, which have no network but the lab's, to the
// mirrors that this machine's apt uses. It keeps what never changes, and the
// rest for when the mirror cannot be reached.
type proxy struct {
	dir   string
	fetch http.Client
}

func serveProxy(l *Lab) error {
	dir, err := cache()
	if err != nil {
		return err
	}
	p := &proxy{dir: filepath.Join(dir, "http"), fetch: http.Client{Timeout: 5 * time.Minute}}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(l.slot.gateway(), proxyPort))
	if err != nil {
		return err
	}
	serve(l, listener, p)
	return nil
}

// serve serves until the lab ends.
func serve(l *Lab, listener net.Listener, h http.Handler) {
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	l.t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Scheme != "http" {
		http.Error(w, "this proxy only gets http:// addresses", http.StatusNotImplemented)
		return
	}
	name := filepath.Join(p.dir, fmt.Sprintf("%x", sha256.Sum256([]byte(r.URL.String()))))
	forever := strings.HasSuffix(r.URL.Path, ".deb") || strings.Contains(r.URL.Path, "/by-hash/")
	if fetched, ok := fetchedAt(name); ok && (forever || time.Since(fetched) < fresh) {
		http.ServeFile(w, r, name)
		return
	}
	status, err := p.get(r, name)
	switch {
	case err == nil && status == http.StatusOK, err != nil && exists(name):
		http.ServeFile(w, r, name)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	default:
		w.WriteHeader(status)
	}
}

// get fetches an address into a file, which is whole when it has its name. The
// file gets the time of the mirror's file, so that apt can ask for newer ones.
func (p *proxy) get(r *http.Request, name string) (status int, err error) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.URL.String(), nil)
	if err != nil {
		return 0, err
	}
	response, err := p.fetch.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, nil
	}
	f, err := os.CreateTemp(p.dir, "half-")
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(f, response.Body)
	if at, e := http.ParseTime(response.Header.Get("Last-Modified")); e == nil {
		err = errors.Join(err, os.Chtimes(f.Name(), at, at))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return response.StatusCode, err
}

// fetchedAt is when a file was fetched: its other times are the mirror's.
func fetchedAt(name string) (time.Time, bool) {
	var stat syscall.Stat_t
	if err := syscall.Stat(name, &stat); err != nil {
		return time.Time{}, false
	}
	return time.Unix(stat.Ctim.Unix()), true
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
