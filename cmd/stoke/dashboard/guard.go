package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// guard lets only the browser in that opened the link of this process.
//
// The link has a token that works once: it may stay in the history of a browser or a
// terminal. The browser gets a cookie for it. Another page of that browser could send
// the cookie along, so requests of another origin are refused, and so is another name
// in the header Host, which a page that moves its name to 127.0.0.1 would have.
//
// A browser sends a cookie to all ports of a host, and other users of this machine may
// listen on some. So all paths begin with a secret folder, and the cookie belongs to that
// folder: no other server is asked for a path in it.
type guard struct {
	hosts   []string
	folder  string // the first part of all paths, such as "/5f3a…"
	session string // the value of the cookie

	mu    sync.Mutex
	token string // "": it was used
}

func newGuard(port int) *guard {
	return &guard{
		hosts:  []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("localhost:%d", port)},
		folder: "/" + secret()[:32], session: secret(), token: secret(),
	}
}

// cookieName is the name of the session's cookie.
const cookieName = "stoke_dashboard"

// secret returns 256 random bits as text.
func secret() string {
	b := make([]byte, 32)
	rand.Read(b) //nolint:errcheck // it never fails
	return hex.EncodeToString(b)
}

// policy allows scripts and styles of this server only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect returns a handler that passes on what the browser of the link asks, without
// the secret folder.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		isWithin := g.strip(r)
		switch {
		case !g.isOurs(r):
			http.Error(w, "This dashboard answers only its own pages.", http.StatusForbidden)
		case !isWithin:
			refuse(w)
		case r.URL.Path == "/login" && r.Method == http.MethodGet:
			g.enter(w, r)
		case !g.isKnown(r):
			refuse(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// strip removes the secret folder from the path of a request, and reports whether the path
// begins with it.
func (g *guard) strip(r *http.Request) bool {
	n := len(g.folder)
	if path := r.URL.Path; len(path) <= n || path[n] != '/' || subtle.ConstantTimeCompare([]byte(path[:n]), []byte(g.folder)) != 1 {
		return false
	}
	at := *r.URL
	at.Path, at.RawPath = at.Path[n:], ""
	r.URL = &at
	return true
}

// isOurs reports whether a request is for this server and not from a page of another.
func (g *guard) isOurs(r *http.Request) bool {
	if !slices.Contains(g.hosts, r.Host) {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if from := r.Header.Values("Origin"); len(from) > 0 {
		// The policy no-referrer lets a browser send "null" with our own forms.
		isForm := from[0] == "null" && site == "same-origin"
		if len(from) != 1 || from[0] != "http://"+r.Host && !isForm {
			return false
		}
	}
	switch site {
	case "cross-site", "same-site": // another port of this machine is the same site
		return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	}
	return true
}

// isKnown reports whether a request has the session's cookie.
func (g *guard) isKnown(r *http.Request) bool {
	for _, c := range r.CookiesNamed(cookieName) {
		if subtle.ConstantTimeCompare([]byte(c.Value), []byte(g.session)) == 1 {
			return true
		}
	}
	return false
}

// enter exchanges the token for the cookie.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	if !g.isKnown(r) {
		if !g.spend(r.URL.Query().Get("token")) {
			refuse(w)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: cookieName, Value: g.session, Path: g.folder + "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode})
	}
	if r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		http.Redirect(w, r, g.folder+"/runs", http.StatusSeeOther)
		return
	}
	// A file led here. A browser sends the cookie only with requests of our own pages: a
	// redirection would count as a request of the file.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>stoke dashboard</title><meta http-equiv="refresh" content="0;url=%[1]s/runs"></head>
<body><p><a href="%[1]s/runs">Open the dashboard</a></p></body></html>
`, g.folder)
}

// spend reports whether a token is the token of the link, and makes it void.
func (g *guard) spend(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) != 1 {
		return false
	}
	g.token = ""
	return true
}

// refuse answers a browser without a session. The page has no style, as nothing else
// of the server may be read either.
func refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprint(w, `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Open the link again</title></head>
<body><main>
<h1>Open the link that stoke dashboard printed</h1>
<p>This browser has no session. A link works once, and sessions end with their dashboard.</p>
<p>Where the dashboard was started again, open its new link. Where the link was used in another browser,
end the dashboard with Ctrl-C and run <code>stoke dashboard</code> again.</p>
</main></body></html>
`)
}
