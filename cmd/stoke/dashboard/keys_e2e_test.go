//go:build e2e

package dashboard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// keys presses keys.
func (b *tab) keys(text string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(text))
}

// seen says what is wrong with the focus: "" where a person sees it.
const seen = `(() => { const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect(), what = e.outerHTML.slice(0, 120);
	const top = e.closest(".top") || e.matches(".skip") ? 0 : document.querySelector(".top").getBoundingClientRect().bottom;
	if (!e.matches(":focus-visible") || s.outlineStyle === "none" || !(parseFloat(s.outlineWidth) >= 1)) return "no outline: " + what;
	if (r.bottom <= top || r.top >= innerHeight || r.right <= 0 || r.left >= innerWidth) return "out of sight: " + what;
	return ""; })()`

// tabTo moves the focus by the key Tab to the next element that matches. It fails where no
// one does, or where the focus cannot be seen.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 400 {
		b.keys(kb.Tab)
		if b.eval(fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) == true {
			b.until("the focus on "+selector, seen+` === ""`) // the page scrolls
			return
		}
	}
	b.t.Fatalf("Tab does not lead to %s", selector)
}

// walk presses Tab through the whole page: each control has the focus once, and a person sees
// where it is.
func (b *tab) walk(where string) {
	b.t.Helper()
	b.eval(`(() => { document.activeElement.blur(); scrollTo(0, 0); })()`)
	const expected = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter((e) =>
		!e.disabled && e.type !== "hidden" && (e.checkVisibility({ checkVisibilityCSS: true })))`
	n := int(b.eval(expected + `.length`).(float64))
	b.eval(`document.querySelector("#main").blur(); window.reached = new Set()`)
	for range 2*n + 10 { // a page that is live may get more
		b.keys(kb.Tab)
		if b.eval(`document.activeElement === document.body || window.reached.has(document.activeElement)`) == true {
			break
		}
		b.eval(`window.reached.add(document.activeElement)`)
		if fault := b.eval(seen); fault != "" {
			time.Sleep(200 * time.Millisecond) // the page scrolls
			if fault = b.eval(seen); fault != "" {
				b.t.Errorf("%s: %v", where, fault)
			}
		}
	}
	if left := b.eval(`(() => { const left = ` + expected + `.filter((e) => !window.reached.has(e)); return left.map((e) => e.outerHTML.slice(0, 120)).join("; "); })()`); left != "" {
		b.t.Errorf("%s: Tab does not lead to %v", where, left)
	}
}

// TestBrowserKeys does each action of each screen by the keyboard alone.
func TestBrowserKeys(t *testing.T) {
	f := someRuns()
	f.apply, f.mayWrite = slowApply, true
	f.drift = Drift{Objects: 1, Text: "  ~ train = 50000 -> 49000"}
	s := open(t, f)
	b := browse(t)
	s.server.guard.mu.Lock()
	s.server.guard.token = "second"
	s.server.guard.mu.Unlock()
	b.size(1280, 860, "light")
	b.do(chromedp.Navigate(s.base + "/login?token=second"))
	compare := "/compare?run=" + f.runs[0].address + "&run=" + f.runs[2].address
	t.Run("walk", func(t *testing.T) {
		b.t = t
		for _, width := range []int64{1280, 400} {
			b.size(width, 860, "light")
			for path, ready := range map[string]string{
				"/runs": `true`, of("/run", f.runs[2]): drawn("#metrics") + ` > 500`, "/workers": `true`, of("/worker?role=worker-1", f.runs[2]): drawn("#metrics") + ` > 300`,
				compare: drawn("#compared") + ` > 500`, "/cluster": `true`, "/new": `true`, "/apply": `true`, "/run?run=none": `true`,
			} {
				b.do(chromedp.Navigate(s.base + path))
				b.until(path, ready)
				b.walk(fmt.Sprintf("%s, %d pixels", path, width))
			}
		}
		b.size(1280, 860, "light")
		b.mu.Lock()
		b.faults = nil // the page that is not there
		b.mu.Unlock()
	})
	moving(t, f.runs[2])
	for _, screen := range []struct {
		name string
		do   func(*site, *fakeSource)
	}{{"runs", b.keysOfRuns}, {"compare", b.keysOfCompare}, {"run", b.keysOfRun}, {"logs", b.keysOfLogs}, {"workers", b.keysOfWorkers}, {"cluster", b.keysOfCluster}, {"new", b.keysOfNew}} {
		t.Run(screen.name, func(t *testing.T) {
			b.t = t
			screen.do(s, f)
			b.sound(screen.name)
		})
	}
}

func (b *tab) keysOfRuns(s *site, f *fakeSource) {
	b.do(chromedp.Navigate(s.base + "/runs"))
	b.until("the list is live", `document.querySelector("#connection").dataset.state === "live"`)
	b.tabTo(".skip")
	b.keys(kb.Enter)
	b.until("the content has the focus", `document.activeElement.id === "main"`)
	shown := `[...document.querySelectorAll("#runs tbody tr")].filter((r) => !r.hidden).length`
	b.tabTo("#filter")
	b.keys("w4")
	b.until("the filter", shown+` === 1`)
	b.keys(kb.Backspace + kb.Backspace)
	b.until("no filter", shown+` === 7`)
	b.tabTo("#phase")
	b.keys(kb.ArrowDown)
	b.until("the running ones", `document.querySelector("#phase").value === "running" && `+shown+` < 7`)
	b.keys(kb.ArrowUp)
	b.until("all", shown+` === 7`)
	b.tabTo("#all")
	b.keys(" ")
	b.until("all are selected", `document.querySelectorAll("#runs tbody input:checked").length === 7`)
	b.keys(" ")
	for _, key := range []string{"name", "phase", "progress", "accuracy", "loss", "workers", "duration", "started"} {
		b.tabTo(`th[data-key=` + key + `] button`)
		b.keys(kb.Enter)
		b.until("the order by "+key, fmt.Sprintf(`["ascending", "descending"].includes(document.querySelector("th[data-key=%s]").ariaSort)`, key))
		before := b.eval(fmt.Sprintf(`document.querySelector("th[data-key=%s]").ariaSort`, key))
		b.keys(" ")
		b.until("the other order", fmt.Sprintf(`document.querySelector("th[data-key=%s]").ariaSort !== %q`, key, before))
	}
	for range 2 {
		b.tabTo("#runs tbody input")
		b.keys(" ")
	}
	b.until("two are selected", `document.querySelector("#chosen").textContent === "2 selected"`)
	b.tabTo("#compare")
	b.keys(kb.Enter)
	b.until("two runs are compared", `location.pathname.endsWith("/compare") && document.querySelectorAll("#legend li").length === 2`)
	b.do(chromedp.Navigate(s.base + "/runs"))
	b.tabTo("#runs tbody a")
	b.keys(kb.Enter)
	b.until("the run", `location.pathname.endsWith("/run")`)
	for _, screen := range []string{"workers", "compare", "cluster", "new", "runs"} {
		b.tabTo(`nav[aria-label=Screens] a[href$="/` + screen + `"]`)
		b.keys(kb.Enter)
		b.until("the screen "+screen, `location.pathname.endsWith("/`+screen+`")`)
	}
	b.size(400, 800, "light")
	b.tabTo("#sort")
	b.keys(kb.ArrowDown)
	b.until("the order of a narrow page", `document.querySelector("#sort").value === "name" && document.querySelector("th[data-key=name]").ariaSort === "ascending"`)
	b.size(1280, 860, "light")
}

// keysOfChart moves the cursor of the first chart in a box, and zooms.
func (b *tab) keysOfChart(box string) {
	b.t.Helper()
	value := `document.querySelector("` + box + ` .chart-value").textContent`
	width := `(() => { const r = document.querySelector("` + box + ` figure").dataset.range.split(" ").map(Number); return r.length === 2 ? r[1] - r[0] : Infinity; })()`
	b.tabTo(box + " .chart-box")
	b.keys(kb.Home)
	b.until("a value", value+` !== ""`)
	at := b.eval(value)
	b.keys(kb.ArrowRight)
	b.until("the next value", fmt.Sprintf(`%s !== %q`, value, at))
	b.keys("+")
	b.until("a part", width+` < Infinity`)
	first := b.eval(width).(float64)
	b.until("all charts of its kind show the part", `[...document.querySelectorAll("`+box+` figure")].every((f, _, all) => f.dataset.range === all[0].dataset.range && f.dataset.range !== "")`)
	b.keys("+")
	b.until("a smaller part", fmt.Sprintf(`%s < %g`, width, first*0.9))
	b.keys(kb.End)
	b.keys("-")
	b.until("a larger part", fmt.Sprintf(`%s > %g`, width, first*0.9))
	b.keys("0")
	b.until("all of it", width+` === Infinity`)
}

// keysOfControls changes the controls above charts.
func (b *tab) keysOfControls(box string, controls ...string) {
	b.t.Helper()
	for _, id := range controls {
		b.tabTo("#" + id)
		value := `document.querySelector("#` + id + `").value + document.querySelector("#` + id + `").checked`
		before := b.eval(value)
		picture := b.eval(drawn(box))
		switch id {
		case "log-scale":
			b.keys(" ")
		case "smooth":
			b.keys(strings.Repeat(kb.ArrowRight, 20))
		default:
			b.keys(kb.ArrowDown)
		}
		b.until(id+" changes", fmt.Sprintf(`%s !== %q`, value, before))
		b.until("the curves change", fmt.Sprintf(`%s !== %v`, drawn(box), picture))
	}
}

func (b *tab) keysOfCompare(s *site, f *fakeSource) {
	b.do(chromedp.Navigate(s.base + "/compare?run=" + f.runs[0].address + "&run=" + f.runs[2].address))
	b.until("two curves", `document.querySelector("#compared figure")?.dataset.lines === "2" && `+drawn("#compared")+` > 500`)
	b.tabTo("#legend input")
	b.keys(" ")
	b.until("a curve less", `document.querySelector("#compared figure").dataset.lines === "1"`)
	b.keys(" ")
	b.until("both", `document.querySelector("#compared figure").dataset.lines === "2"`)
	b.keysOfControls("#compared", "metric", "axis", "smooth", "log-scale")
	b.tabTo("#goal")
	b.keys("0.5")
	b.until("the time to the goal", `[...document.querySelectorAll("[data-goal]")].some((c) => c.textContent !== "–")`)
	b.keysOfChart("#compared")
	b.tabTo(`.scroll[aria-label="Results of the runs"] a`)
	b.keys(kb.Enter)
	b.until("the run", `location.pathname.endsWith("/run")`)
}

func (b *tab) keysOfRun(s *site, f *fakeSource) {
	page := s.base + of("/run", f.runs[2])
	b.do(chromedp.Navigate(page))
	b.until("its curves", drawn("#metrics")+` > 500`)
	dir := b.t.TempDir()
	if _, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: "allow", DownloadPath: dir}); err != nil {
		b.t.Fatal(err)
	}
	b.tabTo("a[download]")
	b.keys(kb.Enter)
	for deadline := time.Now().Add(longEnough); ; time.Sleep(50 * time.Millisecond) {
		if found, _ := filepath.Glob(filepath.Join(dir, "*.zip")); len(found) == 1 {
			if info, err := os.Stat(found[0]); err == nil && info.Size() > 1000 {
				break
			}
		}
		if time.Now().After(deadline) {
			b.t.Fatal("there is no download")
		}
	}
	b.keysOfControls("#metrics", "metric", "axis", "smooth", "log-scale")
	b.tabTo("#metric") // all metrics again
	b.keys(kb.Home)
	b.until("all metrics", `document.querySelectorAll("#metrics figure").length > 3`)
	b.keysOfChart("#metrics")
	b.keysOfChart("#usage-charts")
	b.drag("#usage-charts")
	for _, part := range []string{"charts", "usage", "logs", "events", "drift", "ledger", "configuration"} {
		b.tabTo(`.sections a[href="#` + part + `"]`)
		b.keys(kb.Enter)
		b.until("the part "+part, fmt.Sprintf(`location.hash === "#%s"`, part))
	}
	b.tabTo("#drift-look")
	b.keys(" ")
	b.until("the drift", `document.querySelector("#drift-text").textContent.startsWith("1 object changed")`)
	b.tabTo("#drift-plan")
	b.tabTo("#roles a")
	b.keys(kb.Enter)
	b.until("the role", `location.pathname.endsWith("/worker")`)
	b.do(chromedp.Navigate(page))
	b.tabTo(`.actions a[href*="/compare"]`)
	b.keys(kb.Enter)
	b.until("it is compared", `location.pathname.endsWith("/compare")`)
}

func (b *tab) keysOfLogs(s *site, f *fakeSource) {
	for n := range 700 {
		f.runs[2].say("worker-1", "stderr", fmt.Sprintf("old line %d", n))
	}
	b.do(chromedp.Navigate(s.base + of("/run", f.runs[2])))
	lines := `document.querySelectorAll("#log .line").length`
	b.until("the log", lines+` >= 500`)
	b.tabTo("#log-role")
	b.keys("w") // the first role with this letter
	b.until("one role", `document.querySelector("#log-role").value.startsWith("worker-") && [...document.querySelectorAll("#log .who")].every((w) => w.textContent.startsWith("worker-"))`)
	b.keys(kb.Home)
	b.until("all roles", lines+` >= 500`)
	b.tabTo("#log-stream")
	b.keys(kb.ArrowDown + kb.ArrowDown)
	b.until("one stream", `document.querySelector("#log-stream").value === "stderr" && `+lines+` > 0 && [...document.querySelectorAll("#log .line")].every((l) => l.matches(".stderr"))`)
	b.keys(kb.Home)
	b.until("both streams", `document.querySelector("#log-stream").value === "" && `+lines+` >= 500`)
	b.tabTo("#log-follow")
	b.keys(" ")
	b.until("it does not follow", `!document.querySelector("#log-follow").checked`)
	b.keys(" ")
	b.until("it follows", `(() => { const l = document.querySelector("#log"); return document.querySelector("#log-follow").checked && l.scrollTop + l.clientHeight > l.scrollHeight - 30; })()`)
	b.tabTo("#log")
	b.keys(kb.PageUp)
	b.until("the log is scrolled, and stays so", `(() => { const l = document.querySelector("#log"); return !document.querySelector("#log-follow").checked && l.scrollTop + l.clientHeight < l.scrollHeight - 100; })()`)
	b.tabTo("#log-more")
	b.keys(kb.Enter)
	b.until("more lines", lines+` > 700`)
	b.tabTo("#log-search")
	b.keys("old line 69")
	b.until("the search finds", lines+` === 11 && document.querySelectorAll("#log mark").length === 11`)
	b.tabTo("#log-text")
	b.keys(kb.Enter)
	b.until("the text", `location.pathname.endsWith("/logs.txt") && document.body.innerText.includes("old line 690")`)
}

func (b *tab) keysOfWorkers(s *site, f *fakeSource) {
	b.do(chromedp.Navigate(s.base + "/workers"))
	b.tabTo("#filter")
	b.keys("worker-7")
	b.until("the filter", `[...document.querySelectorAll(".card")].filter((c) => !c.hidden).length === 1`)
	b.tabTo(".card h2 a")
	b.keys(kb.Enter)
	b.until("the role", `location.pathname.endsWith("/worker") && `+drawn("#metrics")+` > 300`)
	b.keysOfControls("#metrics", "metric", "smooth")
	b.keysOfChart("#metrics")
	b.tabTo(`main a[href$="#logs"]`)
	b.keys(kb.Enter)
	b.until("the logs of the run", `location.pathname.endsWith("/run") && location.hash === "#logs"`)
	b.do(chromedp.Navigate(s.base + "/workers"))
	b.tabTo(".card-where a")
	b.keys(kb.Enter)
	b.until("the run", `location.pathname.endsWith("/run")`)
	b.do(chromedp.Navigate(s.base + "/workers"))
	b.tabTo("summary")
	b.keys(kb.Enter)
	b.until("ended runs", `document.querySelector("details").open`)
	b.tabTo("details a")
	b.keys(kb.Enter)
	b.until("the workers of an ended run", `new URLSearchParams(location.search).has("run")`)
}

func (b *tab) keysOfCluster(s *site, f *fakeSource) {
	b.do(chromedp.Navigate(s.base + "/cluster"))
	b.until("nodes", `document.querySelectorAll(".place tbody tr").length > 5`)
	b.tabTo(".place .scroll")
	b.tabTo(".users a")
	b.keys(kb.Enter)
	b.until("the run", `location.pathname.endsWith("/run")`)
}

// keysOfNew fills in the form, and saves, plans, copies, applies and stops.
func (b *tab) keysOfNew(s *site, f *fakeSource) {
	b.do(chromedp.Navigate(s.base + "/new"))
	names := b.eval(`[...document.querySelectorAll("#new-run [name]:not(button)")].map((c) => c.name).join(" ")`).(string)
	for _, field := range strings.Fields(names) {
		b.tabTo("#new-run [name=" + field + "]")
		value := `document.querySelector("#new-run [name=` + field + `]").value`
		before := b.eval(value)
		switch field {
		case "kind", "optimizer", "strategy":
			b.keys(kb.ArrowDown)
			b.until("another choice", fmt.Sprintf(`%s !== %q`, value, before))
			b.keys(kb.ArrowUp)
		case "label":
			b.keys("typed")
			b.until("the text", fmt.Sprintf(`%s === "typed"`, value))
		case "model", "dataset", "learning_rate", "batch_size", "epochs", "replicas": // these may have texts
		default:
			b.keys("1")
			b.until("the text of "+field, value+`.endsWith("1")`)
			b.keys(kb.Backspace)
		}
	}
	b.tabTo("button[value=write]")
	b.keys(kb.Enter)
	b.until("the configuration", `document.querySelector("#hcl")?.textContent.includes('"train_experiment" "typed"')`)
	b.tabTo("#copy")
	b.keys(kb.Enter)
	b.until("it is copied, or the browser says no", `document.querySelector("#copied").textContent !== ""`)
	b.tabTo("button[value=save]")
	b.keys(" ")
	b.until("it is saved", `document.querySelector(".message")?.textContent.includes("Saved as")`)
	b.tabTo("button[value=plan]")
	b.keys(kb.Enter)
	b.until("the plan", `document.querySelector("#plan") && document.querySelector("#apply")`)
	b.tabTo("#apply")
	b.keys(kb.Enter)
	b.until("the apply", `location.pathname.endsWith("/apply") && document.querySelector("#phase")?.textContent === "applying"`)
	for _, phase := range []string{"stopping", "stopped"} {
		b.tabTo("#stop")
		b.keys(" ")
		b.until(phase, fmt.Sprintf(`document.querySelector("#phase")?.textContent === %q`, phase))
	}
	b.tabTo(`.actions a`)
	b.keys(kb.Enter)
	b.until("the run of the apply", `location.pathname.endsWith("/run")`)
	b.mu.Lock()
	b.faults = nil // the run is not there: nothing was applied
	b.mu.Unlock()
}

// drag selects a part of the first chart in a box with the mouse, and shows all of it again.
func (b *tab) drag(box string) {
	b.t.Helper()
	b.eval(`document.querySelector("` + box + `").scrollIntoView({ block: "center" })`)
	place := b.eval(`(() => { const r = document.querySelector("` + box + ` .u-over").getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()`).([]any)
	left, y, width := place[0].(float64), place[1].(float64)+place[3].(float64)/2, place[2].(float64)
	from, to := left+width/4, left+width/2
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, from, y), chromedp.MouseEvent(chromedp.MousePressed, from, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	for x := from; x < to; x += width / 20 {
		b.do(chromedp.MouseEvent(chromedp.MouseMoved, x, y, chromedp.ButtonLeft))
	}
	b.do(chromedp.MouseEvent(chromedp.MouseReleased, to, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	figures := `[...document.querySelectorAll("` + box + ` figure")]`
	b.until("the part", figures+`.every((f, _, all) => f.dataset.range !== "" && f.dataset.range === all[0].dataset.range)`)
	b.do(chromedp.Sleep(600*time.Millisecond), chromedp.MouseClickXY((from+to)/2, y, chromedp.ClickCount(1)), chromedp.MouseClickXY((from+to)/2, y, chromedp.ClickCount(2)))
	b.until("all of it", figures+`.every((f) => f.dataset.range === "")`)
}
