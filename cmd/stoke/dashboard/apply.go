package dashboard

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Bounds of applies.
const (
	maxQuestions = 4    // plans that wait for an answer; the oldest is dropped
	maxOutput    = 5000 // lines of an apply that are kept
)

// question is a plan that a page shows with a button to apply it.
type question struct {
	file, address string // the new file, and the run in it
	plan          Plan
}

// applies are the applies of a dashboard: one at a time. Each is the answer to a question,
// which has a random token that works once: a page of another server, or the same answer
// sent twice, begins nothing.
type applies struct {
	mu     sync.Mutex
	asked  map[string]question
	tokens []string // the oldest first
	job    *job     // the newest; nil: none
	closed bool
}

func newApplies() *applies { return &applies{asked: make(map[string]question)} }

// ask keeps a question and returns its token.
func (a *applies) ask(q question) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	token := secret()
	a.asked[token], a.tokens = q, append(a.tokens, token)
	if len(a.tokens) > maxQuestions {
		delete(a.asked, a.tokens[0])
		a.tokens = a.tokens[1:]
	}
	return token
}

// Errors of an answer.
var (
	errBusy    = errors.New("an apply is under way: the page of the apply shows it")
	errExpired = errors.New("the plan of this page was applied already, or is too old: show the plan again")
)

// begin begins the apply that a question is about.
func (a *applies) begin(token string) (*job, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q, ok := a.asked[token]
	switch {
	case a.closed:
		return nil, errors.New("the dashboard ends")
	case a.job != nil && a.job.isLive():
		return nil, errBusy
	case !ok:
		return nil, errExpired
	}
	delete(a.asked, token)
	ctx, cancel := context.WithCancel(context.Background())
	a.job = &job{
		id: secret(), file: q.file, address: q.address, totals: q.plan.Totals(), began: time.Now(),
		stop: make(chan struct{}), done: make(chan struct{}), cancel: cancel,
	}
	go a.job.run(ctx, q.plan)
	return a.job, nil
}

func (a *applies) newest() *job {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.job
}

// close lets an apply finish its steps, and waits for its end.
func (a *applies) close() {
	a.mu.Lock()
	a.closed = true
	job := a.job
	a.mu.Unlock()
	if job == nil {
		return
	}
	job.mu.Lock()
	if job.stops == 0 {
		job.stops++
		close(job.stop)
	}
	job.mu.Unlock()
	<-job.done
}

// job is an apply that was begun.
type job struct {
	id                    string // random: a page stops the apply that it shows
	file, address, totals string
	began                 time.Time
	stop                  chan struct{} // closed by the first stop
	cancel                context.CancelFunc
	done                  chan struct{} // closed at the end

	mu    sync.Mutex
	lines []string
	left  int // lines before them that were dropped
	stops int // how often a person stopped it
	ended time.Time
	err   error
}

func (j *job) run(ctx context.Context, p Plan) {
	defer close(j.done)
	defer j.cancel()
	err := p.Apply(ctx, j.file, j.stop, j.add)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended, j.err = time.Now(), err
}

// add keeps a line.
func (j *job) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) >= maxOutput {
		n := maxOutput / 4
		j.left += n
		j.lines = append(j.lines[:0], j.lines[n:]...)
	}
	j.lines = append(j.lines, cleanText(line, longestLine, false))
}

// end stops the apply: the first stop lets it finish the steps under way. A later stop ends
// them where the person asked for that with now; other later stops, such as a double click,
// do nothing.
func (j *job) end(now bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.stops == 0:
		j.stops++
		close(j.stop)
	case now:
		j.stops++
		j.cancel()
	}
}

func (j *job) isLive() bool {
	select {
	case <-j.done:
		return false
	default:
		return true
	}
}

// applyView is an apply as pages show it.
type applyView struct {
	Phase   string `json:"phase"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Stop    string `json:"stop"` // of the button; "": there is nothing to stop
	Live    bool   `json:"live"`
}

// view returns the apply for pages, and the lines after the first n of it.
func (j *job) view(n int) (v applyView, lines []string, from int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	from = max(n, j.left)
	lines = append(lines, j.lines[min(from-j.left, len(j.lines)):]...)
	switch {
	case j.ended.IsZero() && j.stops == 0:
		v = applyView{"applying", "running", "", "Stop", true}
	case j.ended.IsZero() && j.stops == 1:
		v = applyView{"stopping", "waiting", "The apply finishes the steps that are under way. " +
			"Runs go on, and the next apply attaches to them.", "Stop at once", true}
	case j.ended.IsZero():
		v = applyView{"stopping", "waiting", "The steps that are under way are ended. Completed changes stay in the state.", "", true}
	case j.err != nil && j.stops > 0:
		v = applyView{"stopped", "over", cleanText(j.err.Error(), longestText, true), "", false}
	case j.err != nil:
		v = applyView{"failed", "bad", cleanText(j.err.Error(), longestText, true), "", false}
	default:
		v = applyView{"applied", "good", "", "", false}
	}
	return v, lines, from
}

// beginApply begins the apply of a plan that a page has shown.
func (s *Server) beginApply(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, http.StatusBadRequest, "The form cannot be read", err.Error())
		return
	}
	switch _, err := s.applies.begin(r.PostForm.Get("plan")); {
	case errors.Is(err, errBusy):
		s.fail(w, r, http.StatusConflict, "Not applied", sentence(err))
	case err != nil:
		s.fail(w, r, http.StatusForbidden, "Not applied", sentence(err))
	default:
		http.Redirect(w, r, s.guard.folder+"/apply", http.StatusSeeOther)
	}
}

// sentence returns the text of an error as a sentence.
func sentence(err error) string {
	text := err.Error()
	return string(text[0]-'a'+'A') + text[1:] + "."
}

// stopApply stops the apply of the page that asks for it.
func (s *Server) stopApply(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, http.StatusBadRequest, "The form cannot be read", err.Error())
		return
	}
	if job := s.applies.newest(); job != nil && job.isLive() && r.PostForm.Get("job") == job.id {
		job.end(r.PostForm.Get("now") == "1")
	}
	http.Redirect(w, r, s.guard.folder+"/apply", http.StatusSeeOther)
}

// showApply answers with the newest apply.
func (s *Server) showApply(w http.ResponseWriter, _ *http.Request) {
	job := s.applies.newest()
	if job == nil {
		s.show(w, http.StatusOK, layout{Page: "apply", Title: "Apply", Body: nil})
		return
	}
	v, lines, left := job.view(0)
	s.show(w, http.StatusOK, layout{Page: "apply", Title: "Apply", Body: map[string]any{
		"Apply": v, "Job": job.id, "Now": v.Stop == "Stop at once", "Lines": lines, "Left": left,
		"Name": shortName(job.address), "Run": keyOf(job.address), "File": job.file,
		"Totals": job.totals, "Began": clock(job.began),
	}})
}

// streamApply sends the state of the newest apply, and the lines that follow.
func (s *Server) streamApply(w http.ResponseWriter, r *http.Request) {
	st, end := s.begin(w, r)
	defer end()
	job, sent, last := s.applies.newest(), 0, applyView{}
	if st.send("reset", nil) != nil {
		return
	}
	st.keep(everyLine, func() error {
		if newest := s.applies.newest(); newest != job {
			return st.send("other", nil) // the page is loaded again
		}
		if job == nil {
			return nil
		}
		v, lines, from := job.view(sent)
		if len(lines) > 0 {
			sent = from + len(lines)
			if err := st.send("lines", lines); err != nil {
				return err
			}
		}
		if v == last {
			return nil
		}
		last = v
		return st.send("apply", v)
	})
}
