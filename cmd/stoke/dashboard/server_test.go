package dashboard

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// site is a dashboard that serves a source on loopback.
type site struct {
	t      *testing.T
	server *Server
	origin string
	base   string       // origin and secret folder
	client *http.Client // with the cookie
	end    func() error
}

// open serves a source, and enters by the link.
func open(t *testing.T, source Source) *site {
	t.Helper()
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	server, err := New(source, l.Addr().(*net.TCPAddr).Port)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	jar, _ := cookiejar.New(nil)
	s := &site{t: t, server: server, origin: "http://" + l.Addr().String(), client: &http.Client{Jar: jar}}
	s.base = s.origin + server.guard.folder
	s.end = func() error { cancel(); return <-served }
	t.Cleanup(func() {
		cancel()
		select {
		case <-served:
		default:
		}
	})
	answer, err := s.client.Get(server.Link())
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Request.URL.Path != server.guard.folder+"/runs" {
		t.Fatalf("the link leads to %s with %s", answer.Request.URL, answer.Status)
	}
	return s
}

// get returns the body of a page that is there.
func (s *site) get(path string) string {
	s.t.Helper()
	answer, err := s.client.Get(s.base + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s, %v: %.300s", path, answer.Status, err, body)
	}
	return string(body)
}

// of returns a path with the address of a run.
func of(path string, run *fakeRun) string {
	sign := "?"
	if strings.Contains(path, "?") {
		sign = "&"
	}
	return path + sign + "run=" + url.QueryEscape(keyOf(run.address))
}

// routes are all paths that the dashboard answers.
func routes(f *fakeSource) []string {
	run := f.runs[0]
	return []string{
		"/", "/runs", of("/run", run), "/workers", of("/worker?role=worker-0", run), of("/compare", run) + "&run=" + url.QueryEscape(f.runs[1].address),
		"/cluster", "/new", "/apply", "/apply/stop", "/live/apply", "/live/cluster", of("/data/series", run), of("/data/series?of=roles", run), of("/data/ledger", run), of("/data/drift", run), "/data/workers", "/live/runs", of("/live/run", run),
		"/live/workers", of("/live/logs", run), of("/logs.txt", run), of("/download", run), "/ping",
		"/assets/app.js", "/assets/app.css", "/assets/icon.svg", "/no-such-page",
	}
}

func TestNothingWithoutCookie(t *testing.T) {
	f := someRuns()
	f.apply = func(context.Context, string, <-chan struct{}, func(string)) error {
		t.Error("a plan is applied")
		return nil
	}
	s := open(t, f)
	s.server.applies.ask(question{file: "x.tf", plan: Plan{Apply: f.apply}})
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodHead, http.MethodOptions} {
		for _, path := range append(routes(f), "/login", "/login?token=", "/login?token="+strings.Repeat("0", 64)) {
			for name, cookie := range map[string]*http.Cookie{
				"none": nil, "empty": {Name: cookieName}, "wrong": {Name: cookieName, Value: strings.Repeat("0", 64)},
			} {
				r, _ := http.NewRequest(method, s.base+path, nil)
				if cookie != nil {
					r.AddCookie(cookie)
				}
				answer, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				if answer.StatusCode != http.StatusUnauthorized {
					answer.Body.Close() // a stream has no end
					t.Fatalf("%s %s with cookie %s: %s", method, path, name, answer.Status)
				}
				body, _ := io.ReadAll(answer.Body)
				answer.Body.Close()
				if method == http.MethodGet && !strings.Contains(string(body), "stoke dashboard") {
					t.Errorf("%s: the page does not say what to do: %s", path, body)
				}
				if strings.Contains(string(body), "resnet20") {
					t.Errorf("%s tells of a run", path)
				}
			}
		}
	}
}

// Browsers send cookies to every port of a host. The cookie belongs to a folder that no
// other server is asked for; with it, paths outside of the folder answer nothing.
func TestCookieStaysInItsFolder(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Cookie")) }))
	defer other.Close()
	second := open(t, f)
	for _, path := range []string{"/", "/runs", "/login", "/" + secret()[:32] + "/runs", second.server.guard.folder + "/runs"} {
		answer, err := s.client.Get(other.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	if len(got) != 5 || strings.Join(got, "") != "" {
		t.Errorf("another port gets %q", got)
	}
	folder := s.server.guard.folder
	wrong := folder[:len(folder)-1] + "g"
	for _, path := range routes(f) {
		for _, before := range []string{"", "/", wrong, folder[:len(folder)-1], folder + "0", strings.ToUpper(folder) + "g", "/." + folder, "/x/.." + folder + "x"} {
			r, _ := http.NewRequest(http.MethodGet, s.origin+before+path, nil)
			r.AddCookie(&http.Cookie{Name: cookieName, Value: s.server.guard.session})
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusUnauthorized || answer.Header.Get("Location") != "" {
				t.Errorf("%s%s: %s to %q", before, path, answer.Status, answer.Header.Get("Location"))
			}
		}
	}
	if second.server.guard.folder == folder || len(folder) != 33 {
		t.Errorf("folders are %s and %s", folder, second.server.guard.folder)
	}
}

func TestLinkWorksOnce(t *testing.T) {
	s := open(t, someRuns()) // which uses it
	answer, err := http.Get(s.base + "/login?token=" + s.server.guard.session)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("the session as a token: %s", answer.Status)
	}
	g := newGuard(1)
	token := g.token
	if g.spend("") || g.spend(token[1:]) || !g.spend(token) || g.spend(token) || g.spend("") {
		t.Error("the token works other than once")
	}
	if newGuard(1).token == token || newGuard(1).session == g.session {
		t.Error("tokens repeat")
	}
}

func TestOtherOriginsAreRefused(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	host := strings.TrimPrefix(s.origin, "http://")
	_, port, _ := net.SplitHostPort(host)
	tests := []struct {
		name   string
		host   string
		header http.Header
		want   int
	}{
		{"ours", host, http.Header{"Origin": {s.origin}, "Sec-Fetch-Site": {"same-origin"}}, 200},
		{"a person's own request", host, nil, 200},
		{"rebound name", "evil.example:" + port, nil, 403},
		{"rebound name without port", "evil.example", nil, 403},
		{"without port", "127.0.0.1", nil, 403},
		{"another port", "127.0.0.1:1", nil, 403},
		{"another address of loopback", "127.0.0.2:" + port, nil, 403},
		{"another origin", host, http.Header{"Origin": {"http://evil.example"}}, 403},
		{"another port of this machine", host, http.Header{"Origin": {"http://127.0.0.1:1"}}, 403},
		{"no origin", host, http.Header{"Origin": {"null"}}, 403},
		{"no origin, our page", host, http.Header{"Origin": {"null"}, "Sec-Fetch-Site": {"same-origin"}}, 200},
		{"no origin, another page", host, http.Header{"Origin": {"null"}, "Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}}, 403},
		{"two origins", host, http.Header{"Origin": {s.origin, s.origin}}, 403},
		{"another site's script", host, http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}}, 403},
		{"another site's frame", host, http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"iframe"}}, 403},
		{"another port's script", host, http.Header{"Sec-Fetch-Site": {"same-site"}, "Sec-Fetch-Mode": {"cors"}}, 403},
	}
	paths := []string{"/runs", "/new", "/assets/app.js", of("/data/series", f.runs[0]), "/ping", "/login?token=x"}
	for _, test := range tests {
		for _, path := range paths {
			r, _ := http.NewRequest(http.MethodGet, s.base+path, nil)
			r.Host = test.host
			for name, values := range test.header {
				r.Header[name] = values
			}
			answer, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if got := answer.StatusCode; got != test.want && !(got == 204 && test.want == 200) {
				t.Errorf("%s: %s: %d, want %d", test.name, path, got, test.want)
			}
		}
	}
	r, _ := http.NewRequest(http.MethodPost, s.base+"/new", strings.NewReader("label=x"))
	r.Header.Set("Origin", "http://evil.example")
	if answer, err := s.client.Do(r); err != nil || answer.StatusCode != 403 {
		t.Errorf("a form of another origin: %v, %v", answer, err)
	}
}

func TestHeaders(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	for _, path := range routes(f) {
		if strings.HasPrefix(path, "/live/") {
			continue
		}
		answer, err := s.client.Get(s.base + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		h := answer.Header
		if h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers are %v", path, h)
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s allows other origins", path)
		}
	}
	if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("policy is %s", policy)
	}
	answer, err := http.DefaultTransport.RoundTrip(func() *http.Request {
		g := s.server.guard
		g.mu.Lock()
		defer g.mu.Unlock()
		g.token = "again"
		r, _ := http.NewRequest(http.MethodGet, s.base+"/login?token=again", nil)
		return r
	}())
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if c := answer.Cookies(); len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || answer.StatusCode != http.StatusSeeOther ||
		c[0].Path != s.server.guard.folder+"/" || c[0].Domain != "" || c[0].MaxAge != 0 || !c[0].Expires.IsZero() {
		t.Errorf("the link answers %s with %v", answer.Status, c)
	}
}

func TestServerEnds(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	answer, err := s.client.Get(s.base + of("/live/run", f.runs[2])) // which never ends by itself
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := s.end(); err != nil {
		t.Errorf("serving ends with %v", err)
	}
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
}

// A file of this machine may lead to the link: then the session begins with a page, as
// browsers do not send a strict cookie behind a redirection of another site.
func TestLinkOpenedFromFile(t *testing.T) {
	s := open(t, someRuns())
	r, err := http.NewRequest(http.MethodGet, s.server.Link(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"} {
		r.Header.Set(key, value)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), `content="0;url=`+s.server.guard.folder+`/runs"`) {
		t.Errorf("%s: %s, %v", answer.Status, text, err)
	}
}
