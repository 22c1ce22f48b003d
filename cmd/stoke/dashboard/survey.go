package dashboard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stokehq/stoke/providers"
)

// Bounds of surveys.
const (
	freshSurvey  = 5 * time.Second  // for so long a survey is not read again, at least
	surveyPause  = 10               // times as long as a survey took, it is not read again,
	longestPause = time.Minute      // at most
	failurePause = 15 * time.Second // after an error
	maxSurveys   = 8
	surveyTime   = 30 * time.Second
)

// surveys keeps the newest survey of each place of runs. One run of a place is asked, while
// a page shows the places.
type surveys struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu  sync.Mutex
	all map[string]*surveyCell
}

// surveyCell is the survey of one place.
type surveyCell struct {
	busy chan struct{} // closed when the reading ends; nil: none is under way
	took time.Duration
	is   surveyed
}

// pause returns how long after a reading the next one begins.
func (c *surveyCell) pause() time.Duration {
	if c.is.err != nil {
		return failurePause
	}
	return min(max(freshSurvey, surveyPause*c.took), longestPause)
}

// surveyed is what was read of a place.
type surveyed struct {
	key    string // of the place, as statuses of runs have it
	read   time.Time
	err    error
	survey providers.RunSurvey // the last that was read without an error
	known  time.Time           // when; zero: never
}

func newSurveys() *surveys {
	s := &surveys{all: make(map[string]*surveyCell)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// close ends all reading and waits for it.
func (s *surveys) close() {
	s.cancel()
	s.work.Wait()
}

// read returns the surveys of the places of some runs. It waits at most so long for those
// that are old.
func (s *surveys) read(ctx context.Context, rows []row, wait time.Duration) (all []surveyed) {
	asked := placesAsked(rows)
	var waits []waited
	s.mu.Lock()
	keys := make([]string, 0, len(asked))
	for _, one := range asked {
		keys = append(keys, one.key)
		c := s.all[one.key]
		if c == nil {
			c = &surveyCell{is: surveyed{key: one.key}}
			s.all[one.key] = c
		}
		if c.busy == nil && time.Since(c.is.read) > c.pause() && s.ctx.Err() == nil {
			c.busy = make(chan struct{})
			s.work.Add(1)
			go s.ask(c, one.run)
		}
		waits = append(waits, waited{busy: c.busy})
	}
	for key, c := range s.all {
		if c.busy == nil && !slices.Contains(keys, key) {
			delete(s.all, key)
		}
	}
	s.mu.Unlock()
	await(ctx, waits, wait)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if c := s.all[key]; c != nil && !errors.Is(c.is.err, providers.ErrNoSurvey) {
			all = append(all, c.is)
		}
	}
	return all
}

// asking is a run that is asked for the survey of its place.
type asking struct {
	key string
	run providers.RunSurveyor
}

// keyOfPlace returns the key of a run's place. Runs that do not tell their place have one each;
// surveys of the same place have the same ID.
func keyOfPlace(r *row) string { return cmp.Or(r.status.Where, r.Address) }

// placesAsked returns one run for each place, a live one where there is one.
func placesAsked(rows []row) (all []asking) {
	for _, wantsLive := range []bool{true, false} {
		for i := range rows {
			r := &rows[i]
			known, ok := r.run.(providers.RunSurveyor)
			key := keyOfPlace(r)
			isAsked := slices.ContainsFunc(all, func(a asking) bool { return a.key == key })
			if !ok || isAsked || r.isLive() != wantsLive || len(all) == maxSurveys {
				continue
			}
			all = append(all, asking{key, known})
		}
	}
	return all
}

// ask reads the survey of a place.
func (s *surveys) ask(c *surveyCell, run providers.RunSurveyor) {
	defer s.work.Done()
	ctx, cancel := context.WithTimeout(s.ctx, surveyTime)
	defer cancel()
	began := time.Now()
	survey, err := run.Survey(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.took, c.is.read, c.is.err = time.Since(began), time.Now(), err
	if err == nil {
		c.is.survey, c.is.known = survey, c.is.read
	}
	close(c.busy)
	c.busy = nil
}
