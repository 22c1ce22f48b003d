//go:build e2e

package dashboard

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/stokehq/stoke/cmd/programtest"
)

// lab is a folder with a configuration, the command that works on it, and the dashboard of
// its runs in a real browser.
type lab struct {
	t    *testing.T
	b    *tab
	dir  string
	said bytes.Buffer // by the apply

	base string // of the dashboard's pages
	stop func() // ends the dashboard
}

func newLab(t *testing.T, configuration string) *lab {
	t.Helper()
	l := &lab{t: t, b: browse(t), dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(l.dir, "main.tf"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	l.b.size(1280, 860, "light")
	return l
}

func (l *lab) command(args ...string) *exec.Cmd {
	cmd := exec.Command(programtest.Path(l.t, "stoke"), append([]string{"-chdir=" + l.dir}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+l.dir, "STOKE_USAGE_INTERVAL=200ms")
	return cmd
}

// apply begins an apply. At the end of the test all that it made is destroyed.
func (l *lab) apply() {
	l.t.Helper()
	apply := l.command("apply", "-auto-approve", "-no-color")
	apply.Stdout, apply.Stderr = &l.said, &l.said
	if err := apply.Start(); err != nil {
		l.t.Fatal(err)
	}
	applied := make(chan error, 1)
	go func() { applied <- apply.Wait() }()
	l.t.Cleanup(func() {
		apply.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		<-applied
		if out, err := l.command("destroy", "-auto-approve", "-no-color").CombinedOutput(); err != nil {
			l.t.Errorf("destroy: %v\n%s", err, out)
		}
	})
}

// await waits until a run is in a phase. Runs are in the journal soon after the apply has
// begun.
func (l *lab) await(address, phase string) {
	l.t.Helper()
	for deadline := time.Now().Add(longEnough); ; time.Sleep(200 * time.Millisecond) {
		text, err := l.command("status", address).CombinedOutput()
		if err == nil && bytes.Contains(text, []byte(phase)) {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("%s is not %s: %v: %s\n%s", address, phase, err, text, l.said.String())
		}
	}
}

// open starts the dashboard, and opens its link.
func (l *lab) open() {
	l.t.Helper()
	at, stop := showReal(l.t, l.command("dashboard", "-no-browser"))
	l.base, _, _ = strings.Cut(at, "/login")
	l.stop = stop
	l.b.do(chromedp.Navigate(at))
}

// changes waits until the value of an expression is another one.
func (l *lab) changes(what, script string) {
	l.t.Helper()
	text := "JSON.stringify(" + script + ")"
	before, err := json.Marshal(l.b.eval(text))
	if err != nil {
		l.t.Fatal(err)
	}
	l.b.until(what, fmt.Sprintf("%s !== %s", text, before))
}

// run shows a live run: its curves move, its log streams, and a search finds lines. ready is
// called before the search.
func (l *lab) run(address string, ready func()) {
	l.t.Helper()
	b := l.b
	b.do(chromedp.Navigate(l.base + "/run?run=" + url.QueryEscape(address)))
	b.until("curves are drawn", drawn("#metrics")+` > 300`)
	l.changes("they move", `[...document.querySelectorAll("#metrics figure")].map((f) => f.dataset.last)`)
	l.changes("the step", `document.querySelector("[data-live=step]").textContent`)
	b.until("usage is drawn", `document.querySelectorAll("#usage-charts canvas").length >= 2 && `+drawn("#usage-charts")+` > 100`)
	b.until("the log is shown", `document.querySelectorAll("#log .line").length > 10`)
	l.changes("the log streams", `document.querySelector("#log .line:last-child").textContent`)
	if ready != nil {
		ready()
	}
	b.do(chromedp.SendKeys("#log-search", "evaluated"))
	b.until("the search finds", `document.querySelectorAll("#log mark").length > 0 && [...document.querySelectorAll("#log .line")].every(l => l.textContent.includes("evaluated"))`)
	b.do(chromedp.SendKeys("#log-search", " nothing like it"))
	b.until("the search finds nothing", `document.querySelectorAll("#log .line").length === 0 && document.querySelector("#log-note").textContent.startsWith("No lines")`)
}

// workers shows the cards of so many roles, with curves that move.
func (l *lab) workers(least int) {
	l.t.Helper()
	curves := `[...document.querySelectorAll(".card svg .stroke")].map((p) => p.getAttribute("d") ?? "")`
	l.b.do(chromedp.Navigate(l.base + "/workers"))
	l.b.until("cards with curves", fmt.Sprintf(`document.querySelectorAll(".card").length >= %d && %s.filter((d) => d.length > 30).length >= %d`, least, curves, 2*least))
	l.changes("they move", curves)
}

// worker shows the page of one role.
func (l *lab) worker(address, role string) {
	l.t.Helper()
	l.b.do(chromedp.Navigate(l.base + "/worker?" + url.Values{"run": {address}, "role": {role}}.Encode()))
	l.b.until("the curves of a worker", `document.querySelectorAll("#metrics canvas").length >= 6 && `+drawn("#metrics")+` > 300`)
	l.changes("they move", `[...document.querySelectorAll("#metrics figure")].map((f) => f.dataset.last)`)
}

// compared draws runs on one chart.
func (l *lab) compared(runs ...string) {
	l.t.Helper()
	b := l.b
	b.do(chromedp.Navigate(l.base + "/compare?" + url.Values{"run": runs}.Encode()))
	b.until("the runs are drawn", fmt.Sprintf(`document.querySelector("#compared figure")?.dataset.lines === "%d" && %s > 500`, len(runs), drawn("#compared")))
	b.until("the arguments that differ", `document.querySelector("main").textContent.includes("learning_rate")`)
	b.set("#metric", "accuracy")
	b.do(chromedp.SendKeys("#goal", "0.4"))
	b.until("a run has the goal", `[...document.querySelectorAll("[data-goal]")].some((c) => /\d/.test(c.textContent))`)
}

// drift compares a run with its objects, by the keyboard.
func (l *lab) drift(address string) {
	l.t.Helper()
	l.b.do(chromedp.Navigate(l.base + "/run?run=" + url.QueryEscape(address)))
	l.b.until("its curves", drawn("#metrics")+` > 300`)
	l.b.eval(`document.querySelector("#drift-look").focus()`) // curves that are drawn above move the button
	l.b.do(chromedp.KeyEvent(kb.Enter))
	l.b.until("the objects are as they were", `document.querySelector("#drift-text").textContent.startsWith("No drift: ")`)
}

// download opens the download of a run that has ended: it holds what its page shows, and the
// log of each role.
func (l *lab) download(address string) {
	l.t.Helper()
	b := l.b
	b.do(chromedp.Navigate(l.base + "/run?run=" + url.QueryEscape(address)))
	b.until("its curves", drawn("#metrics")+` > 300`)
	step := b.eval(`document.querySelector("[data-live=step]").textContent`)
	accuracy := b.eval(`[...document.querySelectorAll("#configuration *")].find((e) => e.children.length === 0 && e.textContent === "accuracy").nextElementSibling.textContent`)
	text := b.eval(`fetch(document.querySelector("a[download]").href).then((a) => a.arrayBuffer()).then((x) => { let s = ""; for (const c of new Uint8Array(x)) s += String.fromCharCode(c); return btoa(s); })`,
		chromedp.EvalAwaitPromise)
	data, err := base64.StdEncoding.DecodeString(text.(string))
	if err != nil {
		l.t.Fatal(err)
	}
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		l.t.Fatal(err)
	}
	var status struct {
		Step    int64
		Metrics map[string]float64
	}
	in, err := files.Open("status.json")
	if err == nil {
		err = json.NewDecoder(in).Decode(&status)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	if integer(status.Step) != step || number(status.Metrics["accuracy"]) != accuracy {
		l.t.Errorf("the page has step %v and accuracy %v, the download %+v", step, accuracy, status)
	}
	lines, err := files.Open("metrics.jsonl")
	if err != nil {
		l.t.Fatal(err)
	}
	got, err := io.ReadAll(lines)
	if err != nil {
		l.t.Fatal(err)
	}
	want, err := l.command("metrics", "-json", address).Output()
	if err != nil || len(got) == 0 || bytes.Count(got, []byte{'\n'}) != bytes.Count(want, []byte{'\n'}) {
		l.t.Errorf("%v: the download has %d events, the command %d", err, bytes.Count(got, []byte{'\n'}), bytes.Count(want, []byte{'\n'}))
	}
	logs := 0
	for _, f := range files.File {
		if strings.HasPrefix(f.Name, "logs/") && f.UncompressedSize64 > 0 {
			logs++
		}
	}
	if logs < 2 {
		l.t.Errorf("the download has the logs of %d roles", logs)
	}
}

// restart ends the dashboard and starts it again on its port: the open page goes on once
// the new link is opened.
func (l *lab) restart(address string) {
	l.t.Helper()
	b := l.b
	b.do(chromedp.Navigate(l.base + "/run?run=" + url.QueryEscape(address)))
	b.until("the page is live", `document.querySelector("#connection").dataset.state === "live"`)
	l.stop()
	b.until("the page notices", `document.querySelector("#connection").dataset.state === "lost"`)
	old, err := url.Parse(l.base)
	if err != nil {
		l.t.Fatal(err)
	}
	at, _ := showReal(l.t, l.command("dashboard", "-no-browser", "-port", old.Port()))
	b.until("the page says to open the new link", `document.querySelector("#connection").textContent.includes("Open the new link")`)
	other, end := chromedp.NewContext(b.ctx)
	defer end()
	if err := chromedp.Do(other, chromedp.Navigate(at)); err != nil {
		l.t.Fatal(err)
	}
	b.until("the old page goes on", fmt.Sprintf(`document.querySelector("#connection").dataset.state === "live" && new URLSearchParams(location.search).get("run") === %q && %s > 300`,
		address, drawn("#metrics")))
	if now, _, _ := strings.Cut(at, "/login"); now == l.base {
		l.t.Error("the folder is the same after a restart")
	}
}

// showReal starts a dashboard, and returns its link. stop ends it.
func showReal(t *testing.T, show *exec.Cmd) (at string, stop func()) {
	t.Helper()
	out, err := show.StdoutPipe()
	if err == nil {
		err = show.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	link, read := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if at := regexp.MustCompile(`http://\S+`).FindString(lines.Text()); at != "" {
				link <- at
			}
		}
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			show.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
			<-read
			if err := show.Wait(); err != nil {
				t.Errorf("the dashboard ends with %v", err)
			}
		})
	}
	t.Cleanup(stop)
	select {
	case at = <-link:
	case <-read:
		t.Fatal("the dashboard prints no link")
	}
	return at, stop
}
