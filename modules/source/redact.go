package source

import (
	"net/url"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

const hidden = "xxxxx"

var (
	userInURL = pattern.New(`([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\s'"]*)@`)
	argument  = pattern.New(`([?&])([^=&#\s'"]+)=([^&#\s'"]+)`)
	// secretName is how arguments are called that let somebody in.
	secretName = pattern.New(`(?i)token|secret|passw|signature|credential|api_?key|access_?key|sshkey|^(sig|key|auth|jwt|pwd)$`)
)

// Redacted is the address for messages, without what lets somebody in.
func (a Address) Redacted() string { return Redact(a.Text) }

// Redact hides passwords, tokens and signatures in the URLs in a text.
func Redact(text string) string {
	text = userInURL.ReplaceAllStringFunc(text, func(found string) string {
		m := userInURL.FindStringSubmatch(found)
		user, _, both := strings.Cut(m[2], ":")
		switch {
		case both:
			return m[1] + "://" + user + ":" + hidden + "@"
		case strings.HasPrefix(strings.ToLower(m[1]), "http"): // a token alone
			return m[1] + "://" + hidden + "@"
		}
		return found
	})
	return argument.ReplaceAllStringFunc(text, func(found string) string {
		m := argument.FindStringSubmatch(found)
		name, err := url.QueryUnescape(m[2])
		if err != nil || secretName.MatchString(name) {
			return m[1] + m[2] + "=" + hidden
		}
		return found
	})
}

// withoutSecrets hides in what a program says the user and the password that
// it was given, in every form in which it may repeat them.
func withoutSecrets(text string, u *url.URL) string {
	text = Redact(text)
	if u.User == nil {
		return text
	}
	secret, both := u.User.Password()
	if !both {
		if !strings.HasPrefix(u.Scheme, "http") {
			return text
		}
		secret = u.User.Username()
	}
	_, encoded, _ := strings.Cut(url.UserPassword("", secret).String(), ":")
	for _, form := range []string{secret, encoded, url.QueryEscape(secret), url.PathEscape(secret)} {
		if len(form) > 3 { // less is in every second word
			text = strings.ReplaceAll(text, form, hidden)
		}
	}
	return text
}
