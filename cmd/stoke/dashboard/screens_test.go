package dashboard

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/stokehq/stoke/providers"
)

// TestAssets checks that the embedded scripts were built from these sources. web/build.mjs
// computes the same hash.
func TestAssets(t *testing.T) {
	names, err := filepath.Glob("web/src/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"build.mjs", "package-lock.json", "package.json", "tsconfig.json"} {
		names = append(names, "web/"+name)
	}
	slices.Sort(names)
	hash := sha256.New()
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(hash, "%s\x00%s\x00", strings.TrimPrefix(name, "web/"), text)
	}
	noted, err := fs.ReadFile(assets, "assets/sources.sha256")
	if want := hex.EncodeToString(hash.Sum(nil)) + "\n"; err != nil || string(noted) != want {
		t.Errorf("assets were built from other sources (%v): run make dashboard", err)
	}
	for name, want := range map[string]string{"app.js": "EventSource", "app.css": ".uplot", "icon.svg": "<svg", "uplot-LICENSE.txt": "Leon Sorokin"} {
		if text, err := fs.ReadFile(assets, "assets/"+name); err != nil || !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s does not have %q: %v", name, want, err)
		}
	}
}

func TestScreens(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	for path, wants := range map[string][]string{
		"/runs":                                {"resnet20[&#34;w4&#34;]", "2 succeeded", "3 running", "1 failed or lost", "0.93", "30m 00s", "4 / 4"},
		of("/run", f.runs[2]):                  {"learning_rate", "1.2", "62 %", "step 1\u202f000", "worker-3", "node-1", "checkpoint", "414 MiB", "joined"},
		of("/run", f.runs[4]):                  {"ran out of memory"},
		"/workers":                             {"worker-7", "node-2", "MiB/s", "Workers of ended runs"},
		of("/workers", f.runs[0]):              {"ended"},
		of("/worker?role=worker-0", f.runs[2]): {"worker-0", "Disk written"},
		of("/compare", f.runs[0]) + "&run=" + url.QueryEscape(f.runs[3].address): {"hyperparameters.learning_rate", "0.4", "2.4", "worker.replicas"},
		"/cluster": {"node-3", "NVIDIA-H100", "cordoned", "1 other pod: CPU 4, 16.0 GiB, 1 GPU", "Insufficient nvidia.com/gpu", "17 of 40", "transformer · default/run-transformer-worker-3"},
		"/new":     {"Write configuration"},
	} {
		body := s.get(path)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not have %q", path, want)
			}
		}
	}
	if body := s.get(of("/compare", f.runs[0]) + "&run=" + url.QueryEscape(f.runs[1].address)); strings.Contains(body, "batch_size") {
		t.Error("compare lists an argument that does not differ")
	}
	for _, path := range []string{"/run?run=train_experiment.none", "/run", of("/worker?role=none", f.runs[0]), "/elsewhere"} {
		if answer, err := s.client.Get(s.base + path); err != nil || answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %v, %v", path, answer, err)
		}
	}
}

// hostile are texts that no page may take for markup.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`, `</td></tr></table><script>`,
	`<svg/onload=alert(1)>`, `{{.}}`, "${alert(1)}", "\x1b[31mred\x1b[0m\x1b]0;title\x07", "\x9b31m", "\x00\x01\x7f", "\xff\xfe\xc3", "\u202Egnp.exe", "\u2028\u2029",
	"line\nbreak\r\nevent: status\ndata: {}\n\n", `</title><script>alert(1)</script>`, `<!--`, `--><script>`, `&lt;script&gt;`, `%3Cscript%3E`, `\u003cscript\u003e`,
	`<a href="data:text/html,x">`, `<style>*{display:none}</style>`, `<base href="//evil.example">`, `<meta http-equiv=refresh content=0>`,
	"`", `\`, `"`, `'`, strings.Repeat("<b>", 1<<18),
}

func hostileRuns() *fakeSource {
	f := &fakeSource{saved: make(map[string]string)}
	for i, text := range hostile {
		r := newRun("x", 1, 0.1)
		r.address = fmt.Sprintf("train_experiment.x[%q]%d%s", "k", i, text)
		r.status.Run = "run-" + text
		r.status.Phase, r.status.Message, r.status.Progress = text, text, text
		r.status.Metrics = map[string]float64{text: 1, "accuracy": 0.5}
		r.status.Roles[2].Name, r.status.Roles[2].Phase, r.status.Roles[2].Node, r.status.Roles[2].Reason = text, text, text, text
		r.configuration = map[string]string{"model": text, text: text, "hyperparameters." + text: text, "list[0]": text, "worker." + text: "1"}
		for n := range 3 {
			r.add(providers.RunEvent{Time: began, Type: "update", Step: int64(n), Values: map[string]float64{text: 1, "loss": 0.5}})
		}
		r.add(providers.RunEvent{Time: began, Type: text, Step: 4, Message: text, Values: map[string]float64{text: 2}})
		r.add(providers.RunEvent{Time: began, Type: "checkpoint", Step: 4, Message: text})
		r.say(text, text, text)
		r.ledger = &providers.RunLedger{Records: 10, Step: 4, Parts: []providers.RunEpoch{{Epoch: 0, Committed: 5, Ranges: 1}}}
		r.status.Where, r.survey = text, func() providers.RunSurvey {
			node := providers.RunNode{Name: text, Phase: "ready", GPUModel: text, CPU: 1, Tenants: []providers.RunTenant{{Name: text, Run: "run-" + text, CPU: 1}, {Name: text + "/other"}},
				Holders: []providers.RunHolder{{GPU: text, By: text}}}
			return providers.RunSurvey{Place: text, ID: text, IsHere: true, Partly: text, Nodes: []providers.RunNode{node}, Pending: []providers.RunTenant{{Name: text, Reason: text}}}
		}
		r.say("worker-0", "stdout", "before"+text+strings.Repeat("y", 1<<20)+"after")
		f.runs = append(f.runs, r)
	}
	return f
}

// The secret folder is before all paths.
var (
	ours      = regexp.MustCompile(`^(/[0-9a-f]{32}/|#)`)
	ourAssets = regexp.MustCompile(`^/[0-9a-f]{32}/assets/[a-z.]+$`)
)

// checkPage checks that a page has only elements and attributes of the templates.
func checkPage(t *testing.T, path, body string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script", "link", "img":
			for _, a := range n.Attr {
				if (a.Key == "src" || a.Key == "href") && !ourAssets.MatchString(a.Val) {
					t.Errorf("%s: %s of %.80q", path, n.Data, a.Val)
				}
			}
			if n.Data == "script" && n.FirstChild != nil {
				t.Errorf("%s has a script within: %.80q", path, n.FirstChild.Data)
			}
		case "a", "form":
			for _, a := range n.Attr {
				if (a.Key == "href" || a.Key == "action") && !ours.MatchString(a.Val) {
					t.Errorf("%s: %s to %.80q", path, n.Data, a.Val)
				}
			}
		case "svg", "style", "base", "iframe", "object", "embed", "b":
			t.Errorf("%s has an element %s", path, n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "http-equiv" {
				t.Errorf("%s: %s has the attribute %s=%.80q", path, n.Data, a.Key, a.Val)
			}
			if a.Key == "href" && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("%s links to %.80q", path, a.Val)
			}
		}
	}
}

// isPlain reports whether a text has no characters that a page must not have.
func isPlain(text string) bool {
	return !strings.ContainsAny(text, "\x00\x01\x07\x1b\x7f\u009b\u202E") && strings.ToValidUTF8(text, "") == text
}

func TestHostileTexts(t *testing.T) {
	f := hostileRuns()
	s := open(t, f)
	for i, run := range f.runs {
		paths := []string{of("/run", run), of("/workers", run), of("/worker?role="+url.QueryEscape(name(hostile[i])), run), of("/compare", run), of("/worker?role=none", run)}
		if i == 0 {
			paths = append(paths, "/runs", "/workers", "/cluster")
		}
		for _, path := range paths {
			answer, err := s.client.Get(s.base + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode >= 500 {
				t.Fatalf("%.100s: %s, %v", path, answer.Status, err)
			}
			checkPage(t, path[:min(80, len(path))], string(body))
			if !isPlain(string(body)) && !strings.HasPrefix(path, "/runs") {
				for line := range strings.Lines(string(body)) {
					if !isPlain(line) {
						t.Errorf("%.80s: %.200q", path, line)
						break
					}
				}
			}
			if len(body) > 8<<20 {
				t.Errorf("%.80s has %d bytes", path, len(body))
			}
		}
		f.mu.Lock()
		f.drift, f.undrifted = Drift{Objects: 1, Text: hostile[i]}, errors.New(hostile[i])
		f.mu.Unlock()
		for _, path := range []string{"/data/ledger", "/data/drift"} {
			if body := s.get(of(path, run)); !isPlain(body) || !json.Valid([]byte(body)) || strings.Contains(body, "<") || len(body) > 4<<20 {
				t.Errorf("%s of %.20q: %.300q", path, hostile[i], body)
			}
		}
		text := s.get(of("/logs.txt?role=worker-0", run))
		if !isPlain(text) || strings.Contains(text, "after") || len(text) > 1<<20+1000 {
			t.Errorf("%.20q: the log as text is %.100q", hostile[i], text)
		}
	}
}

// messages reads server-sent events until one satisfies want.
func messages(t *testing.T, s *site, path string, want func(event, data string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("%s is %s, %s", path, kind, answer.Status)
	}
	lines := bufio.NewReaderSize(answer.Body, 4<<20)
	event := ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s ends with %v", path, err)
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "event: "):
			event = line[7:]
		case strings.HasPrefix(line, "data: "):
			if !isPlain(line) {
				t.Errorf("%s sends %.200q", path, line)
			}
			if want(event, line[6:]) {
				return
			}
		case line == "", line == ": ", strings.HasPrefix(line, "retry: "):
		default:
			t.Errorf("%s sends a line %.100q", path, line)
		}
	}
}

func TestLiveRun(t *testing.T) {
	f := someRuns()
	run := f.runs[2]
	s := open(t, f)
	isFirst, back := true, false
	messages(t, s, of("/live/run", run), func(event, data string) bool {
		if event == "status" && isFirst {
			isFirst = false
			if !strings.Contains(data, `"step":"1 240"`) || !strings.Contains(data, `"name":"worker-3"`) {
				t.Errorf("status is %s", data)
			}
			run.train(1240, 1250)
			run.add(providers.RunEvent{Time: began.Add(time.Hour), Type: "restore", Step: 1245, Message: "of a checkpoint"})
			run.add(providers.RunEvent{Time: began.Add(time.Hour), Type: "update", Step: 1246, Values: map[string]float64{"loss": 0.123456}})
		}
		back = back || event == "back"
		return event == "points" && strings.Contains(data, "0.123456")
	})
	if !back {
		t.Error("the browser does not hear that the run went back")
	}
	messages(t, s, of("/live/run", run), func(event, data string) bool {
		if event == "status" && !strings.Contains(data, "succeeded") {
			run.end("succeeded")
		}
		return event == "status" && strings.Contains(data, `"phase":"succeeded"`)
	})
}

func TestLiveRuns(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	n := 0
	messages(t, s, "/live/runs", func(event, data string) bool {
		if n++; n == 1 {
			if strings.Count(data, `"address"`) != len(f.runs) {
				t.Errorf("%d runs: %.300s", len(f.runs), data)
			}
			f.runs[3].end("failed")
		}
		return event == "runs" && strings.Contains(data, `"phase":"failed"`) && n > 1
	})
	messages(t, s, "/live/workers", func(event, data string) bool {
		return event == "roles" && strings.Contains(data, `"name":"worker-3"`) && strings.Contains(data, "MiB/s")
	})
}

func TestLiveLogs(t *testing.T) {
	f := someRuns()
	run := f.runs[2]
	for n := range 30_000 {
		run.say("worker-0", "stdout", fmt.Sprintf("line %d", n))
	}
	s := open(t, f)
	said := false
	messages(t, s, of("/live/logs?lines=700", run), func(event, data string) bool {
		if n := strings.Count(data, `"role"`); n > 700 {
			t.Errorf("%d lines in a message", n)
		}
		if strings.Contains(data, "line 29999") && !said {
			said = true
			run.say("worker-1", "stderr", "<b>said later</b>\x1b[1m")
		}
		return strings.Contains(data, `\u003cb\u003esaid later\u003c/b\u003e[1m`)
	})
	messages(t, s, of("/live/logs?role=worker-0&stream=stdout&q=LINE+2999", run), func(event, data string) bool {
		n := strings.Count(data, `"role"`)
		if event == "lines" && n != 11 && n != 0 { // 0 while it reads
			t.Errorf("found %s", data)
		}
		return n == 11
	})
	f.runs[0].say("worker-0", "stdout", "the last line")
	last := false
	messages(t, s, of("/live/logs", f.runs[0]), func(event, data string) bool {
		last = last || strings.Contains(data, "the last line")
		return event == "end"
	})
	if !last {
		t.Error("the log of an ended run ends without its last line")
	}
}

func TestSeries(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	var got struct {
		Number  int64
		Curves  []curve
		Workers curve
	}
	if err := json.Unmarshal([]byte(s.get(of("/data/series", f.runs[1]))), &got); err != nil {
		t.Fatal(err)
	}
	if got.Number <= 0 || got.Number > int64(len(f.runs[1].events)) || len(got.Workers.Mean) != 2 || got.Workers.Mean[1] != 2 {
		t.Errorf("number %d, workers %v", got.Number, got.Workers)
	}
	for _, c := range got.Curves {
		if len(c.Mean) > maxPoints || len(c.Mean) != len(c.Steps) || len(c.Mean) != len(c.Times) || c.Role != "" {
			t.Errorf("%s of %q has %d points, %d steps", c.Name, c.Role, len(c.Mean), len(c.Steps))
		}
		if c.Name == "loss" && (c.Steps[len(c.Steps)-1] != 2000 || len(c.Min) != len(c.Mean) || len(c.Mean) < maxPoints/3) {
			t.Errorf("loss has %d points to step %v", len(c.Mean), c.Steps[len(c.Steps)-1])
		}
	}
	if err := json.Unmarshal([]byte(s.get(of("/data/series?of=roles", f.runs[1]))), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Curves) != 4*len(cardNames) {
		t.Errorf("usage has %d curves", len(got.Curves))
	}
}

func TestDownload(t *testing.T) {
	f := someRuns()
	run := f.runs[2]
	s := open(t, f)
	page := s.get(of("/run", run))
	body := s.get(of("/download", run))
	z, err := zip.NewReader(strings.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, entry := range z.File {
		r, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name] = string(text)
	}
	rows, err := csv.NewReader(strings.NewReader(files["metrics.csv"])).ReadAll()
	if err != nil || len(rows) < 3*1240 {
		t.Errorf("metrics.csv has %d rows: %v", len(rows), err)
	}
	if n := strings.Count(files["metrics.jsonl"], "\n"); n != len(run.events) {
		t.Errorf("metrics.jsonl has %d events of %d", n, len(run.events))
	}
	accuracy := number(run.status.Metrics["accuracy"])
	if !strings.Contains(page, accuracy) || !strings.Contains(files["status.json"], `"accuracy": `+accuracy) {
		t.Errorf("accuracy %s is not on the page and in status.json: %s", accuracy, files["status.json"])
	}
	if !strings.Contains(files["configuration.json"], `"hyperparameters.learning_rate": "1.2"`) {
		t.Errorf("configuration is %s", files["configuration.json"])
	}
	n := 0
	for file, text := range files {
		if strings.HasPrefix(file, "logs/") {
			n += strings.Count(text, "\n")
		}
	}
	if n != len(run.lines) || !strings.Contains(files["logs/worker-1.log"], "Loss = ") ||
		strings.Contains(files["logs/worker-1.log"], "checkpoint saved") {
		t.Errorf("logs have %d lines; worker-1's: %s", n, files["logs/worker-1.log"])
	}
}

func TestForm(t *testing.T) {
	f := someRuns()
	f.mayWrite = true
	s := open(t, f)
	post := func(values url.Values) string {
		answer, err := s.client.PostForm(s.base+"/new", values)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		checkPage(t, "/new", string(body))
		return html.UnescapeString(string(body))
	}
	values := url.Values{"label": {"digits"}, "kind": {"model"}, "model": {`mlp"${file("/etc/passwd")}`}, "dataset": {"train_dataset.digits.uri"}, "learning_rate": {"0.05"},
		"replicas": {"2"}, "do": {"plan"}}
	if page := post(values); !strings.Contains(page, "Plan: 1 to add of resource") || len(f.saved) != 0 {
		t.Errorf("no plan, or files %v: %s", f.saved, page)
	}
	values.Set("do", "save")
	post(values)
	want := `resource "train_experiment" "digits" {
  model   = "mlp\"$${file(\"/etc/passwd\")}"
  dataset = train_dataset.digits.uri

  hyperparameters = {
    learning_rate = 0.05
  }

  worker {
    replicas = 2
  }
}
`
	if got := f.saved["digits_experiment.tf"]; got != want {
		t.Errorf("saved %s", got)
	}
	for name, text := range map[string]string{"strategy": "all_reduce", "servers": "1", "cpu": "500m", "memory": "1Gi", "bandwidth_mbps": "100"} {
		values.Set(name, text)
	}
	if body := post(values); strings.Contains(body, "parameter_server {") ||
		!regexp.MustCompile(`(?s)strategy += "all_reduce".*worker \{\s+replicas += 2\s+cpu += "500m"\s+memory += "1Gi"\s+bandwidth_mbps += 100\s+\}`).MatchString(body) {
		t.Errorf("the configuration is %s", body)
	}
	values.Set("learning_rate", "0.05}")
	if body := post(values); !strings.Contains(body, "is not a number") || len(f.saved) != 1 {
		t.Error("a number that is none is taken")
	}
	for _, label := range []string{`x" "y`, "../x", ""} {
		values.Set("label", label)
		if body := post(values); !strings.Contains(body, "is not a name") || len(f.saved) != 1 {
			t.Errorf("the label %q is taken: %v", label, f.saved)
		}
	}
	values = url.Values{"label": {"mine"}, "kind": {"program"}, "command": {"python3\ntrain.py\n"}, "code": {"program"}}
	if body := post(values); !strings.Contains(body, `command = ["python3", "train.py"]`) {
		t.Errorf("the program's configuration is %s", body)
	}
	// A file whose name ends in _override.tf would be merged into others.
	for label, file := range map[string]string{"x_override": "x_override_experiment.tf", "override": "override_experiment.tf", "_x": "x_experiment.tf", "é": "_experiment.tf"} {
		values.Set("label", label)
		values.Set("do", "save")
		before := len(f.saved)
		if page := post(values); f.saved[file] == "" || len(f.saved) != before+1 {
			t.Errorf("%s is saved as %v: %s", label, slices.Sorted(maps.Keys(f.saved)), page)
		}
	}
	saved := len(f.saved)
	f.mayWrite = false
	if post(values); len(f.saved) != saved {
		t.Error("a file was saved without -allow-write")
	}
}
