//go:build e2e

package dashboard

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var pictures = flag.String("pictures", "", "Write pictures of all screens to this folder.")

// tab is a page of a real browser.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // of scripts, and of the content security policy
}

// patience of a test that waits for a browser on a busy machine.
const longEnough = 10 * time.Minute

func browse(t *testing.T) *tab {
	t.Helper()
	if _, err := os.Stat("/usr/bin/chromium"); err != nil {
		t.Skip("Chromium is not installed: Debian has it in chromium")
	}
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("/usr/bin/chromium"), chromedp.NoSandbox, chromedp.WindowSize(1280, 860),
		chromedp.WSURLReadTimeout(longEnough))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), o...)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // without a limit: it would be that of the browser
		t.Fatal(err)
	}
	said := chromedp.Console(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for message, err := range said {
			if err != nil {
				return
			}
			b.hear(message)
		}
	})
	t.Cleanup(func() { end(); reading.Wait() })
	return b
}

// hear keeps a message of the console that is a fault. A test that ends the server sees
// refused connections.
func (b *tab) hear(m chromedp.ConsoleMessage) {
	if m.Type != chromedp.ConsoleException && m.Type != "error" {
		return
	}
	for _, expected := range []string{"ERR_CONNECTION_REFUSED", "status of 401", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET"} {
		if strings.Contains(m.Text, expected) {
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, m.Text)
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, longEnough)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// ask returns the value of an expression.
func (b *tab) ask(script string, options ...chromedp.EvaluateOption) (any, error) {
	ctx, cancel := context.WithTimeout(b.ctx, longEnough)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[any](script, options...))
}

// eval returns the value of an expression that has one on the page.
func (b *tab) eval(script string, options ...chromedp.EvaluateOption) any {
	b.t.Helper()
	out, err := b.ask(script, options...)
	if err != nil && !errors.Is(err, chromedp.ErrJSUndefined) && !errors.Is(err, chromedp.ErrJSNull) {
		b.t.Fatalf("%.200s: %v", script, err)
	}
	return out
}

// set sets the value of a control, as a person does.
func (b *tab) set(selector, value string) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`(() => { const c = document.querySelector(%q); c.value = %q; for (const e of ["input", "change"]) c.dispatchEvent(new Event(e, {bubbles: true})); })()`,
		selector, value))
}

// until waits until an expression is true. A page that is left or not whole yet is asked
// again.
func (b *tab) until(what, script string) {
	b.t.Helper()
	for end := time.Now().Add(longEnough); ; time.Sleep(50 * time.Millisecond) {
		is, err := b.ask("!!(" + script + ")")
		if err == nil && is == true {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("never happened: %s (%v); the page is %.3000v", what, err, b.eval("document.body.innerText"))
		}
	}
}

// size sets the size of the window, and the colours.
func (b *tab) size(width, height int64, scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
	if err == nil {
		_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// picture writes a picture of the window, where the test is to write them.
func (b *tab) picture(name string) {
	b.t.Helper()
	if *pictures == "" {
		return
	}
	b.do(chromedp.Sleep(400 * time.Millisecond)) // a chart is drawn in the next frame
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// sound reports faults of scripts and of the policy, and text that is wider than the
// window.
func (b *tab) sound(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Errorf("%s: %s", where, f)
	}
	b.faults = nil
}

// axe reports serious faults of accessibility.
func (b *tab) axe(where string) {
	b.t.Helper()
	script, err := os.ReadFile("web/node_modules/axe-core/axe.min.js")
	if err != nil {
		b.t.Fatalf("axe-core is not installed, run make dashboard: %v", err)
	}
	b.eval(string(script) + "; 1")
	found := b.eval(`axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(
		r.violations.filter(v => v.impact === "serious" || v.impact === "critical").map(v => ({id: v.id, nodes: v.nodes.slice(0, 4).map(n => n.html.slice(0, 200) + " " + (n.any[0]?.message ?? ""))}))))`,
		chromedp.EvalAwaitPromise)
	if found != "[]" {
		b.t.Errorf("%s: axe finds %v", where, found)
	}
}

// fits reports a page that is wider than the window.
func (b *tab) fits(where string) {
	b.t.Helper()
	if wide := b.eval("document.documentElement.scrollWidth - innerWidth"); wide != float64(0) {
		b.t.Errorf("%s: the page is %v pixels wider than the window: %v", where, wide,
			b.eval(`[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll, .log")).slice(0, 3).map(e => e.outerHTML.slice(0, 80))`))
	}
}

// drawn counts the pixels of a canvas that are not empty.
func drawn(selector string) string {
	return fmt.Sprintf(`(() => { const c = document.querySelector(%q); if (!c) return 0;
		const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i] > 40) n++; return n; })()`, selector+" canvas")
}

// moving lets the live runs of a source train until the test ends.
func moving(t *testing.T, runs ...*fakeRun) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for step := 0; ; step++ {
			select {
			case <-done:
				return
			case <-time.After(500 * time.Millisecond):
			}
			for _, r := range runs {
				r.mu.Lock()
				at := int(r.status.Step)
				r.mu.Unlock()
				r.train(at, at+4) // each fifth time a sample of usage
				r.say("worker-0", "stdout", fmt.Sprintf("Loss = %.4f, steps = %d", 2.3/float64(at+1), at))
			}
		}
	}()
	t.Cleanup(func() { close(done); <-stopped })
}

func TestBrowser(t *testing.T) {
	f := someRuns()
	f.apply = slowApply
	s := open(t, f)
	b := browse(t)
	s.server.guard.mu.Lock()
	s.server.guard.token = "second" // the client of the other tests has used the first
	s.server.guard.mu.Unlock()
	live := f.runs[2]
	moving(t, live)
	b.size(1280, 860, "light")
	b.do(chromedp.Navigate(s.base + "/login?token=second"))
	b.until("the list is live", `document.querySelector("#connection").dataset.state === "live"`)

	if !t.Run("runs", func(t *testing.T) { b.t = t; b.runs() }) {
		return
	}
	t.Run("compare", func(t *testing.T) { b.t = t; b.compare() })
	t.Run("run", func(t *testing.T) { b.t = t; b.run(s, live) })
	t.Run("workers", func(t *testing.T) { b.t = t; b.workers(s) })
	t.Run("worker", func(t *testing.T) {
		b.t = t
		b.do(chromedp.Navigate(s.base + of("/worker?role=worker-1", live)))
		b.until("its curves are drawn", `document.querySelectorAll("#metrics canvas").length >= 6 && `+drawn("#metrics")+` > 300`)
		b.sound("worker")
	})
	t.Run("new", func(t *testing.T) {
		b.t = t
		b.do(chromedp.Navigate(s.base + "/new"))
		b.set("input[name=label]", "mine")
		b.do(chromedp.Click(`button[value=write]`))
		b.until("the configuration is shown", `document.querySelector("#hcl")?.textContent.includes('"train_experiment" "mine"')`)
		b.sound("new")
	})
	t.Run("apply", func(t *testing.T) { b.t = t; b.apply(s) })
	t.Run("cluster", func(t *testing.T) { b.t = t; b.cluster(s, f) })
	t.Run("drift", func(t *testing.T) { b.t = t; b.drift(s, f, live) })
	t.Run("looks", func(t *testing.T) { b.t = t; b.looks(s, f) })
	t.Run("hostile", func(t *testing.T) { b.t = t; b.hostile() })
	t.Run("cookie", func(t *testing.T) { b.t = t; b.cookie(s) })
}

// cookie opens pages of another port of this machine, which another user may listen on:
// neither they nor what they fetch of the dashboard have the cookie, or tell the folder.
func (b *tab) cookie(s *site) {
	var mu sync.Mutex
	var got []http.Header
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.Header.Clone())
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>other</title><img src="%s/assets/icon.svg"><a href="/there">there</a>`, s.origin)
	}))
	defer other.Close()
	b.do(chromedp.Navigate(s.base + "/runs")) // the same tab, so that there may be a referrer
	b.until("the list is live", `document.querySelector("#connection").dataset.state === "live"`)
	b.eval(`(() => { const a = document.createElement("a"); a.href = "` + other.URL + `/runs"; document.querySelector("main").append(a); a.click(); })()`)
	b.until("the other page", `document.title === "other"`)
	for _, script := range []string{`document.cookie`, `document.referrer`} {
		if text := b.eval(script); text != "" {
			b.t.Errorf("%s is %v", script, text)
		}
	}
	fetched := b.eval(`Promise.allSettled(["/runs", "/ping", "/data/workers"].map((p) => fetch("`+s.origin+`" + p, { credentials: "include" }))).then((a) => a.map((x) => x.status).join())`,
		chromedp.EvalAwaitPromise)
	if fetched != "rejected,rejected,rejected" {
		b.t.Errorf("the other page fetches %v", fetched)
	}
	b.do(chromedp.Navigate(other.URL+"/there"), chromedp.Navigate(other.URL+"/"+secret()[:32]+"/runs"))
	mu.Lock()
	defer mu.Unlock()
	if len(got) < 3 {
		b.t.Errorf("the other server got %d requests", len(got))
	}
	for _, h := range got {
		if text := fmt.Sprint(h); h.Get("Cookie") != "" || strings.Contains(text, s.server.guard.folder[1:]) || strings.Contains(text, s.server.guard.session) {
			b.t.Errorf("the other server gets %s", text)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = nil // the refused pictures and fetches
}

func (b *tab) runs() {
	b.until("the live run moves", `document.querySelectorAll("#runs tbody tr").length === 7`)
	before := b.eval(`[...document.querySelectorAll("#runs tbody tr")].find(r => r.dataset.run.includes("w4")).querySelector("[data-live=progress]").textContent`)
	b.until("the progress of the live run", fmt.Sprintf(`[...document.querySelectorAll("#runs tbody tr")].find(r => r.dataset.run.includes("w4")).querySelector("[data-live=progress]").textContent !== %q`, before))
	b.do(chromedp.SendKeys("#filter", "w4"))
	b.until("the filter", `[...document.querySelectorAll("#runs tbody tr")].filter(r => !r.hidden).length === 1`)
	b.set("#filter", "")
	b.until("all runs are shown again", `[...document.querySelectorAll("#runs tbody tr")].every(r => !r.hidden)`)
	b.do(chromedp.Click(`th[data-key=accuracy] button`))
	b.until("the order of accuracy", `(() => { const v = [...document.querySelectorAll("#runs tbody td[data-live=accuracy]")].map(c => Number(c.dataset.sort)).filter(Number.isFinite);
		return v.length >= 6 && v.every((x, i) => i === 0 || x <= v[i-1]) && document.querySelector("th[data-key=accuracy]").ariaSort === "descending"; })()`)
	if b.eval(`document.querySelector("#compare").disabled`) != true {
		b.t.Error("nothing is selected, and Compare is not disabled")
	}
	// By the keyboard only: to the first box, select, to the next one, select.
	b.eval(`document.querySelector("#runs tbody input").focus()`)
	for n := range 3 {
		b.do(chromedp.KeyEvent(" "))
		b.until("one run more is selected", fmt.Sprintf(`document.querySelector("#chosen").textContent === "%d selected"`, n+1))
		b.do(chromedp.KeyEvent(kb.Tab))
		b.until("the focus is on the name", `document.activeElement.matches("#runs tbody a")`)
		b.do(chromedp.KeyEvent(kb.Tab))
		b.until("the focus is on the next box", `document.activeElement.matches("#runs tbody input")`)
	}
	b.until("three runs are selected", `document.querySelector("#chosen").textContent === "3 selected"`)
	b.picture("runs-selected")
	b.eval(`document.querySelector("#compare").focus()`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.sound("runs")
}

func (b *tab) compare() {
	b.until("three curves are drawn", `location.pathname.endsWith("/compare") && document.querySelectorAll("#legend li").length === 3 && `+drawn("#compared")+` > 1000`)
	b.set("#metric", "accuracy")
	b.do(chromedp.SendKeys("#goal", "80%"))
	b.until("the time to the goal", `[...document.querySelectorAll("[data-goal]")].some(c => /\d+m \d\ds/.test(c.textContent))`)
	b.do(chromedp.Click("#legend li input"))
	b.until("a curve less", `document.querySelector("#compared figure").dataset.lines === "2"`)
	b.sound("compare")
}

func (b *tab) run(s *site, live *fakeRun) {
	b.do(chromedp.Navigate(s.base + of("/run", live)))
	b.until("curves are drawn", drawn("#metrics")+` > 500`)
	count := `Number([...document.querySelectorAll("#metrics figure")].find(f => f.textContent.startsWith("Loss")).dataset.last)`
	before := b.eval(count)
	b.until("the curve grows", fmt.Sprintf(`%s > %v`, count, before))
	raw := b.eval(drawn("#metrics"))
	b.set("#smooth", "0")
	b.until("the curve without smoothing", fmt.Sprintf(`%s !== %v`, drawn("#metrics"), raw))
	b.until("usage is drawn", `document.querySelectorAll("#usage-charts canvas").length === 4 && `+drawn("#usage-charts")+` > 300`)
	b.until("the log is shown", `document.querySelectorAll("#log .line").length >= 80`)
	lines := b.eval(`document.querySelectorAll("#log .line").length`)
	b.until("the log goes on", fmt.Sprintf(`document.querySelectorAll("#log .line").length > %v`, lines))
	b.do(chromedp.SendKeys("#log-search", "CHECKPOINT saved"))
	b.until("the search finds", `document.querySelectorAll("#log .line").length === 40 && document.querySelectorAll("#log mark").length === 40`)
	b.set("#log-role", "worker-1")
	b.until("no line of the role matches", `document.querySelectorAll("#log .line").length === 0 && document.querySelector("#log-note").textContent.startsWith("No lines")`)
	b.eval(`document.querySelector("#metrics .chart-box").focus()`)
	b.do(chromedp.KeyEvent(kb.Home))
	b.until("the value at the cursor", `/step \d/.test(document.querySelector("#metrics .chart-value").textContent)`)
	b.sound("run")
}

func (b *tab) workers(s *site) {
	b.do(chromedp.Navigate(s.base + "/workers"))
	b.until("cards with curves", `[...document.querySelectorAll(".card svg .stroke")].filter(p => (p.getAttribute("d") ?? "").length > 50).length >= 20`)
	path := `[...document.querySelectorAll(".card")].find(c => c.dataset.run.includes("w4") && c.dataset.role === "worker-0").querySelector("svg .stroke").getAttribute("d")`
	before := b.eval(path)
	b.until("the curve of a card moves", fmt.Sprintf(`%s !== %q`, path, before))
	b.do(chromedp.SendKeys("#filter", "worker-7"))
	b.until("the filter", `[...document.querySelectorAll(".card")].filter(c => !c.hidden).length === 1`)
	b.sound("workers")
}

// looks opens each screen in light and dark, wide and narrow.
func (b *tab) looks(s *site, f *fakeSource) {
	compare := "/compare?"
	for _, r := range f.runs[:4] {
		compare += "&run=" + url.QueryEscape(r.address)
	}
	screens := []struct{ name, path, ready string }{
		{"runs", "/runs", `document.querySelector("#connection").dataset.state === "live"`},
		{"run", of("/run", f.runs[2]), drawn("#metrics") + ` > 500 && document.querySelectorAll("#log .line").length > 0`},
		{"failed", of("/run", f.runs[4]), drawn("#metrics") + ` > 500`},
		{"workers", "/workers", `document.querySelectorAll(".card svg").length > 20`},
		{"worker", of("/worker?role=worker-1", f.runs[2]), drawn("#metrics") + ` > 300`},
		{"compare", compare, drawn("#compared") + ` > 1000`},
		{"cluster", "/cluster", `document.querySelectorAll(".place tbody tr").length > 5`},
		{"apply", "/apply", `document.querySelector("#phase")`},
		{"new", "/new", `true`},
		{"problem", "/run?run=none", `true`},
	}
	for _, look := range []struct {
		name, scheme  string
		width, height int64
	}{{"light", "light", 1280, 860}, {"dark", "dark", 1280, 860}, {"narrow", "light", 400, 800}, {"narrow-dark", "dark", 400, 800}} {
		b.size(look.width, look.height, look.scheme)
		for _, screen := range screens {
			name := screen.name + "-" + look.name
			b.do(chromedp.Navigate(s.base + screen.path))
			b.until(name, screen.ready)
			b.fits(name)
			b.picture(name)
			b.axe(name)
			if screen.name == "run" {
				for _, part := range []string{"usage", "logs", "events", "configuration"} {
					b.eval(`document.getElementById("` + part + `").scrollIntoView()`)
					b.picture(name + "-" + part)
				}
			}
		}
	}
	b.mu.Lock()
	for _, fault := range b.faults {
		if !strings.Contains(fault, "404") { // the screen problem
			b.t.Error(fault)
		}
	}
	b.faults = nil
	b.mu.Unlock()
}

// hostile opens the pages of hostile runs.
func (b *tab) hostile() {
	f := hostileRuns()
	s := open(b.t, f)
	s.server.guard.mu.Lock()
	s.server.guard.token = "second"
	s.server.guard.mu.Unlock()
	b.size(1280, 860, "light")
	b.do(chromedp.Navigate(s.base + "/login?token=second"))
	b.eval(`window.alert = () => { document.title = "alerted" }`)
	for i, run := range f.runs {
		b.do(chromedp.Navigate(s.base + of("/run", run)))
		b.until(fmt.Sprintf("the log of %.20q", hostile[i]), `document.querySelectorAll("#log .line").length >= 2`)
		b.until("curves", `document.querySelectorAll("#metrics figure").length >= 2`)
		if found := b.eval(`document.querySelectorAll("main script, main img, main iframe, main style, main b, main svg, [onerror], [onload], [onmouseover]").length + (document.title === "alerted" ? 100 : 0)`); found != float64(0) {
			b.t.Errorf("%.30q: %v elements of it are on the page", hostile[i], found)
		}
		b.fits(fmt.Sprintf("%.20q", hostile[i]))
	}
	b.sound("hostile")
}

// TestBrowserRestart ends the server and starts another one on its port.
func TestBrowserRestart(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	b := browse(t)
	s.server.guard.mu.Lock()
	s.server.guard.token = "second"
	s.server.guard.mu.Unlock()
	b.do(chromedp.Navigate(s.base + "/login?token=second"))
	b.until("the list is live", `document.querySelector("#connection").dataset.state === "live"`)
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	b.until("the page notices", `document.querySelector("#connection").dataset.state === "lost"`)
	l, err := Listen(s.server.port)
	if err != nil {
		t.Fatal(err)
	}
	server, err := New(f, s.server.port)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	defer func() { cancel(); <-served }()
	b.until("the page says to open the new link", `document.querySelector("#connection").textContent.includes("Open the new link")`)
	other, end := chromedp.NewContext(b.ctx)
	defer end()
	if err := chromedp.Do(other, chromedp.Navigate(server.Link())); err != nil {
		t.Fatal(err)
	}
	if there, err := chromedp.Run(other, chromedp.Location()); err != nil || !strings.HasSuffix(there, "/runs") {
		t.Fatalf("the new link leads to %v, %v", there, err)
	}
	b.until("the old page works again", `document.querySelector("#connection").dataset.state === "live"`)
}
