package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const described = `{
  "layers": [
    {"name": "conv", "type": "conv2d", "filters": 4, "kernel": 3, "pad": 1, "no_bias": true},
    {"name": "norm", "type": "batch_norm"},
    {"name": "relu", "type": "relu"},
    {"name": "sum", "type": "add", "inputs": ["relu", "conv"]},
    {"name": "drop", "type": "dropout", "rate": 0},
    {"name": "mean", "type": "global_avg_pool"},
    {"name": "out", "type": "dense", "units": 3}
  ]
}`

func TestDescribe(t *testing.T) {
	d, err := Describe([]byte(described))
	if err != nil {
		t.Fatal(err)
	}
	m := d.Model(Data{Input: Features{Type: U8, Shape: []int{8, 8, 3}}, Classes: 3})
	lines, parameters, err := m.Summary()
	if err != nil || parameters != 3*3*3*4+2*4+4*3+3 {
		t.Errorf("%d parameters, %v", parameters, err)
	}
	want := []string{
		"conv: conv2d, 8 × 8 × 4, 108 parameters", "norm: batch_norm, 8 × 8 × 4, 8 parameters", "relu: relu, 8 × 8 × 4",
		"sum: add, 8 × 8 × 4", "drop: dropout, 8 × 8 × 4", "mean: global_avg_pool, 4", "out: dense, 3, 15 parameters",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	// What it writes it reads again, and writes the same.
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Describe(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if diff := cmp.Diff(d, back); diff != "" {
		t.Error(diff)
	}
}

// Each mistake in a description is one error with its line.
func TestBrokenDescriptions(t *testing.T) {
	for _, tt := range []struct{ want, old, new string }{
		{`line 3: layer 1 (conv2d "conv"): has no units: it has filters, kernel`, `"filters": 4`, `"units": 4`},
		{`line 3: layer 1 (conv2d "conv"): unknown member "filtres": did you mean "filters"?`, `"filters"`, `"filtres"`},
		{`line 3: layer 1 (conv2d "conv"): unknown member "colour": want one of name, type, inputs, filters`, `"filters"`, `"colour"`},
		{`line 3: layer 1 (conv2d "conv"): filters is "4": want a whole number`, `"filters": 4`, `"filters": "4"`},
		{`line 3: layer 1 (conv2d "conv"): filters is 4.5: want a whole number`, `"filters": 4`, `"filters": 4.5`},
		{`line 3: layer 1 (conv2d "conv"): filters is null`, `"filters": 4`, `"filters": null`},
		{`line 3: layer 1 (conv2d "conv"): filters is 0: give another value`, `"filters": 4`, `"filters": 0`},
		{`line 3: layer 1 (conv2d "conv"): no_bias is 1: want true or false`, `true`, `1`},
		{`line 3: layer 1: member "kernel" is given twice`, `"filters": 4`, `"kernel": 4`},
		{`line 5: layer 3 (relu "relu"): has no rate: it has only inputs`, `"relu"}`, `"relu", "rate": 0}`},
		{`line 5: layer 3 (rulu "relu"): unknown operation "rulu"`, `"type": "relu"`, `"type": "rulu"`},
		{`line 5: layer 3 ( "relu"): has no type: want one of add`, `, "type": "relu"`, ``},
		{`line 6: layer 4 (add "sum"): inputs is "relu": want a list of texts`, `["relu", "conv"]`, `"relu"`},
		{`line 6: layer 4 (add "sum"): its input "con" is not a layer`, `["relu", "conv"]`, `["relu", "con"]`},
		{`line 7: layer 5 (dropout "drop"): rate is 1e99: want a number of at most 3.4`, `"rate": 0`, `"rate": 1e99`},
		{`line 9: layer 7 (dense "mean"): another layer has the same name`, `"out"`, `"mean"`},
		{`line 9: layer 7 (dense ""): its name must have 1 to 100 characters`, `"name": "out", `, ``},
		{`line 10: unknown member "los": did you mean "loss"?`, "  ]\n", `], "los": ""`},
		{`loss: want a text`, "  ]\n", `], "loss": 1`},
		{`unknown loss "hinge"`, "  ]\n", `], "loss": "hinge"`},
		{`metric "accuracy" is given twice`, "  ]\n", `], "metrics": ["accuracy", "accuracy"]`},
		{`unknown metric "accuracy": with loss mean_squared_error`, "  ]\n", `], "metrics": ["mean_absolute_error", "accuracy"]`},
		{`label_smoothing: want a number`, "  ]\n", `], "label_smoothing": "0.1"`},
		{`label smoothing 1: want at least 0 and below 1`, "  ]\n", `], "label_smoothing": 1`},
		{`unknown metric "accuracy": with loss mean_squared_error`, "  ]\n", `], "loss": "mean_squared_error", "metrics": ["accuracy"]`},
		{`unknown metric "f1"`, "  ]\n", `], "metrics": ["f1"]`},
		{`line 10: member "layers" is given twice`, "  ]\n", `], "layers": []`},
		{`line 4: layer 2: invalid character`, `"batch_norm"}`, `"batch_norm"]`},
		{`more text follows the model`, "\n}", "\n}{}"},
		{`want a list […], not x`, `"layers": [`, `"layers": "x", "y": [`},
	} {
		if !strings.Contains(described, tt.old) {
			t.Fatalf("no %q", tt.old)
		}
		_, err := Describe([]byte(strings.Replace(described, tt.old, tt.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("want an error with %q, got %v", tt.want, err)
		}
	}
	for text, want := range map[string]string{
		"":                            "line 1: the text ends too early",
		`{"layers": [{"name": "a"`:    "line 1: the text ends too early",
		"[]":                          "line 1: want an object {…}, not [",
		"{}":                          "0 layers",
		strings.Repeat(" ", 1<<20+1):  "1048577 bytes",
		`{"layers": [1]}`:             "want an object {…}, not 1",
		"{\"layers\": [\n\n{}\n]}":    "line 3: layer 1",
		`{"layers": [{"type": "x"}]}`: `unknown operation "x"`,
	} {
		if _, err := Describe([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30s: want an error with %q, got %v", text, want, err)
		}
	}
}

// No text makes the reader fail, and what it accepts has one form.
func FuzzDescribe(f *testing.F) {
	f.Add([]byte(described))
	f.Add([]byte(`{"layers": [{"name": "a", "type": "dense", "units": 2, "inputs": ["input"]}], "metrics": []}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Describe(text)
		if err != nil {
			return
		}
		out, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Describe(out)
		if err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		if again, err := json.Marshal(back); err != nil || string(again) != string(out) {
			t.Errorf("%s, then %s, %v", out, again, err)
		}
	})
}
