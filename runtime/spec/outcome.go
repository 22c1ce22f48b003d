package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// OutcomeBytes is how long the termination message of a container may be in
// Kubernetes: what is longer is cut off.
const OutcomeBytes = 4096

// Outcome is a status as one JSON object of at most limit bytes, to be left
// where there is little room. What is too long loses first the log, from its
// beginning, then metrics, the last ones by name first but loss, accuracy and
// training_seconds last of all, then the end of the message. It is an error
// when the rest does not fit: 1,024 bytes always do, with a name that
// Kubernetes accepts.
func (s Status) Outcome(limit int) ([]byte, error) {
	text := func(s *string, keep func(string, int) string) func(int) {
		whole := *s
		return func(n int) { *s = keep(whole, n) }
	}
	all, whole := byWorth(s.Metrics), s.Metrics
	some := func(n int) {
		s.Metrics = make(map[string]float64, n)
		for _, name := range all[:n] {
			s.Metrics[name] = whole[name]
		}
	}
	some(len(all))
	for _, part := range []struct {
		most int
		keep func(n int)
	}{
		{len(s.Log), text(&s.Log, last)},
		{len(all), some},
		{len(s.Message), text(&s.Message, first)},
	} {
		fits := func(n int) ([]byte, bool, error) {
			part.keep(n)
			data, err := json.Marshal(s)
			return data, len(data) <= limit, err
		}
		if data, ok, err := fits(part.most); ok || err != nil {
			return data, err
		}
		// The most of it that fits: length grows with what is kept.
		lowest, highest := 0, part.most // lowest may fit, highest does not
		for lowest+1 < highest {
			middle := (lowest + highest) / 2
			if _, ok, err := fits(middle); err != nil {
				return nil, err
			} else if ok {
				lowest = middle
			} else {
				highest = middle
			}
		}
		if data, ok, err := fits(lowest); ok || err != nil {
			return data, err
		}
	}
	return nil, fmt.Errorf("write outcome: it does not fit into %d bytes", limit)
}

// byWorth lists metrics' names: what an experiment is judged by comes first.
// Numbers that JSON has no way to write are left out.
func byWorth(metrics map[string]float64) []string {
	names := slices.Sorted(maps.Keys(metrics))
	names = slices.DeleteFunc(names, func(name string) bool { return math.IsNaN(metrics[name]) || math.IsInf(metrics[name], 0) })
	worth := []string{"training_seconds", "accuracy", "loss"}
	slices.SortStableFunc(names, func(a, b string) int { return slices.Index(worth, b) - slices.Index(worth, a) })
	return names
}

// last is the end of a text of at most n bytes, from the beginning of a line
// where there is one.
func last(text string, n int) string {
	if n >= len(text) {
		return text
	}
	at := len(text) - n
	if end := strings.IndexByte(text[at:], '\n'); end >= 0 && end+1 < n && text[at-1] != '\n' {
		at += end + 1
	}
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return text[at:]
}

// first is the beginning of a text of at most n bytes.
func first(text string, n int) string {
	if n >= len(text) {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
