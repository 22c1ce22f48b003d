package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers"
)

// number returns a number with five digits that count, and thousands apart.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return integer(int64(v))
	case math.Abs(v) >= 10_000 && math.Abs(v) < 1e15:
		return integer(int64(math.Round(v)))
	}
	return strings.Replace(strconv.FormatFloat(v, 'g', 5, 64), "-", "−", 1)
}

// integer returns a whole number with its thousands apart.
func integer(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "−", text[1:]
	}
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "\u202f" + text[at:]
	}
	return sign + text
}

// size returns a number of bytes.
func size(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	at := 0
	for n >= 1024 && at < len(units)-1 {
		n, at = n/1024, at+1
	}
	if at == 0 || n >= 100 {
		return fmt.Sprintf("%.0f %s", n, units[at])
	}
	return fmt.Sprintf("%.1f %s", n, units[at])
}

// duration returns a time in the two largest of its units.
func duration(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// clock returns a time of the machine's zone; "" for none.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// value is what a cell of a page shows, and its place in an order.
type value struct {
	Text string
	Sort float64
}

// none is the value of a cell without one: it is last in every order.
var none = value{"–", math.Inf(-1)}

// kind returns the class of a phase, which its colour depends on.
func kind(phase string) string {
	switch strings.ToLower(phase) {
	case "running", "ready", "active", "alive":
		return "running"
	case "succeeded", "complete", "completed":
		return "good"
	case "failed", "lost", "error":
		return "bad"
	case "pending", "waiting", "starting", "launching":
		return "waiting"
	}
	return "over"
}

// secondsOf returns how long a run has run; negative where it did not start.
func secondsOf(s *providers.RunStatus, now time.Time) time.Duration {
	switch {
	case s.Started.IsZero():
		return -1
	case s.Ended.IsZero():
		return now.Sub(s.Started)
	}
	return s.Ended.Sub(s.Started)
}
