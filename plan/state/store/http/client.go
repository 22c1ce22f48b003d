package http

import (
	"context"
	"crypto/md5" //nolint:gosec // Content-MD5 is part of the protocol
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/hashicorp/go-retryablehttp"
)

// longest is the size in bytes above which an answer is taken for a mistake.
const longest = 4 << 30

// client speaks to the server.
type client struct {
	http   *retryablehttp.Client
	config settings
}

// answer is what came back.
type answer struct {
	status int
	body   []byte
	etag   string // strong, "" where there is none
}

// request is what is asked.
type request struct {
	method, address string
	body            []byte
	etag            string // for If-Match; "" for an unconditional request
	what            string // for messages, such as "read"
}

func (c *client) do(ctx context.Context, r request) (answer, error) {
	var body any
	if r.body != nil {
		body = r.body
	}
	q, err := retryablehttp.NewRequestWithContext(ctx, r.method, r.address, body)
	if err != nil {
		return answer{}, fmt.Errorf("%s state: %w", r.what, clean(err))
	}
	if c.config.user != "" {
		q.SetBasicAuth(c.config.user, c.config.password)
	}
	if c.config.sentFrom != "" {
		q.Header.Set("User-Agent", c.config.sentFrom)
	}
	if r.body != nil {
		sum := md5.Sum(r.body) //nolint:gosec // part of the protocol
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
	}
	if r.etag != "" {
		q.Header.Set("If-Match", r.etag)
	}
	resp, err := c.http.Do(q)
	if err != nil {
		return answer{}, fmt.Errorf("%s state: %w", r.what, clean(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, longest+1))
	if err == nil && len(data) > longest {
		err = errors.New("the answer does not end")
	}
	if err == nil && resp.ContentLength >= 0 && r.method != http.MethodHead && int64(len(data)) != resp.ContentLength && !resp.Uncompressed {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s state: %s %s: %w", r.what, r.method, redacted(r.address), err)
	}
	a := answer{status: resp.StatusCode, body: data}
	if tag := resp.Header.Get("ETag"); strings.HasPrefix(tag, `"`) {
		a.etag = tag
	}
	return a, nil
}

// clean takes passwords out of an error's URL.
func clean(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		u.URL = redacted(u.URL)
	}
	return err
}

// refusal puts a status that was not hoped for in words.
func refusal(r request, a answer) error {
	place := r.method + " " + redacted(r.address)
	reason := ""
	switch a.status {
	case http.StatusUnauthorized:
		reason = "the server wants to know who asks; give username and password"
	case http.StatusForbidden:
		reason = "the server knows who asks and does not allow it"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		reason = "the server knows no such thing; is the address right?"
	}
	if reason == "" {
		reason = "the server answered " + strings.TrimSpace(fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)))
		if text := excerpt(a.body); text != "" {
			reason += ": " + text
		}
	} else {
		reason = fmt.Sprintf("%d: %s", a.status, reason)
	}
	return fmt.Errorf("%s state: %s: %s", r.what, place, reason)
}

// excerpt is the beginning of a server's message, if it is a short plain text.
func excerpt(body []byte) string {
	text := strings.TrimSpace(string(body))
	if len(text) > 200 || strings.ContainsAny(text, "<{\x00") {
		return ""
	}
	return strings.Join(strings.Fields(text), " ")
}
