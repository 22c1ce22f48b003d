package spec

import (
	"math"
	"strings"
	"testing"
)

func TestUsageIsValidated(t *testing.T) {
	valid := Usage{CPU: 1.5, Memory: 1 << 40, Limit: 1 << 41, Read: Flow{1 << 50, 1e9}, Processes: 12, Partly: "a reason"}
	if err := valid.Validate(); err != nil {
		t.Error(err)
	}
	if err := new(Usage).Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Usage){
		"NaN":                func(u *Usage) { u.CPU = math.NaN() },
		"infinite":           func(u *Usage) { u.CPU = math.Inf(1) },
		"negative":           func(u *Usage) { u.CPU = -0.1 },
		"more than machines": func(u *Usage) { u.CPU = 1e7 },
		"memory":             func(u *Usage) { u.Memory = -1 },
		"limit":              func(u *Usage) { u.Limit = -1 },
		"processes":          func(u *Usage) { u.Processes = -1 },
		"many processes":     func(u *Usage) { u.Processes = 1 << 40 },
		"received":           func(u *Usage) { u.Received.Bytes = -1 },
		"sent":               func(u *Usage) { u.Sent.PerSecond = math.Inf(1) },
		"read":               func(u *Usage) { u.Read.PerSecond = -1 },
		"written":            func(u *Usage) { u.Written.PerSecond = math.NaN() },
		"text":               func(u *Usage) { u.Partly = strings.Repeat("x", 2000) },
	} {
		u := valid
		if change(&u); u.Validate() == nil {
			t.Errorf("%s: %+v is valid", name, u)
		}
	}
}
