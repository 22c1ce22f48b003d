package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// applying is an apply that a test controls.
type applying struct {
	began chan string // the file
	stop  chan bool   // hears whether stop was closed, and then whether ctx has ended
	end   chan error
	say   func(string)
}

func newApplying() *applying {
	return &applying{began: make(chan string, 1), stop: make(chan bool, 2), end: make(chan error, 1)}
}

func (a *applying) apply(ctx context.Context, file string, stop <-chan struct{}, line func(string)) error {
	a.say = line
	line("train_experiment.digits: Creating...")
	a.began <- file
	go func() {
		<-stop
		a.stop <- true
		<-ctx.Done()
		a.stop <- true
	}()
	return <-a.end
}

// post sends a form and returns the answer with its page, without following where it leads.
func (s *site) post(path string, values url.Values, header http.Header) (status int, page string) {
	s.t.Helper()
	client := *s.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := http.NewRequest(http.MethodPost, s.base+path, strings.NewReader(values.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for key, all := range header {
		r.Header[key] = all
	}
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, html.UnescapeString(string(body))
}

var aDraft = url.Values{"label": {"digits"}, "kind": {"model"}, "model": {"mlp"}, "dataset": {"train_dataset.digits.uri"}, "do": {"plan"}}

// asked returns the token of the question on the page of a plan.
func (s *site) asked() string {
	s.t.Helper()
	_, page := s.post("/new", aDraft, nil)
	found := regexp.MustCompile(`name="plan" value="([0-9a-f]{64})"`).FindStringSubmatch(page)
	if found == nil {
		s.t.Fatalf("the page asks nothing: %s", page)
	}
	return found[1]
}

func TestApplyNeedsItsFlag(t *testing.T) {
	s := open(t, someRuns())
	for _, path := range []string{"/apply", "/live/apply"} {
		answer, err := s.client.Get(s.base + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, answer.Status)
		}
	}
	token := s.server.applies.ask(question{file: "x.tf", plan: Plan{Apply: newApplying().apply}})
	for _, path := range []string{"/apply", "/apply/stop"} {
		if status, _ := s.post(path, url.Values{"plan": {token}}, nil); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
	if _, page := s.post("/new", aDraft, nil); strings.Contains(page, "Apply this plan") || !strings.Contains(page, "Plan: 1 to add") {
		t.Errorf("the page asks whether to apply: %s", page)
	}
	if s.server.applies.newest() != nil {
		t.Error("an apply was begun")
	}
}

func TestApply(t *testing.T) {
	f, a := someRuns(), newApplying()
	f.apply = a.apply
	s := open(t, f)
	_, page := s.post("/new", aDraft, nil)
	for _, want := range []string{"Apply this plan?", "1 to add, 2 to change, 3 to destroy, 4 left for a later apply", "saved as digits_experiment.tf", "There is no undo"} {
		if !strings.Contains(page, want) {
			t.Errorf("the question has no %q: %s", want, page)
		}
	}
	token := s.asked()
	refused := []struct {
		name   string
		token  string
		header http.Header
	}{
		{"no token", "", nil},
		{"wrong token", strings.Repeat("0", 64), nil},
		{"another origin", token, http.Header{"Origin": {"http://evil.example"}}},
		{"another port", token, http.Header{"Origin": {"http://127.0.0.1:1"}, "Sec-Fetch-Site": {"same-site"}}},
		{"a form of another site", token, http.Header{"Origin": {"null"}, "Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}}},
	}
	for _, test := range refused {
		if status, _ := s.post("/apply", url.Values{"plan": {test.token}}, test.header); status != http.StatusForbidden {
			t.Errorf("%s: %d", test.name, status)
		}
	}
	if s.server.applies.newest() != nil {
		t.Fatal("an apply was begun")
	}
	other := s.asked()
	if status, page := s.post("/apply", url.Values{"plan": {token}}, http.Header{"Origin": {s.origin}, "Sec-Fetch-Site": {"same-origin"}}); status != http.StatusSeeOther {
		t.Fatalf("%d: %s", status, page)
	}
	if file := <-a.began; file != "digits_experiment.tf" {
		t.Errorf("the file is %s", file)
	}
	if status, page := s.post("/apply", url.Values{"plan": {other}}, nil); status != http.StatusConflict || !strings.Contains(page, "An apply is under way") {
		t.Errorf("a second apply: %d: %s", status, page)
	}
	if _, page := s.post("/new", aDraft, nil); !strings.Contains(page, "is under way. Show the plan again") || !strings.Contains(page, `id="apply" disabled`) {
		t.Errorf("the page offers a second apply: %s", page)
	}
	body := s.get("/apply")
	checkPage(t, "/apply", body)
	if !strings.Contains(body, "Creating...") || !strings.Contains(body, ">applying<") || !strings.Contains(body, `id="stop">Stop<`) {
		t.Errorf("the page of the apply is %s", body)
	}
	a.say("\x1b[31m<script>alert(1)</script>")
	events := s.events("/live/apply")
	if lines := events("lines"); !strings.Contains(lines, "Creating...") {
		t.Errorf("lines are %s", lines)
	}
	if is := events("apply"); !strings.Contains(is, `"phase":"applying"`) {
		t.Errorf("the state is %s", is)
	}
	a.end <- errors.New("the apply failed: <b>why</b>")
	if is := events("apply"); !strings.Contains(is, `"phase":"failed"`) || !strings.Contains(is, "why") {
		t.Errorf("the state is %s", is)
	}
	body = s.get("/apply")
	checkPage(t, "/apply", body)
	if !strings.Contains(body, ">failed<") || strings.Contains(body, "<b>") || strings.Contains(body, "<script>alert") || strings.Contains(body, "\x1b") {
		t.Errorf("the page of the apply is %s", body)
	}
	if status, page := s.post("/apply", url.Values{"plan": {token}}, nil); status != http.StatusForbidden || !strings.Contains(page, "was applied already") {
		t.Errorf("the same answer again: %d: %s", status, page)
	}
	if status, _ := s.post("/apply/stop", nil, nil); status != http.StatusSeeOther { // stops nothing
		t.Errorf("stop of an ended apply: %d", status)
	}
}

func TestApplyIsStopped(t *testing.T) {
	f, a := someRuns(), newApplying()
	f.apply = a.apply
	s := open(t, f)
	s.post("/apply", url.Values{"plan": {s.asked()}}, nil)
	<-a.began
	if status, _ := s.post("/apply/stop", nil, http.Header{"Origin": {"http://evil.example"}}); status != http.StatusForbidden || len(a.stop) != 0 {
		t.Errorf("another origin stops it: %d", status)
	}
	job := s.server.applies.newest()
	s.post("/apply/stop", url.Values{"job": {"another"}}, nil)
	if s.get("/apply"); len(a.stop) != 0 || job.stops != 0 {
		t.Error("a stop of another apply stops it")
	}
	plain := url.Values{"job": {job.id}}
	s.post("/apply/stop", plain, nil)
	<-a.stop
	s.post("/apply/stop", plain, nil) // a double click
	if job.stops != 1 {
		t.Errorf("a double click counts as %d stops", job.stops)
	}
	if body := s.get("/apply"); !strings.Contains(body, ">stopping<") || !strings.Contains(body, "Stop at once") || !strings.Contains(body, `name="now" value="1"`) || len(a.stop) != 0 {
		t.Errorf("the page after the first stop: %s", body)
	}
	s.post("/apply/stop", url.Values{"job": {job.id}, "now": {"1"}}, nil)
	<-a.stop
	a.end <- errors.New("it was interrupted")
	<-s.server.applies.newest().done
	if body := s.get("/apply"); !strings.Contains(body, ">stopped<") || !strings.Contains(body, `id="stop" hidden`) {
		t.Errorf("the page of the stopped apply: %s", body)
	}
}

// The end of the dashboard lets an apply finish its steps, and waits for it.
func TestServerWaitsForApply(t *testing.T) {
	f, a := someRuns(), newApplying()
	f.apply = a.apply
	s := open(t, f)
	s.post("/apply", url.Values{"plan": {s.asked()}}, nil)
	<-a.began
	token := s.server.applies.ask(question{plan: Plan{Apply: f.apply}})
	ended := make(chan error, 1)
	go func() { ended <- s.end() }()
	<-a.stop
	select {
	case err := <-ended:
		t.Fatalf("the server ended with %v while an apply goes on", err)
	default:
	}
	if _, err := s.server.applies.begin(token); err == nil {
		t.Error("an apply begins while the server ends")
	}
	a.end <- nil
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A long output is kept in bounded memory, and viewers see that its beginning is missing.
func TestOutputOfApplyIsBounded(t *testing.T) {
	j := &job{done: make(chan struct{})}
	for n := range 3 * maxOutput {
		j.add(fmt.Sprint("line ", n))
	}
	_, lines, from := j.view(0)
	if len(lines) > maxOutput || from+len(lines) != 3*maxOutput || lines[len(lines)-1] != fmt.Sprint("line ", 3*maxOutput-1) || lines[0] != fmt.Sprint("line ", from) {
		t.Errorf("%d lines from %d on: %.30q", len(lines), from, lines)
	}
	if _, lines, from := j.view(3 * maxOutput); len(lines) != 0 || from != 3*maxOutput {
		t.Errorf("%d new lines from %d on", len(lines), from)
	}
}

// events opens a stream; the returned function waits for the next message of a type.
func (s *site) events(path string) func(event string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return func(event string) string {
		s.t.Helper()
		for isIt := false; lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				isIt = name == event
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && isIt {
				if !json.Valid([]byte(data)) {
					s.t.Fatalf("%s: %s", event, data)
				}
				return data
			}
		}
		s.t.Fatalf("the stream of %s ends without %s", path, event)
		return ""
	}
}
