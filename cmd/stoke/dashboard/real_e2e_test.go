//go:build e2e

package dashboard

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

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

	link := make(chan string, 1)
	show := command("dashboard", "-no-browser")
	out, err := show.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(longEnough); ; time.Sleep(200 * time.Millisecond) { // the run is in the journal soon
		if text, err := command("status", "train_experiment.digits").Output(); err == nil && bytes.Contains(text, []byte("running")) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run does not begin: %s", said.String())
		}
	}
	if err := show.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if at := regexp.MustCompile(`http://\S+`).FindString(lines.Text()); at != "" {
				link <- at
			}
		}
	}()
	shown := make(chan error, 1)
	go func() { shown <- show.Wait() }()
	t.Cleanup(func() {
		show.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		if err := <-shown; err != nil {
			t.Errorf("the dashboard ends with %v", err)
		}
	})
	var at string
	select {
	case at = <-link:
	case err := <-shown:
		shown <- err
		t.Fatalf("the dashboard ends with %v", err)
	}
	base, _, _ := strings.Cut(at, "/login")
	b.do(chromedp.Navigate(at))
	b.until("the run is listed", `document.querySelectorAll("#runs tbody tr").length === 1 && document.querySelector("#runs .phase").textContent === "running"`)
	b.until("it learns", `Number(document.querySelector("#runs td[data-live=accuracy]").textContent) > 0.2`)
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
	b.do(chromedp.Navigate(base + "/new"))
	b.set("input[name=label]", "second")
	b.do(chromedp.Click(`button[value=write]`))
	b.until("the configuration is valid", `document.querySelector(".form section .message")?.textContent.includes("Valid together")`)
	b.set("input[name=dataset]", "train_dataset.none.uri")
	b.do(chromedp.Click(`button[value=write]`))
	b.until("a mistake is found", `document.querySelector(".problems")?.textContent.includes("train_dataset")`)
	b.sound("real run")
}
