//go:build e2e

package dashboard

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
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

// realTraining is a run of this machine that goes on until the test ends it.
const realTraining = `
provider "train" {
  runs_dir     = "runs"
  datasets_dir = "datasets"
}

resource "train_dataset" "digits" {
  name   = "digits"
  format = "synthetic-digits"
  train  = 2000
  test   = 500
}

resource "train_experiment" "short" {
  model   = "mlp"
  dataset = train_dataset.digits.uri

  hyperparameters = {
    learning_rate = 0.01
    batch_size    = 64
    epochs        = 3
  }

  worker {
    replicas = 1
  }

  evaluation {
    every_steps = 20
  }
}

resource "train_experiment" "digits" {
  model   = "mlp"
  dataset = train_dataset.digits.uri

  hyperparameters = {
    learning_rate = 0.05
    batch_size    = 64
    epochs        = 100000
  }

  worker {
    replicas = 2
  }

  evaluation {
    every_steps = 20
  }
}
`

// TestBrowserRealRun shows a real run of this machine, which an apply trains, in a real
// browser.
func TestBrowserRealRun(t *testing.T) {
	b := browse(t)
	dir := t.TempDir()
	stoke := programtest.Path(t, "stoke")
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(realTraining), 0o644); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(stoke, append([]string{"-chdir=" + dir}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+dir, "STOKE_USAGE_INTERVAL=200ms")
		return cmd
	}
	var said bytes.Buffer
	apply := command("apply", "-auto-approve", "-no-color")
	apply.Stdout, apply.Stderr = &said, &said
	if err := apply.Start(); err != nil {
		t.Fatal(err)
	}
	applied := make(chan error, 1)
	go func() { applied <- apply.Wait() }()
	t.Cleanup(func() {
		apply.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		<-applied
		if out, err := command("destroy", "-auto-approve", "-no-color").CombinedOutput(); err != nil {
			t.Errorf("destroy: %v\n%s", err, out)
		}
	})

	for deadline := time.Now().Add(longEnough); ; time.Sleep(200 * time.Millisecond) { // the runs are in the journal soon
		long, err := command("status", "train_experiment.digits").Output()
		short, err2 := command("status", "train_experiment.short").Output()
		if err == nil && err2 == nil && bytes.Contains(long, []byte("running")) && bytes.Contains(short, []byte("succeeded")) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the runs do not begin: %s", said.String())
		}
	}
	at, stop := showReal(t, command("dashboard", "-no-browser"))
	base, _, _ := strings.Cut(at, "/login")
	b.do(chromedp.Navigate(at))
	b.until("the run is listed", `document.querySelectorAll("#runs tbody tr").length === 2 && [...document.querySelectorAll("#runs .phase")].map((p) => p.textContent).sort().join() === "running,succeeded"`)
	b.until("it learns", `[...document.querySelectorAll("#runs td[data-live=accuracy]")].every((c) => Number(c.textContent) > 0.2)`)
	b.picture("real-runs")
	b.do(chromedp.Navigate(base + "/run?run=train_experiment.digits"))
	b.until("curves are drawn", drawn("#metrics")+` > 300`)
	count := `Number(document.querySelector("#metrics figure").dataset.points)`
	before := b.eval(count)
	b.until("they grow", count+` !== `+number(before.(float64)))
	b.until("usage is drawn", `document.querySelectorAll("#usage-charts canvas").length >= 2`)
	b.until("the log streams", `document.querySelectorAll("#log .line").length > 10`)
	b.do(chromedp.SendKeys("#log-search", "evaluated"))
	b.until("the search finds", `document.querySelectorAll("#log mark").length > 0 && [...document.querySelectorAll("#log .line")].every(l => l.textContent.includes("evaluated"))`)
	b.picture("real-run")
	b.do(chromedp.Navigate(base + "/workers"))
	b.until("cards move", `[...document.querySelectorAll(".card svg .stroke")].filter(p => (p.getAttribute("d") ?? "").length > 30).length >= 6`)
	b.picture("real-workers")
	b.do(chromedp.Navigate(base + "/worker?role=worker-1&run=train_experiment.digits"))
	b.until("the curves of a worker", `document.querySelectorAll("#metrics canvas").length >= 6 && `+drawn("#metrics")+` > 300`)
	b.do(chromedp.Navigate(base + "/cluster"))
	b.until("this machine and its runs", `document.querySelectorAll(".place tbody tr").length === 1 && document.querySelector(".place .users").textContent.includes("digits")`)
	b.do(chromedp.Navigate(base + "/compare?run=train_experiment.digits&run=train_experiment.short"))
	b.until("two runs are drawn", `document.querySelector("#compared figure")?.dataset.lines === "2" && `+drawn("#compared")+` > 500`)
	b.until("the arguments that differ", `document.querySelector("main").textContent.includes("learning_rate")`)
	b.picture("real-compare")
	b.do(chromedp.Navigate(base + "/run?run=train_experiment.short"))
	b.until("its curves", drawn("#metrics")+` > 300`)
	b.eval(`document.querySelector("#drift-look").focus()`) // curves that are drawn above move the button
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("the objects are as they were", `document.querySelector("#drift-text").textContent.startsWith("No drift: ")`)
	b.download(base, command)
	b.do(chromedp.Navigate(base + "/new"))
	b.set("input[name=label]", "second")
	b.do(chromedp.Click(`button[value=plan]`))
	b.until("the configuration plans as it is", `document.querySelector("#plan")?.textContent.includes("train_experiment.second will be created")`)
	if err := os.WriteFile(filepath.Join(dir, "second_experiment.tf"), []byte(b.eval(`document.querySelector("#hcl").textContent`).(string)), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := command("plan", "-lock=false", "-no-color").CombinedOutput()
	if err != nil || !bytes.Contains(text, []byte("train_experiment.second will be created")) {
		t.Errorf("the form's configuration does not plan: %v: %s", err, text)
	}
	b.set("input[name=label]", "third")
	b.set("input[name=dataset]", "train_dataset.none.uri")
	b.do(chromedp.Click(`button[value=write]`))
	b.until("a mistake is found", `document.querySelector(".problems")?.textContent.includes("train_dataset")`)
	b.sound("real run")
	b.restart(base, stop, command)
}

// download opens the download of the run that the page shows: it holds what the page shows.
func (b *tab) download(base string, command func(...string) *exec.Cmd) {
	b.t.Helper()
	step := b.eval(`document.querySelector("[data-live=step]").textContent`)
	accuracy := b.eval(`[...document.querySelectorAll("#configuration *")].find((e) => e.children.length === 0 && e.textContent === "accuracy").nextElementSibling.textContent`)
	text := b.eval(`fetch(document.querySelector("a[download]").href).then((a) => a.arrayBuffer()).then((x) => { let s = ""; for (const c of new Uint8Array(x)) s += String.fromCharCode(c); return btoa(s); })`,
		chromedp.EvalAwaitPromise)
	data, err := base64.StdEncoding.DecodeString(text.(string))
	if err != nil {
		b.t.Fatal(err)
	}
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		b.t.Fatal(err)
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
		b.t.Fatal(err)
	}
	if integer(status.Step) != step || number(status.Metrics["accuracy"]) != accuracy {
		b.t.Errorf("the page has step %v and accuracy %v, the download %+v", step, accuracy, status)
	}
	lines, err := files.Open("metrics.jsonl")
	if err != nil {
		b.t.Fatal(err)
	}
	got, err := io.ReadAll(lines)
	if err != nil {
		b.t.Fatal(err)
	}
	want, err := command("metrics", "-json", "train_experiment.short").Output()
	if err != nil || bytes.Count(got, []byte{'\n'}) != bytes.Count(want, []byte{'\n'}) {
		b.t.Errorf("%v: the download has %d events, the command %d", err, bytes.Count(got, []byte{'\n'}), bytes.Count(want, []byte{'\n'}))
	}
}

// restart ends the dashboard and starts it again on its port: the open page goes on once
// the new link is opened.
func (b *tab) restart(base string, stop func(), command func(...string) *exec.Cmd) {
	b.t.Helper()
	b.do(chromedp.Navigate(base + "/run?run=train_experiment.digits"))
	b.until("the page is live", `document.querySelector("#connection").dataset.state === "live"`)
	stop()
	b.until("the page notices", `document.querySelector("#connection").dataset.state === "lost"`)
	address, err := url.Parse(base)
	if err != nil {
		b.t.Fatal(err)
	}
	at, _ := showReal(b.t, command("dashboard", "-no-browser", "-port", address.Port()))
	b.until("the page says to open the new link", `document.querySelector("#connection").textContent.includes("Open the new link")`)
	other, end := chromedp.NewContext(b.ctx)
	defer end()
	if err := chromedp.Do(other, chromedp.Navigate(at)); err != nil {
		b.t.Fatal(err)
	}
	b.until("the old page goes on", `document.querySelector("#connection").dataset.state === "live" && location.href.includes("train_experiment.digits") && `+drawn("#metrics")+` > 300`)
	if now, _, _ := strings.Cut(at, "/login"); now == base {
		b.t.Error("the folder is the same after a restart")
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
