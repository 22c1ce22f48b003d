//go:build e2e

package dashboard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/stokehq/stoke/providers"
)

// slowApply prints lines until it is stopped twice.
func slowApply(ctx context.Context, file string, stop <-chan struct{}, line func(string)) error {
	line("Saved " + file + ".")
	line("")
	line("train_experiment.mine: Creating...")
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-stop:
			line("Interrupt received.")
			<-ctx.Done()
			return errors.New("the apply was interrupted")
		case <-tick.C:
			line(fmt.Sprintf("train_experiment.mine: Still creating... [%ds elapsed] epoch %d of 5, %d %%", n, 1+n/10, n))
		}
	}
}

// apply applies a plan by the keyboard, and stops it.
func (b *tab) apply(s *site) {
	b.do(chromedp.Navigate(s.base + "/new"))
	b.set("input[name=label]", "mine")
	b.do(chromedp.Click(`button[value=plan]`))
	b.until("the question has the totals", `document.querySelector("#totals")?.textContent.includes("1 to add, 2 to change, 3 to destroy")`)
	b.eval(`document.querySelector("#apply").focus()`)
	b.picture("question-light")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("the page of the apply", `location.pathname.endsWith("/apply") && document.querySelector("#phase")?.textContent === "applying"`)
	b.until("its output goes on", `document.querySelector("#output")?.textContent.split("Still creating").length > 4`)
	b.picture("apply-light")
	b.axe("apply")
	b.do(chromedp.Click("#stop"))
	b.until("it is stopped once", `document.querySelector("#phase")?.textContent === "stopping" && document.querySelector("#stop")?.textContent === "Stop at once"`)
	b.until("its output says so", `document.querySelector("#output")?.textContent.includes("Interrupt received.")`)
	b.do(chromedp.Click("#stop"))
	b.until("it is stopped", `document.querySelector("#phase")?.textContent === "stopped" && document.querySelector("#stop").hidden && document.querySelector("#message").textContent.includes("interrupted")`)
	b.sound("apply")
}

// cluster waits for a change of a node, with the focus on the table.
func (b *tab) cluster(s *site, f *fakeSource) {
	b.do(chromedp.Navigate(s.base + "/cluster"))
	b.until("the page is live", `document.querySelector("#connection").dataset.state === "live" && document.querySelectorAll(".place tbody tr").length > 5`)
	b.eval(`document.querySelector(".place .scroll").focus()`)
	for _, r := range f.runs {
		r.survey = func() providers.RunSurvey {
			is := clusterOf(f.runs)
			is.Nodes[0].Tenants = append(is.Nodes[0].Tenants, providers.RunTenant{Name: "other/new", CPU: 7})
			return is
		}
	}
	b.until("a new pod is counted", `document.querySelector(".place tbody").textContent.includes("1 other pod: CPU 7")`)
	b.until("the focus is where it was", `document.activeElement.matches(".place .scroll")`)
	b.sound("cluster")
}

func (b *tab) drift(s *site, f *fakeSource, live *fakeRun) {
	f.mu.Lock()
	f.drift = Drift{Objects: 1, Text: "  # train_dataset.cifar10 has changed\n  ~ train = 50000 -> 49000"}
	f.mu.Unlock()
	b.do(chromedp.Navigate(s.base + of("/run", live)))
	b.until("the page is live", `document.querySelector("#connection").dataset.state === "live"`)
	b.eval(`document.querySelector("#drift-look").focus()`) // curves that are drawn above move the button
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("the drift is shown", `document.querySelector("#drift-text").textContent.startsWith("1 object changed") && document.querySelector("#drift-plan").textContent.includes("49000")`)
	b.eval(`document.getElementById("drift").scrollIntoView()`)
	for _, scheme := range []string{"light", "dark"} {
		b.size(1280, 860, scheme)
		b.picture("drift-" + scheme)
		b.axe("drift, " + scheme)
		b.size(400, 800, scheme)
		b.fits("drift, narrow, " + scheme)
		b.axe("drift, narrow, " + scheme)
	}
	b.size(1280, 860, "light")
	b.sound("drift")
}
