package watch

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/stokehq/stoke/plan/canvas"
)

// progressEvery is the time between two plain lines of progress at least.
const progressEvery = 10 * time.Second

// lines writes plain lines: each event, and the state of the runs where it changed.
type lines struct {
	Options
	feeds []*feed
	said  []lastLines // by feed
	err   error       // of the last write
}

// lastLines has the last lines about a feed.
type lastLines struct {
	phase, progress, lost string
	at                    time.Time
}

// show writes until all runs have ended or ctx is done.
func (l *lines) show(ctx context.Context, news, over <-chan struct{}) {
	l.said = make([]lastLines, len(l.feeds))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for l.err == nil {
		select {
		case <-news:
		case <-over:
			l.write()
			return
		case <-ctx.Done():
			return
		}
		l.write()
		select {
		case <-tick.C: // at most once a second
		case <-over:
			l.write()
			return
		case <-ctx.Done():
			return
		}
	}
}

// write writes the news of all feeds.
func (l *lines) write() {
	for i, f := range l.feeds {
		l.writeFeed(&l.said[i], f.takeNews())
	}
}

// takeNews returns a view whose events are those since the last call.
func (f *feed) takeNews() view {
	v := f.view(false)
	f.mu.Lock()
	v.events, f.events = f.events, nil
	f.mu.Unlock()
	return v
}

func (l *lines) writeFeed(t *lastLines, v view) {
	prefix := ""
	if len(l.feeds) > 1 {
		prefix = v.name + ": "
	}
	for _, e := range v.events {
		l.writeLine(prefix + eventText(e))
	}
	if !v.known && v.lost.since.IsZero() {
		return
	}
	now := time.Now()
	if v.lost.reason != t.lost {
		t.lost = v.lost.reason
		if t.lost != "" {
			l.writeLine(prefix + now.Format(time.TimeOnly) + "  connection lost, trying again: " + t.lost)
		}
	}
	is := v.status
	isNew := is.Phase != t.phase || v.over && is.Progress != t.progress
	if !v.known || !isNew && (is.Progress == t.progress || now.Sub(t.at) < progressEvery) {
		return
	}
	t.phase, t.progress, t.at = is.Phase, is.Progress, now
	text := fmt.Sprintf("%s%s  %s", prefix, now.Format(time.TimeOnly), is.Phase)
	if is.Trains && is.Percent >= 0 {
		text += fmt.Sprintf("  %.0f%%", is.Percent)
	}
	if v.left > 0 {
		text += "  ETA " + short(v.left)
	}
	text += "  " + is.Progress
	if is.Message != "" {
		text += "  " + is.Message
	}
	l.writeLine(text)
}

func (l *lines) writeLine(text string) {
	if l.Columns > 0 {
		text = canvas.CutText(text, l.Columns)
	}
	if _, err := io.WriteString(l.Lines, text+"\n"); err != nil {
		l.err = err
	}
}
