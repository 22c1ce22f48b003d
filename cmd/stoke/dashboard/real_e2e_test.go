//go:build e2e

package dashboard

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// realTraining has four runs of this machine that end soon, and one that goes on until the
// test ends it.
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
    epochs        = 5
  }

  worker {
    replicas = 1
  }

  evaluation {
    every_steps = 5
  }
}

resource "train_experiment" "sweep" {
  for_each = { slow = 0.001, fast = 0.05, momentum = 0.01 }
  model    = "mlp"
  dataset  = train_dataset.digits.uri

  hyperparameters = {
    learning_rate = each.value
    momentum      = each.key == "momentum" ? 0.9 : 0
    batch_size    = 64
    epochs        = 5
  }

  worker {
    replicas = 1
  }

  evaluation {
    every_steps = 5
  }
}

resource "train_experiment" "digits" {
  model   = "mlp"
  dataset = train_dataset.digits.uri

  hyperparameters = {
    learning_rate = 0.01
    batch_size    = 192
    epochs        = EPOCHS
  }

  parameter_server {
    replicas = 1
  }

  worker {
    replicas = 3
  }

  evaluation {
    every_steps = 20
  }

  checkpoint {
    every_steps = 200
  }
}
`

// TestBrowserRealRun shows real runs of this machine, which an apply trains, in a real
// browser. With -pictures it makes those of the documentation, except those of pods.
func TestBrowserRealRun(t *testing.T) {
	epochs := "100000"
	if *pictures != "" {
		epochs = "1500" // a bar that is not empty
	}
	l := newLab(t, strings.Replace(realTraining, "EPOCHS", epochs, 1))
	b := l.b
	l.apply()
	l.await("train_experiment.digits", "running")
	for _, ended := range []string{"short", `sweep["slow"]`, `sweep["fast"]`, `sweep["momentum"]`} {
		l.await("train_experiment."+ended, "succeeded")
	}
	l.open()
	if *pictures != "" {
		b.until("half of the run", `[...document.querySelectorAll("#runs progress")].some((p) => p.value > 30 && p.value < 90)`)
	}
	b.until("the runs are listed", `[...document.querySelectorAll("#runs .phase")].map((p) => p.textContent).sort().join() === "running,succeeded,succeeded,succeeded,succeeded"`)
	b.until("they have learnt", `[...document.querySelectorAll("#runs td[data-live=accuracy]")].every((c) => Number(c.textContent) > 0.1)`)
	b.picture("dashboard-runs")
	l.run("train_experiment.digits", func() { b.picture("dashboard-run") })
	l.workers(5)
	l.worker("train_experiment.digits", "worker-1")
	b.do(chromedp.Navigate(l.base + "/cluster"))
	b.until("this machine and its runs", `document.querySelectorAll(".place tbody tr").length === 1 && document.querySelector(".place .users").textContent.includes("digits")`)
	l.compared("train_experiment.short", `train_experiment.sweep["fast"]`, `train_experiment.sweep["momentum"]`, `train_experiment.sweep["slow"]`)
	b.picture("dashboard-compare")
	l.drift("train_experiment.short")
	l.download("train_experiment.short")
	b.size(1280, 860, "dark")
	b.do(chromedp.Navigate(l.base + "/run?run=train_experiment.digits"))
	b.until("its curves", drawn("#metrics")+` > 300`)
	b.picture("dashboard-dark")
	b.size(1280, 860, "light")
	l.form()
	b.sound("real run")
	l.restart("train_experiment.digits")
}

// form plans what the form writes, with the command, too, and makes a mistake in it.
func (l *lab) form() {
	l.t.Helper()
	b := l.b
	b.do(chromedp.Navigate(l.base + "/new"))
	b.set("input[name=label]", "second")
	b.do(chromedp.Click(`button[value=plan]`))
	b.until("the configuration plans as it is", `document.querySelector("#plan")?.textContent.includes("train_experiment.second will be created")`)
	if err := os.WriteFile(filepath.Join(l.dir, "second_experiment.tf"), []byte(b.eval(`document.querySelector("#hcl").textContent`).(string)), 0o644); err != nil {
		l.t.Fatal(err)
	}
	text, err := l.command("plan", "-lock=false", "-no-color").CombinedOutput()
	if err != nil || !bytes.Contains(text, []byte("train_experiment.second will be created")) {
		l.t.Errorf("the form's configuration does not plan: %v: %s", err, text)
	}
	b.set("input[name=label]", "third")
	b.set("input[name=dataset]", "train_dataset.none.uri")
	b.do(chromedp.Click(`button[value=write]`))
	b.until("a mistake is found", `document.querySelector(".problems")?.textContent.includes("train_dataset")`)
}
