package source

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/pattern"
)

const (
	// maxPage is how much of a page is searched for where the package is.
	maxPage = 1 << 20
	// patience is how long a server may send nothing.
	patience = time.Minute
)

// http unpacks an archive, or follows what the page at an address says about
// where the package is.
func (f *Fetcher) http(ctx context.Context, a Address, into string, hops int) (sub string, err error) {
	u := *a.url
	query := u.Query()
	kind, err := archiveKind(u.Path, query.Get("archive"))
	if err != nil {
		return "", err
	}
	query.Del("archive")
	query.Del("checksum")
	query.Del("filename")
	if kind == "" {
		query.Set("terraform-get", "1")
	}
	u.RawQuery = query.Encode()
	if kind != "" {
		return "", f.download(ctx, a.url, &u, kind, into)
	}
	next, err := f.pointer(ctx, &u)
	if err != nil {
		return "", err
	}
	sub, err = f.fetch(ctx, next, into, hops+1)
	if err != nil {
		return "", fmt.Errorf("from %s: %w", next.Redacted(), err)
	}
	if sub != "" {
		sub += "/"
	}
	return sub + next.Subdir, nil
}

// download fetches an archive to a file beside the folder and unpacks it.
func (f *Fetcher) download(ctx context.Context, given, u *url.URL, kind, into string) error {
	file, err := os.CreateTemp(filepath.Dir(into), ".partial-archive-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // what stays is removed by the next run
	l := f.bounds()
	err = persist(ctx, usualTries, cmp.Or(f.wait, usualWait), func() error { return f.save(ctx, u, file, l) })
	if closing := file.Close(); err == nil {
		err = closing
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the connection ended in the middle of the archive")
	}
	if err != nil {
		return err
	}
	if err := verify(given, file.Name()); err != nil {
		return err
	}
	return unpack(ctx, kind, file.Name(), into, l)
}

// save writes what is at an address into a file, in place of what it has.
func (f *Fetcher) save(ctx context.Context, u *url.URL, file *os.File, l limits) error {
	body, _, err := f.get(ctx, u)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	n, err := io.Copy(file, io.LimitReader(body, l.download+1))
	if err == nil && n > l.download {
		err = fmt.Errorf("the archive has more than %d MiB", l.download>>20)
	}
	return err
}

// verify compares a file with the checksum that an address gives, if any.
func verify(given *url.URL, name string) error {
	h, want, err := checksum(given)
	if err != nil || h == nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return compare(h, want, f)
}

func compare(h hash.Hash, want []byte, r io.Reader) error {
	if _, err := io.Copy(h, r); err != nil {
		return err
	}
	if got := h.Sum(nil); subtle.ConstantTimeCompare(got, want) != 1 {
		return fmt.Errorf("its checksum is %x, and %x is expected: it is another archive, or a damaged one", got, want)
	}
	return nil
}

var (
	metaTag   = pattern.New(`(?is)<meta\s[^>]*>`)
	metaName  = pattern.New(`(?is)\sname\s*=\s*["']?terraform-get["'\s/>]`)
	metaValue = pattern.New(`(?is)\scontent\s*=\s*(?:"([^"]*)"|'([^']*)')`)
)

// pointer asks a page where the package is.
func (f *Fetcher) pointer(ctx context.Context, u *url.URL) (Address, error) {
	var location string
	var from *url.URL
	err := persist(ctx, usualTries, cmp.Or(f.wait, usualWait), func() error {
		body, res, err := f.get(ctx, u)
		if err != nil {
			return err
		}
		defer body.Close()
		from = res.Request.URL
		if location = res.Header.Get("X-Terraform-Get"); location != "" {
			return nil
		}
		page, err := io.ReadAll(io.LimitReader(body, maxPage))
		location = metaLocation(string(page))
		return err
	})
	if err != nil {
		return Address{}, err
	}
	if location == "" {
		return Address{}, errors.New("the answer says nothing about a module: neither a header X-Terraform-Get nor a meta tag terraform-get. If it is an archive, add ?archive=tar.gz or ?archive=zip to the address")
	}
	return follow(from, location)
}

func metaLocation(page string) string {
	for _, tag := range metaTag.FindAllString(page, -1) {
		if !metaName.MatchString(tag) {
			continue
		}
		if m := metaValue.FindStringSubmatch(tag); m != nil {
			return html.UnescapeString(m[1] + m[2])
		}
	}
	return ""
}

// follow reads an address that a server has given. It may not name files of
// this machine, nor leave https for http.
func follow(from *url.URL, location string) (Address, error) {
	location = strings.TrimSpace(location)
	if isFolder(location) || strings.HasPrefix(location, "/") {
		relative, err := from.Parse(location)
		if err != nil {
			return Address{}, fmt.Errorf("the server names the place %q, which is not a valid URL", clipped(location))
		}
		location = relative.String()
	}
	a, err := parseRemote(location)
	switch {
	case err != nil:
		return Address{}, fmt.Errorf("the server names the place %q: %w", clipped(location), err)
	case a.url.Scheme == "file":
		return Address{}, fmt.Errorf("the server names the place %q, which would be a file of this machine", clipped(location))
	case from.Scheme == "https" && a.url.Scheme == "http":
		return Address{}, fmt.Errorf("the server names the place %q, which is not encrypted as the server itself is", clipped(location))
	}
	return a, nil
}

// clipped is what a server has sent, for messages.
func clipped(text string) string {
	text = Redact(text)
	if len(text) > 200 {
		return strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// get asks for a page and returns its body, which ends with an error when
// nothing comes for too long.
func (f *Fetcher) get(ctx context.Context, u *url.URL) (io.ReadCloser, *http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	if u.User == nil {
		if login, password, ok := netrc(f.Environ, u.Hostname()); ok {
			req.SetBasicAuth(login, password)
		}
	}
	res, err := f.client().Do(req)
	if err != nil {
		err = httpCause(ctx, err)
		cancel(nil)
		return nil, nil, err
	}
	if res.StatusCode/100 != 2 {
		res.Body.Close()
		cancel(nil)
		return nil, nil, &statusError{code: res.StatusCode, text: u.Host + " answers " + res.Status}
	}
	w := &stallGuard{ctx: ctx, body: res.Body, cancel: cancel}
	w.timer = time.AfterFunc(patience, func() { cancel(errStalled) })
	return w, res, nil
}

// stallGuard is a body that must keep coming.
type stallGuard struct {
	ctx    context.Context
	body   io.ReadCloser
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func (w *stallGuard) Read(into []byte) (int, error) {
	w.timer.Reset(patience)
	n, err := w.body.Read(into)
	if err != nil && err != io.EOF {
		err = httpCause(w.ctx, err)
	}
	return n, err
}

func (w *stallGuard) Close() error {
	w.timer.Stop()
	w.cancel(nil)
	return w.body.Close()
}

// httpCause is the reason of a failed request, without the URL.
func httpCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
