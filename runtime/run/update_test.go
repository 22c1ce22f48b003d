package run

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// checkDecoded compares the two decoders of a line.
func checkDecoded(t *testing.T, line string) (fast bool) {
	t.Helper()
	h, known := headOf([]byte(line))
	if !known {
		return false
	}
	got, ok := decodeUpdate(h, []byte(line))
	if !ok {
		return false
	}
	var want spec.Event
	if err := json.Unmarshal([]byte(line), &want); err != nil {
		t.Errorf("%s is decoded, and is not valid: %v", line, err)
		return true
	}
	if text := fmt.Sprintf("%#v", got); text != fmt.Sprintf("%#v", want) { // NaN is NaN there
		t.Errorf("%s\n got %s\nwant %#v", line, text, want)
	}
	return true
}

func TestUpdatesAreDecodedAsJSON(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	var lines []string
	for _, e := range []spec.Event{
		{Number: 1, Type: spec.EventUpdate}, {Number: 2, Type: spec.EventUpdate, Term: 3, Generation: 4, Step: 5, Epoch: 6, Records: 7, Loss: 0.125, Norm: 1e-30, Staleness: 8},
		{Number: 1 << 50, Type: spec.EventUpdates, Step: 1 << 50, First: 9, Count: 10, Skips: 11, LossMin: -1e300, LossMax: 5e-324, Loss: spec.Number(math.NaN()), Norm: spec.Number(math.Inf(1))},
	} {
		e.Time = at
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []string{"", "\n"} {
			if !checkDecoded(t, string(text)+end) {
				t.Errorf("%s is left to encoding/json", text)
			}
		}
		lines = append(lines, string(text))
	}
	const begin = `{"n":7,"time":"2026-03-04T05:06:07Z","type":"update"`
	for _, rest := range []string{`,"step":1}`, `,"step":1,"step":2}`, `,"loss":1e5}`} {
		if !checkDecoded(t, begin+rest) {
			t.Errorf("%s is left to encoding/json", rest)
		}
	}
	for _, rest := range []string{
		"", ",", "}}", `,"step":01}`, `,"step":-1}`, `,"step":1.5}`, `,"step":1e3}`, `,"step":}`, `,"step":1`, `,"step":1},`, `,"step":12345678901234567890}`, `,"loss":01}`,
		`,"loss":1.}`, `,"loss":.5}`, `,"loss":0x1p4}`, `,"loss":Inf}`, `,"loss":NaN}`, `,"loss":1_0}`, `,"loss":1e}`, `,"loss":--1}`, `,"loss":1e999}`, `,"loss":""}`, `,"loss":+1}`,
		`,"metrics":{"a":1}}`, `,"metrics":{}}`, `,"Step":1}`, `,"skipped":true}`, `,"worker":1}`, `,"message":"a,\"step\":1}"}`, `,"taken":[{"epoch":1}]}`, `,"other":1}`, `,"st\u0065p":1}`,
		` ,"step":1}`, `,"step": 1}`, `,"step":1 }`, `,"loss":null,"step":null}`,
	} {
		if checkDecoded(t, begin+rest) {
			t.Errorf("%s is not left to encoding/json", rest)
		}
	}
	for _, line := range []string{`{"n":07,"time":"2026-03-04T05:06:07Z","type":"update","step":1}`, `{"n":1,"time":"2026-03-04T05:06:07Z","type":"usage","step":1}`} {
		if checkDecoded(t, line) {
			t.Errorf("%s is not left to encoding/json", line)
		}
	}
	for _, line := range lines { // damaged at any byte
		for i := range line {
			for _, c := range []string{"", "0", "-", ".", "e", ",", `"`, "}", " "} {
				checkDecoded(t, line[:i]+c+line[min(len(line), i+1):])
				checkDecoded(t, line[:i]+c+line[i:])
			}
			checkDecoded(t, line[:i])
			checkDecoded(t, strings.Replace(line, "update", "update"+line[i:i+1], 1))
		}
	}
}
