package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
)

// Without a driver, list and watch say so and end with success; check ends with 1.
func TestWithoutDriver(t *testing.T) {
	for command, want := range map[string]error{"list": nil, "list --json": nil, "watch": nil, "check": status(exitUnfit), "check --json": status(exitUnfit)} {
		var out bytes.Buffer
		p := &program{limit: time.Minute, in: strings.NewReader(""), out: &out, now: time.Now, open: func() (driver, gpu.Snapshot) {
			return nil, gpu.Snapshot{GPUs: []gpu.Reading{}, Absent: "no driver of tests"}
		}}
		cmd := p.command()
		cmd.SetArgs(strings.Fields(command))
		if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v", command, err)
		}
		if !strings.Contains(out.String(), "no driver of tests") {
			t.Errorf("%s: %s", command, out.String())
		}
		if isJSON := strings.Contains(command, "json") || command == "watch"; isJSON != json.Valid(out.Bytes()) {
			t.Errorf("%s: %s", command, out.String())
		}
	}
}
