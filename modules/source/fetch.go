package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Fetcher gets packages. Its zero value lacks an environment for git.
type Fetcher struct {
	HTTP     *http.Client // nil: NewHTTPClient's
	Environ  []string     // NAME=VALUE, for git; HOME names the folder of .netrc
	Registry *Registry    // nil: registries cannot be asked

	limits limits        // zero: the usual ones
	wait   time.Duration // before a failed download is tried again; zero: usualWait
}

// NewHTTPClient returns a client that gives up where nothing answers, and
// never goes from https to http.
func NewHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = time.Minute
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case len(via) > 10:
				return errors.New("it redirects more than ten times")
			case via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme != "https":
				return errors.New("it redirects from https to " + r.URL.Scheme)
			}
			return nil
		},
	}
}

// Fetch puts the package of a remote address into the folder into, which must
// not exist yet, and returns the folder within it that the address means. A
// folder of this machine becomes a link. After an error, or when the context
// ends, into may hold parts and is the caller's to remove.
func (f *Fetcher) Fetch(ctx context.Context, a Address, into string) (sub string, err error) {
	if a.Kind != Remote {
		return "", fmt.Errorf("fetch %s: it is not a remote package", a.Text)
	}
	sub, err = f.fetch(ctx, a, into, 0)
	if err != nil {
		return "", err
	}
	return FindSubfolder(into, path.Join(sub, a.Subdir))
}

// maxHops bounds the servers that name another place.
const maxHops = 5

func (f *Fetcher) fetch(ctx context.Context, a Address, into string, hops int) (sub string, err error) {
	if hops > maxHops {
		return "", fmt.Errorf("more than %d places name yet another one", maxHops)
	}
	switch a.getter {
	case "git":
		return "", f.git(ctx, a, into)
	case "file":
		return "", f.file(ctx, a, into)
	}
	return f.http(ctx, a, into, hops)
}

// file links to a folder of this machine, or unpacks an archive on it.
func (f *Fetcher) file(ctx context.Context, a Address, into string) error {
	name := filepath.Clean(filepath.FromSlash(a.url.Path))
	info, err := os.Stat(name)
	if err != nil {
		return errors.New(pathCause(err))
	}
	if info.IsDir() {
		return os.Symlink(name, into)
	}
	kind, err := archiveKind(a.url.Path, a.url.Query().Get("archive"))
	switch {
	case err != nil:
		return err
	case kind == "" || !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a folder nor an archive", name)
	}
	if err := verify(a.url, name); err != nil {
		return err
	}
	return unpack(ctx, kind, name, into, f.bounds())
}

func (f *Fetcher) bounds() limits {
	if f.limits == (limits{}) {
		return usual
	}
	return f.limits
}

func (f *Fetcher) client() *http.Client {
	if f.HTTP == nil {
		f.HTTP = NewHTTPClient()
	}
	return f.HTTP
}

// FindSubfolder finds the folder of a package that a path means: stars in it stand
// for names, and must fit one folder alone. The answer has slashes.
func FindSubfolder(dir, sub string) (string, error) {
	sub = strings.TrimPrefix(path.Clean("/"+sub), "/")
	if sub == "" {
		return "", nil
	}
	if !strings.ContainsAny(sub, "*?[") {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(sub)))
		if err != nil || !info.IsDir() {
			return "", fmt.Errorf("it has no folder %q", sub)
		}
		return sub, nil
	}
	found, err := fs.Glob(os.DirFS(dir), sub)
	if err != nil {
		return "", fmt.Errorf("the folder %q is not a valid pattern", sub)
	}
	var folders []string
	for _, name := range found {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			folders = append(folders, name)
		}
	}
	if len(folders) != 1 {
		return "", fmt.Errorf("%d folders in it are like %q, and it has to be one", len(folders), sub)
	}
	return folders[0], nil
}

func pathCause(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Path + ": " + at.Err.Error()
	}
	return err.Error()
}
